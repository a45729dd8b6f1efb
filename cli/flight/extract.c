/* SPDX-License-Identifier: BSD-3-Clause */
/* ringtap flight extract: packets of incidents that match a filter, as a pcapng file. */
#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/packet_file.h"
#include "base/util.h"
#include "packet/blocks.h"
#include "packet/inner.h"
#include "common/foreign.h"
#include "sink/sink.h"
#include "ringtap/open.h"
#include "extract.h"
#include "folder.h"

#define OUT_BYTES RT_PCAPNG_BLOCK_MAX
#define TYPES_MAX 8 /* link types of all files; ringtap-host has four */

struct extraction {
	struct sink *sink;
	uint8_t *out; /* whole blocks that are not written yet */
	size_t fill;
	uint64_t packets, written; /* packets in out and in the file, and in the file */
	const char *expression;    /* NULL: all packets */
	enum ringtap_tags tags;
	bool inner;
	struct filter filters[TYPES_MAX];
	uint16_t types[TYPES_MAX]; /* LINKTYPE_… that the filters are for */
	bool known[TYPES_MAX];     /* the expression has a meaning */
	unsigned type_count;
};

static int push(struct extraction *x)
{
	struct iovec iov = {.iov_base = x->out, .iov_len = x->fill};
	int ret = x->fill ? sink_write(x->sink, &iov, 1, x->written) : 0;

	x->fill = 0;
	x->written = x->packets;
	return ret;
}

static int put(struct extraction *x, const struct block *b)
{
	int ret = x->fill + b->len > OUT_BYTES ? push(x) : 0;

	if (ret)
		return ret;
	memcpy(x->out + x->fill, b->bytes, b->len);
	x->fill += b->len;
	return 0;
}

/* Also programs that no application would run: with loops, or longer. */
static int compile_plain(
	struct extraction *x, struct filter *f, uint16_t linktype, char *err, size_t size)
{
	pcap_t *pcap = pcap_open_dead(filter_dlt(linktype), RINGTAP_SNAPLEN_MAX);
	struct bpf_program made;
	int ret;

	*f = (struct filter){0};
	if (!pcap)
		return -ENOMEM;
	ret = ringtap_filter_compile(
		pcap_compile, x->tags, pcap, &made, x->expression, 1, PCAP_NETMASK_UNKNOWN);
	if (ret)
		snprintf(err, size, "%s", pcap_geterr(pcap));
	else /* both are freed by free() */
		*f = (struct filter){
			.insns = (struct ringtap_insn *)made.bf_insns, .len = made.bf_len};
	pcap_close(pcap);
	return ret ? -EINVAL : 0;
}

static int compile(struct extraction *x, uint16_t linktype)
{
	unsigned n = x->type_count;
	char err[512] = "not enough memory";
	int ret;

	if (n == TYPES_MAX)
		return -E2BIG;
	ret = x->inner ? filter_compile_inner(&x->filters[n], true, x->expression, x->tags,
				 linktype, err, sizeof(err))
		       : compile_plain(x, &x->filters[n], linktype, err, sizeof(err));
	if (ret)
		message_print(
			"flight extract: filter '%s': %s; see pcap-filter(7)", x->expression, err);
	x->types[n] = linktype;
	x->known[n] = !ret;
	x->type_count++;
	return ret;
}

/* Before there is a file: whether there is such an expression. */
static int check(struct extraction *x, const char *expression)
{
	if (!expression || !*expression)
		return 0;
	x->expression = expression;
	return compile(x, RINGTAP_LINKTYPE_ETHERNET);
}

static void free_filters(struct extraction *x)
{
	for (unsigned i = 0; i < x->type_count; i++)
		if (x->known[i])
			filter_free(&x->filters[i]);
}

/* A filter is of one link type. Where it means nothing for that of a packet (vlan without
 * Ethernet), that is printed once, and none of its packets match. */
static bool matches(struct extraction *x, const struct block *b)
{
	unsigned i = 0;

	while (i < x->type_count && x->types[i] != b->linktype)
		i++;
	if (i == x->type_count && compile(x, b->linktype))
		return false;
	return x->known[i] && bpf_filter((const struct bpf_insn *)x->filters[i].insns, b->data,
				      b->length, b->captured);
}

