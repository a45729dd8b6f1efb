/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the packets of one application (default: the first) to a pcapng file for some seconds.
 *   cc save.c $(pkg-config --cflags --libs libringtap) -o save && ./save FILE [seconds
 * [file-prefix]]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <ringtap/reader.h>

struct file {
	FILE *f;
	const struct ringtap_capture *cap;
	unsigned interfaces; /* that have their block */
	uint64_t start_ns;
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Texts that the library makes are short: the names in these blocks always fit. */
static char block[4096];

static int put_block(struct file *file, int len)
{
	if (len < 0)
		return len;
	if ((size_t)len > sizeof(block))
		return -ENOSPC;
	return fwrite(block, (size_t)len, 1, file->f) == 1 ? 0 : -EIO;
}

/* Ports may appear at any time; their blocks stand before their packets. */
static int put_interfaces(struct file *file)
{
	int ret = 0;

	while (!ret && file->interfaces < ringtap_capture_interface_count(file->cap))
		ret = put_block(file, ringtap_pcapng_interface(file->cap, file->interfaces++, block,
					      sizeof(block), NULL));
	return ret;
}

static int put_head(struct file *file)
{
	const struct ringtap_pcapng_section_options o = {
		.size = sizeof(o), .application = "save", .comment = "an example"};
	int ret = put_block(file, ringtap_pcapng_section(block, sizeof(block), &o));

	return ret ? ret : put_interfaces(file);
}

static int put_statistics(struct file *file)
{
	const struct ringtap_pcapng_statistics_options o = {
		.size = sizeof(o), .start_ns = file->start_ns, .end_ns = now_ns(CLOCK_REALTIME)};
	int ret = 0;

	for (unsigned i = 0; !ret && i < file->interfaces; i++)
		ret = put_block(
			file, ringtap_pcapng_statistics(file->cap, i, block, sizeof(block), &o));
	return ret;
}

/* Packets of a single application lie in the ring as they stand in the file. With several, the
 * numbers of the interfaces have to be changed, in a copy. */
static int put_run(struct file *file, const struct ringtap_run *run)
{
	const void *blocks = ringtap_run_pcapng(run, NULL, 0);
	void *copy = NULL;
	int ret;

	if (!blocks) {
		copy = malloc(run->bytes);
		if (!copy)
			return -ENOMEM;
		blocks = ringtap_run_pcapng(run, copy, run->bytes);
	}
	if (!blocks)
		ret = -EBADMSG; /* the application has overwritten them */
	else
		ret = fwrite(blocks, run->bytes, 1, file->f) == 1 ? 0 : -EIO;
	free(copy);
	return ret;
}

static int save(struct ringtap_capture *cap, struct file *file, unsigned seconds)
{
	uint64_t end_ns = now_ns(CLOCK_MONOTONIC) + seconds * 1000000000ull;
	struct ringtap_run runs[64];
	int ret = put_head(file), n = 0;

	while (!ret && (n = ringtap_capture_next(cap, runs, 64, 100)) >= 0) {
		ret = put_interfaces(file);
		for (int i = 0; i < n && !ret; i++)
			ret = put_run(file, &runs[i]);
		ringtap_capture_release(cap);
		if (now_ns(CLOCK_MONOTONIC) >= end_ns)
			ringtap_capture_stop(cap); /* and on until everything is handed out */
	}
	if (!ret && n != -EPIPE)
		ret = n;
	return ret ? ret : put_statistics(file);
}

static const char *find(const struct ringtap_apps *apps, const char *name)
{
	for (size_t i = 0; i < ringtap_apps_count(apps); i++)
		if (!name || !strcmp(ringtap_apps_name(apps, i), name))
			return ringtap_apps_dir(apps, i);
	return NULL;
}

int main(int argc, char **argv)
{
	struct ringtap_target all = {.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX};
	struct file file = {.start_ns = now_ns(CLOCK_REALTIME)};
	struct ringtap_capture *cap;
	struct ringtap_apps *apps;
	const char *dir;
	int ret;

	if (argc < 2)
		return fprintf(stderr, "usage: save FILE [SECONDS [FILE-PREFIX]]\n"), 2;
	if (ringtap_apps_find(&apps) || ringtap_capture_create(&cap, NULL))
		return fprintf(stderr, "not enough memory\n"), 1;
	dir = find(apps, argc > 3 ? argv[3] : NULL);
	if (!dir)
		return fprintf(stderr, "no such DPDK application\n"), 1;
	if (ringtap_capture_attach(cap, dir, &all, 1, NULL) || ringtap_capture_start(cap))
		return fprintf(stderr, "%s\n", ringtap_capture_error(cap)), 1;
	file.cap = cap;
	umask(077); /* packets are for this user only */
	file.f = fopen(argv[1], "wb");
	if (!file.f)
		return perror(argv[1]), 1;
	ret = save(cap, &file, argc > 2 ? (unsigned)atoi(argv[2]) : 3);
	if (fclose(file.f) && !ret)
		ret = -errno;
	if (ret)
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-ret));
	ringtap_capture_close(cap);
	ringtap_apps_free(apps);
	return ret != 0;
}
