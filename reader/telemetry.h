/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_READER_TELEMETRY_H
#define RINGTAP_READER_TELEMETRY_H

#include <stddef.h>

#include "connect.h"

/* How long the application may take for an answer; a variable for the tests' sake. */
extern _Thread_local int rt_telemetry_ms;

/* Requests the application at an address to wake its probe. 0, and socket is the name of the
 * probe's socket (empty: the answer has none); -ENOENT, -ECONNREFUSED: no such application;
 * -EPROTONOSUPPORT: no probe in it; -EPROTO: nonsense; -ETIMEDOUT; -EHOSTDOWN: its process is
 * stopped; -EPERM: not to be trusted; -errno. The sentence in err is for people. */
int rt_telemetry_wake(const char *app, char socket[RT_SOCKET_NAME_MAX], char *err, size_t errlen);

/* Sends any command; answer becomes its JSON, zero-terminated. 0, or -errno as above. */
#define RT_TELEMETRY_MAX 16385
int rt_telemetry_query(const char *app, const char *command, char answer[RT_TELEMETRY_MAX]);

#endif
