/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of the probe where a process can open them, also in another mount namespace. */
#ifndef RINGTAP_INJECT_PROVIDE_H
#define RINGTAP_INJECT_PROVIDE_H

#include <limits.h>
#include <signal.h>

#include "process.h"

struct rt_provided {
	char path[PATH_MAX]; /* path of libringtap-probe.so for the process */
	int at, folder;      /* descriptors: the folder of copies and its parent; -1: none */
	char name[64];       /* name of the folder in its parent */
	uid_t uid, root;     /* uid of the process; uid of root in its user namespace */
	gid_t gid;
	bool blocked; /* signals, until the copies are removed */
	sigset_t old;
};

/* The probe's own path if the process sees the same files there, else that of copies in a temporary
 * folder of its file system, which belong to its user. From then on the signals that end programs
 * wait until rt_provided_remove(). 0, or -errno and a sentence. */
int rt_provide(struct rt_provided *f, const struct rt_process *p, const char *probe, char *err,
	size_t errlen);
/* Removes copies; loaded libraries stay mapped. */
void rt_provided_remove(struct rt_provided *f);

#endif
