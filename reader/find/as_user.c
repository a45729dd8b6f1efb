/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "as_user.h"
#include "halt.h"

struct deed {
	int (*call)(void *arg);
	void *arg;
	int result;
};

static void *run(void *arg)
{
	struct deed *d = arg;

	d->result = d->call(d->arg);
	return NULL;
}

int rt_in_thread(int (*call)(void *arg), void *arg)
{
	struct deed d = {.call = call, .arg = arg};
	static pthread_mutex_t lock =
		PTHREAD_MUTEX_INITIALIZER; /* protects the identity of the process */
	sigset_t all, old;
	pthread_t thread;
	int dumpable, ret;

	pthread_mutex_lock(&lock);
	dumpable = prctl(PR_GET_DUMPABLE);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&thread, NULL, run, &d);
	if (!ret)
		pthread_join(thread, NULL);
	/* The kernel clears it for the whole process when a thread changes its user. */
	if (!ret && dumpable == 1)
		prctl(PR_SET_DUMPABLE, 1);
	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret ? -ret : d.result;
}

/* Changes this thread only: the functions of the C library change all. Its real and saved user
 * remain, so that processes of the user can neither trace nor signal this one. */
int rt_become_user(uid_t uid)
{
	return syscall(SYS_setresuid, -1, uid, -1) ? -errno : 0;
}

void rt_as_user_failed(uid_t uid, int error, char *err, size_t errlen)
{
	snprintf(err, errlen, "cannot connect as its user %u: %s", (unsigned)uid, strerror(-error));
}

bool rt_is_nobody_there(pid_t pid)
{
	struct stat own, other;
	char path[64];

	if (geteuid() || pid <= 0 || !rt_proc_is_ours())
		return false;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	return !stat("/proc/self/ns/user", &own) && !stat(path, &other) &&
	       own.st_ino != other.st_ino;
}
