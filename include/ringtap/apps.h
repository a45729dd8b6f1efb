/* SPDX-License-Identifier: BSD-3-Clause */
/* libringtap: finds the DPDK applications of this host. */
#ifndef RINGTAP_APPS_H
#define RINGTAP_APPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Discovery: find applications ------------------------------------------------------------ */

struct ringtap_apps;

/* Scans the DPDK runtime folders (/var/run/dpdk, $XDG_RUNTIME_DIR/dpdk, /tmp/dpdk) for applications
 * that are alive, and, without RINGTAP_CONTAINERS=no in the environment, those of containers that
 * the caller may inspect. The caller frees *out with ringtap_apps_free(). It may be empty. */
int ringtap_apps_find(struct ringtap_apps **out);

struct ringtap_apps_options {
	size_t size;
	/* Applications of root and of this user come first, and always. Of others: only those of
	 * these users; NULL: of all. */
	const uint32_t *users;
	size_t user_count;
	int timeout_ms; /* for those of others; 0: 1 s. A note states that time was short. */
};

/* The same with options. -EINVAL: size, or a negative timeout. */
int ringtap_apps_search(struct ringtap_apps **out, const struct ringtap_apps_options *opts);
void ringtap_apps_free(struct ringtap_apps *apps);
size_t ringtap_apps_count(const struct ringtap_apps *apps);
/* Name and address of the i-th application. Live as long as the list. The name is its EAL
 * file-prefix; further ones in a runtime folder (--no-shconf, --in-memory) are PREFIX#1 and so on,
 * secondary processes PREFIX/PID (in their PID namespace); "@UID" is appended for users other than
 * root and the caller, "~PID" for namesakes outside of the caller's folders. The address, which
 * parameters called dir take, is the runtime folder with the same "#1" or "/PID"; it may begin with
 * /proc/PID/root, and is /proc/PID/net/@NAME where the probe's socket has an abstract name. */
const char *ringtap_apps_name(const struct ringtap_apps *apps, size_t i);
const char *ringtap_apps_dir(const struct ringtap_apps *apps, size_t i);
/* Process id of the i-th application in this PID namespace; 0: unknown. */
uint32_t ringtap_apps_pid(const struct ringtap_apps *apps, size_t i);
/* Whether it belongs to a user other than root and this one. */
bool ringtap_apps_foreign(const struct ringtap_apps *apps, size_t i);
bool ringtap_apps_secondary(const struct ringtap_apps *apps, size_t i);
/* Index of the primary of secondary process i. i for a primary, or if the primary has ended. */
size_t ringtap_apps_primary(const struct ringtap_apps *apps, size_t i);
/* Folders and sockets that were left out since they cannot be trusted: one sentence each. */
size_t ringtap_apps_notes(const struct ringtap_apps *apps);
const char *ringtap_apps_note(const struct ringtap_apps *apps, size_t i);

/* Calls of this thread that wait for an answer of an application, to attach to it or to start a
 * capture, end with -ECANCELED ("interrupted") once fd can be read, such as a signalfd. -1: none.
 * The caller closes fd. */
void ringtap_break_fd(int fd);

#ifdef __cplusplus
}
#endif

#endif
