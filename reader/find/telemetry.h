/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_READER_FIND_TELEMETRY_H
#define RINGTAP_READER_FIND_TELEMETRY_H

#include <stddef.h>

#include "connect.h"

/* Requests the application at an address to wake its probe. 0, and socket is the name of the
 * probe's socket (empty: the answer has none); -ENOENT, -ECONNREFUSED: no such application;
 * -EPROTONOSUPPORT: it has no probe; -EPROTO: an invalid answer; -ETIMEDOUT; -EHOSTDOWN: its
 * process is stopped; -EPERM: not trusted; -errno. err has a sentence. */
int rt_telemetry_wake(const char *app, char socket[RT_SOCKET_NAME_MAX], char *err, size_t errlen);

/* The process that listens at the telemetry socket of this name in a folder, which is connected to
 * once while it lives. 1, and *pid, if it is known; 0: none listens; -EPERM: not trusted, the
 * reason is in err. Waits for a greeting only, up to RT_GREETING_MS. */
#define RT_GREETING_MS 200
int rt_telemetry_owner(
	const struct rt_folder *f, const char *name, pid_t *pid, char *err, size_t errlen);

#endif
