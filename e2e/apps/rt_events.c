/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rt_event.h"

static pthread_t thread;
static sem_t go;
static int passed;

int event_pass(const char *where)
{
	int (*pass)(void) = rt_event_program;

	if (strcmp(where, "program")) {
		void *library = dlopen(where, RTLD_NOW | RTLD_LOCAL);

		pass = library ? (int (*)(void))dlsym(library, "rt_event_library") : NULL;
	}
	return pass ? pass() : -ENOENT;
}

int event_map(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p = MAP_FAILED;

	if (fd >= 0 && !fstat(fd, &st))
		p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	return p == MAP_FAILED ? -errno : 0;
}

static void *later(void *arg)
{
	(void)arg;
	while (sem_wait(&go))
		;
	passed = rt_event_program();
	return NULL;
}

int event_later(void)
{
	return sem_init(&go, 0, 0) ? -errno : -pthread_create(&thread, NULL, later, NULL);
}

int event_go(void)
{
	sem_post(&go);
	return pthread_join(thread, NULL) ? -ESRCH : passed;
}
