/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pcm-iio -csv prints a line of names and a line of numbers for each part of each PCIe stack, again
 * and again. Which counters a processor has, Intel's opCode-*.txt say: "IOTLB Miss" all of them,
 * "IOTLB Lookup" or "IOTLB Hit" some.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pcm.h"

#define COLUMNS_MAX 128
#define OUTPUT_MAX  (64 << 20) /* bytes */

/* In the child, which ends with its parent: it must not count for ever. */
static void become_pcm_iio(int out, int failed, pid_t parent)
{
	char *argv[] = {"pcm-iio", "1", "-silent", "-csv", NULL};
	int null = open("/dev/null", O_RDWR), error = ESRCH;
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0); /* Ctrl-C is for the parent */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() == parent && null >= 0 && dup2(null, 0) == 0 && dup2(out, 1) == 1 &&
		dup2(null, 2) == 2) {
		execvp(argv[0], argv);
		error = errno;
	}
	(void)!write(failed, &error, sizeof(error));
	_exit(1);
}

/* 0 or -errno, also of the child before exec(), which closes the pipe. */
static int spawn(struct pcm_iio *p)
{
	pid_t parent = getpid();
	int failed[2], error = 0;

	if (pipe2(failed, O_CLOEXEC))
		return -errno;
	p->pid = fork();
	if (p->pid == 0)
		become_pcm_iio(p->fd, failed[1], parent);
	close(failed[1]);
	if (p->pid < 0)
		error = errno;
	else if (read(failed[0], &error, sizeof(error)) == sizeof(error))
		(void)waitpid(p->pid, NULL, 0);
	close(failed[0]);
	return -error;
}

void pcm_iio_begin(struct pcm_iio *p)
{
	int ret;

	*p = (struct pcm_iio){.why = "Intel PCM's pcm-iio could not be started"};
	p->fd = memfd_create("pcm-iio", MFD_CLOEXEC);
	if (p->fd < 0)
		return;
	ret = spawn(p);
	if (!ret)
		return;
	if (ret == -ENOENT)
		p->why = "Intel PCM's pcm-iio is not installed";
	p->pid = 0;
	close(p->fd);
}

/* Splits a line at its commas. Returns the number of columns. */
static unsigned split(char *line, char *columns[COLUMNS_MAX])
{
	unsigned n = 0;

	for (char *at = line; at && n < COLUMNS_MAX;)
		columns[n++] = strsep(&at, ",");
	return n;
}

struct kinds {
	bool miss[COLUMNS_MAX], lookup[COLUMNS_MAX], hit[COLUMNS_MAX], any;
};

static bool learn(struct kinds *k, char *columns[COLUMNS_MAX], unsigned n)
{
	bool names = false;

	for (unsigned i = 0; i < n && !names; i++)
		names = !strcmp(columns[i], "Part");
	if (!names)
		return false;
	memset(k, 0, sizeof(*k));
	for (unsigned i = 0; i < n; i++) {
		k->miss[i] = !strcmp(columns[i], "IOTLB Miss");
		k->lookup[i] = !strcmp(columns[i], "IOTLB Lookup");
		k->hit[i] = !strcmp(columns[i], "IOTLB Hit");
		k->any |= k->miss[i];
	}
	return true;
}

bool pcm_iio_parse(struct pcm_iio *p, char *text)
{
	char *columns[COLUMNS_MAX], *line;
	uint64_t lookups = 0, hits = 0;
	bool has_lookups = false, has_hits = false, any = false;
	struct kinds k = {0};

	p->misses = 0;
	while ((line = strsep(&text, "\n"))) {
		unsigned n = split(line, columns);

		if (learn(&k, columns, n) || !k.any)
			continue;
		for (unsigned i = 0; i < n; i++) {
			uint64_t v = strtoull(columns[i], NULL, 10);

			p->misses += k.miss[i] ? v : 0;
			lookups += k.lookup[i] ? v : 0;
			hits += k.hit[i] ? v : 0;
			any |= k.miss[i];
			has_lookups |= k.lookup[i];
			has_hits |= k.hit[i];
		}
	}
	p->has_lookups = has_lookups || has_hits;
	p->lookups = has_lookups ? lookups : has_hits ? hits + p->misses : 0;
	return any;
}

static char *output(int fd)
{
	struct stat st;
	char *text;
	ssize_t n;

	if (fstat(fd, &st) || st.st_size > OUTPUT_MAX)
		return NULL;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return NULL;
	n = pread(fd, text, (size_t)st.st_size, 0);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

/* Asks it to end, and waits: it puts the counters back first, which must not take long. */
static void end_child(pid_t pid)
{
	kill(pid, SIGTERM);
	for (int i = 0; i < 200; i++) {
		if (waitpid(pid, NULL, WNOHANG) != 0)
			return;
		(void)usleep(10000);
	}
	kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

void pcm_iio_end(struct pcm_iio *p)
{
	char *text;

	if (!p->pid)
		return;
	end_child(p->pid);
	text = output(p->fd);
	p->why = text && pcm_iio_parse(p, text) ? NULL : "pcm-iio has none on this machine";
	free(text);
	close(p->fd);
	p->pid = 0;
}
