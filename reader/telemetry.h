/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_READER_TELEMETRY_H
#define RINGTAP_READER_TELEMETRY_H

#include <stddef.h>

#include "connect.h"

/* Timeout of an answer. A variable, so that tests can set it. */
extern _Thread_local int rt_telemetry_ms;

/* Requests the application at an address to wake its probe. 0, and socket is the name of the
 * probe's socket (empty: the answer has none); -ENOENT, -ECONNREFUSED: no such application;
 * -EPROTONOSUPPORT: it has no probe; -EPROTO: an invalid answer; -ETIMEDOUT; -EHOSTDOWN: its
 * process is stopped; -EPERM: not trusted; -errno. err has a sentence. */
int rt_telemetry_wake(const char *app, char socket[RT_SOCKET_NAME_MAX], char *err, size_t errlen);

/* Sends a command; answer becomes its JSON, zero-terminated. 0, or -errno as above. */
#define RT_TELEMETRY_MAX 16385
int rt_telemetry_query(const char *app, const char *command, char answer[RT_TELEMETRY_MAX]);

#endif
