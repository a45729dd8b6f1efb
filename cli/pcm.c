/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pcm-iio -csv prints a line of names and a line of numbers for each part of each PCIe stack, again
 * and again. Which counters a processor has, Intel's opCode-*.txt say: "IOTLB Miss" all of them,
 * "IOTLB Lookup" or "IOTLB Hit" some.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pcm.h"

#define COLUMNS_MAX 128
#define OUTPUT_MAX  (64 << 20) /* bytes */

extern char **environ;

static int spawn(struct pcm_iio *p)
{
	char *argv[] = {"pcm-iio", "1", "-silent", "-csv", NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	int ret;

	/* We block the signals that are to end it. */
	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	/* Ctrl-C is for us. */
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, p->fd, 1);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	ret = posix_spawnp(&p->pid, argv[0], &actions, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return ret;
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
	if (ret == ENOENT)
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

void pcm_iio_end(struct pcm_iio *p)
{
	char *text;

	if (!p->pid)
		return;
	kill(p->pid, SIGTERM);
	/* It puts the counters back first, which must not take long. */
	for (int i = 0; i < 200 && waitpid(p->pid, NULL, WNOHANG) == 0; i++) {
		if (i == 199) {
			kill(p->pid, SIGKILL);
			(void)waitpid(p->pid, NULL, 0);
			break;
		}
		(void)usleep(10000);
	}
	text = output(p->fd);
	p->why = text && pcm_iio_parse(p, text) ? NULL : "pcm-iio has none on this machine";
	free(text);
	close(p->fd);
	p->pid = 0;
}
