/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_READER_TELEMETRY_H
#define RINGTAP_READER_TELEMETRY_H

#include <stddef.h>

#define RT_TELEMETRY_SOCKET "dpdk_telemetry.v2"

/* How long the application may take for an answer; a variable for the tests' sake. */
extern _Thread_local int rt_telemetry_ms;

/* Connects to the Unix SOCK_SEQPACKET socket dir/name. The descriptor or -errno. */
int rt_connect(const char *dir, const char *name);

/* Asks the application in the runtime folder dir to wake its probe. 0; -ENOENT, -ECONNREFUSED: no
 * such application; -EPROTONOSUPPORT: no probe in it; -EPROTO: nonsense; -ETIMEDOUT; -errno. The
 * sentence in err is for people. */
int rt_telemetry_wake(const char *dir, char *err, size_t errlen);

/* Sends any command; answer becomes its JSON, zero-terminated. 0, or -errno as above. */
#define RT_TELEMETRY_MAX 16385
int rt_telemetry_ask(const char *dir, const char *command, char answer[RT_TELEMETRY_MAX]);

#endif