/* Other blocks than packets stay: sections and interfaces, and the counts of the window. */
static int put_matching(struct extraction *x, int kind, const struct block *b)
{
	if (kind != BLOCK_PACKET)
		return put(x, b);
	if (x->expression && !matches(x, b))
		return 0;
	x->packets++;
	return put(x, b);
}

/* 0, also where the file is damaged: torn has the reason. */
static int copy(struct extraction *x, int fd, char torn[TORN_TEXT])
{
	struct blocks b = {0};
	struct block block;
	int kind = 0, ret = window_open(&b.w, fd);

	while (!ret && (kind = blocks_next(&b, &block)) > 0)
		ret = put_matching(x, kind, &block);
	memcpy(torn, b.torn, TORN_TEXT);
	blocks_close(&b);
	return ret ? ret : kind;
}

/* The packets of an incident, by its name in a folder or by its path. -errno. */
static int open_incident(const char *folder, const char *name)
{
	bool own = strchr(name, '/');
	char *path = folder_path(
		own ? name : folder, own ? FLIGHT_PACKETS : name, own ? NULL : FLIGHT_PACKETS);
	struct stat st;
	int ret = path ? rt_foreign_open(AT_FDCWD, path, 0, &st) : -ENOMEM;

	free(path);
	/* The folder's fault is not the incident's. */
	if (ret >= 0 || (!own && folder_check("extract", folder)))
		return ret;
	return message_fail(ret,
		"flight extract: %s: %s; 'ringtap flight list%s%s' shows what there is", name,
		strerror(-ret), own ? "" : " --folder ", own ? "" : folder);
}

static bool same_file(int fd, const char *path)
{
	struct stat a, b;

	return strcmp(path, "-") && !stat(path, &b) && !fstat(fd, &a) && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static int copy_all(struct extraction *x, const struct extract *e)
{
	char torn[TORN_TEXT];
	int ret = 0, bad = 0;

	for (unsigned i = 0; i < e->count && !ret; i++) {
		int fd = open_incident(e->folder, e->names[i]);

		if (fd < 0)
			return fd;
		ret = copy(x, fd, torn);
		close(fd);
		if (!torn[0])
			continue;
		message_print("flight extract: %s: %s; what comes before it is extracted",
			e->names[i], torn);
		bad = -EBADMSG;
	}
	if (!ret)
		ret = push(x);
	if (ret)
		message_print("flight extract: writing %s: %s%s", e->output, strerror(-ret),
			write_advice(ret));
	return ret ? ret : bad;
}

static int check_output(const struct extract *e)
{
	if (!strcmp(e->output, "-") && isatty(STDOUT_FILENO))
		return message_fail(-EINVAL,
			"flight extract: standard output is a terminal; give a file by -w");
	for (unsigned i = 0; i < e->count; i++) {
		int fd = open_incident(e->folder, e->names[i]);
		bool same = fd >= 0 && same_file(fd, e->output);

		if (fd < 0)
			return fd;
		close(fd);
		if (!same)
			continue;
		return message_fail(-EINVAL,
			"flight extract: -w %s: that is the incident's own file; give "
			"another one",
			e->output);
	}
	return 0;
}

static int run(struct extraction *x, const struct extract *e)
{
	const struct sink_options options = {.format = SINK_PCAPNG, .no_direct = true};
	uint64_t bytes, packets;
	int ret = sink_open(&x->sink, e->output, &options), end;

	if (!ret && (ret = sink_start(x->sink)))
		sink_abandon(x->sink);
	if (ret)
		return message_fail(ret, "flight extract: cannot write '%s': %s", e->output,
			packet_file_error(ret));
	ret = copy_all(x, e);
	packets = x->packets;
	end = sink_close(x->sink, &bytes, &packets);
	if (!ret && end)
		message_print("flight extract: writing %s: %s%s", e->output, strerror(-end),
			write_advice(end));
	if (strcmp(e->output, "-"))
		fprintf(stderr, "%llu packets\n", (unsigned long long)packets);
	return ret ? ret : end;
}

int extract_run(const struct extract *e)
{
	struct extraction x = {.tags = e->tags, .inner = e->inner};
	int ret = check(&x, e->filter);

	if (ret)
		return ret == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
	ret = check_output(e);
	if (!ret) {
		x.out = malloc(OUT_BYTES);
		ret = x.out ? run(&x, e) : -ENOMEM;
	}
	free(x.out);
	free_filters(&x);
	return ret == -EINVAL ? STATUS_USAGE : ret ? STATUS_FAILED : STATUS_OK;
}
