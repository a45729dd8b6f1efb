/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "counts.h"
#include "file.h"
#include "record.h"
#include "report.h"
#include "signals.h"
#include "base/packet_file.h"
#include "common/array.h"
#include "base/util.h"

/* Packets that are recorded of any interface. */
static unsigned directions(const struct recorder *r)
{
	unsigned all = 0;

	for (unsigned i = 0; i < r->cfg->capture.iface_count; i++)
		all |= r->cfg->capture.ifaces[i].directions;
	return all;
}

static int add_parts(struct recorder *r, unsigned count)
{
	while (r->part_count < count) {
		struct part *p = rt_array_add(r->parts, r->part_count);
		int ret = p ? output_init(&p->file.out, &r->cfg->output,
				      capture_config_snaplen(&r->cfg->capture, NULL))
			    : -ENOMEM;

		if (ret)
			return ret;
	}
	return 0;
}

static int open_path(struct recorder *r, struct part *p, const char *path)
{
	int ret = output_open(&p->file.out, &r->cfg->output, path, &signals_patience);

	if (ret)
		return ret;
	ret = files_add(&r->files, path);
	if (ret == -ENOMEM)
		return ret;
	p->listed = r->files.count - 1;
	if (ret)
		message_print("%s: removing the oldest file: %s; going on", r->cfg->capture.command,
			strerror(-ret));
	return 0;
}

/* PATH_p0.EXT, with several applications PATH_APP_p0.EXT; PATH_rx.EXT. A name that an earlier part
 * has is followed by the number of this one. */
static char *part_name(const struct recorder *r, unsigned part)
{
	struct ringtap_interface info = {.size = sizeof(info)};
	char what[2 * RINGTAP_NAME_LEN + 16];
	char *name;

	if (r->cfg->split == SPLIT_DIRECTION)
		snprintf(what, sizeof(what), "%s",
			part || !(directions(r) & RINGTAP_RX) ? "tx" : "rx");
	else if (!ringtap_capture_interface(r->cap, part, &info))
		snprintf(what, sizeof(what), "%s%s%s", r->targets.count > 1 ? info.app_name : "",
			r->targets.count > 1 ? "_" : "", info.name);
	name = file_name_part(r->path, what);
	for (size_t i = 0; name && i < r->files.count; i++) {
		if (strcmp(r->files.list[i].name, name))
			continue;
		free(name);
		snprintf(what + strlen(what), 12, "_%u", part);
		return file_name_part(r->path, what);
	}
	return name;
}

/* Opens the next file of a ring buffer, that of a part, or the only one. */
static int open_next(struct recorder *r, struct part *p)
{
	char *name = NULL;
	int ret;

	if (!r->cfg->rotating && !r->cfg->split)
		return open_path(r, p, r->path);
	name = r->cfg->split ? part_name(r, (unsigned)(p - r->parts))
			     : file_name(r->path, r->files.made + 1,
				       (time_t)(r->file_ns / NS_PER_S), r->cfg->time_first);
	if (!name)
		return -ENOMEM;
	ret = open_path(r, p, name);
	/* dumpcap's wording: Wireshark and scripts read it. */
	if (!ret && !r->cfg->quiet)
		fprintf(stderr, "File: %s\n", name);
	if (ret)
		r->bad_path = name;
	else
		free(name);
	return ret;
}

static const struct {
	const char *suffix, *name;
} packers[] = {[COMPRESS_ZSTD] = {".zst", "zstd"}, [COMPRESS_LZ4] = {".lz4", "lz4"}};

static char *own_name(const struct recorder *r)
{
	char extension[32];

	snprintf(extension, sizeof(extension), "%s%s", r->cfg->output.pcap ? ".pcap" : ".pcapng",
		r->cfg->output.compress == COMPRESS_NONE ? ""
							 : packers[r->cfg->output.compress].suffix);
	return file_name_default(
		r->targets.list[0].name, extension, (time_t)(r->file_ns / NS_PER_S));
}

/* Whether name, of that length, ends so; it is then shorter by that. */
static bool cut_suffix(const char *name, size_t *len, const char *suffix)
{
	size_t n = strlen(suffix);

	if (*len <= n || memcmp(name + *len - n, suffix, n))
		return false;
	*len -= n;
	return true;
}

/* Programs go by the name. */
static void check_suffix(const struct recorder *r)
{
	const struct output_options *o = &r->cfg->output;
	const char *command = r->cfg->capture.command, *name = r->path;
	size_t len = strlen(name);
	struct stat st;

	if (!strcmp(name, "-") || (!stat(name, &st) && !S_ISREG(st.st_mode)))
		return;
	for (int i = COMPRESS_ZSTD; i <= COMPRESS_LZ4; i++) {
		bool named = cut_suffix(name, &len, packers[i].suffix);

		if (named && (int)o->compress != i)
			message_print("%s: '%s' is not compressed by %s; add --compress %s, or "
				      "choose another name",
				command, name, packers[i].name, packers[i].name);
		else if (!named && (int)o->compress == i)
			message_print("%s: '%s' is compressed by %s; choose a name that ends in %s",
				command, name, packers[i].name, packers[i].suffix);
	}
	if (!o->pcap && cut_suffix(name, &len, ".pcap"))
		message_print("%s: '%s' is pcapng; add -P for pcap, or choose another name",
			command, name);
	else if (o->pcap && cut_suffix(name, &len, ".pcapng"))
		message_print(
			"%s: '%s' is pcap; leave out -P, or choose another name", command, name);
}

int file_open_first(struct recorder *r)
{
	struct stat st;
	int ret = -ENOMEM;

	r->file_ns = now_ns(CLOCK_REALTIME);
	r->path = r->cfg->path ? strdup(r->cfg->path) : own_name(r);
	r->files.keep = r->cfg->rotate.files;
	if (!r->path)
		return ret;
	if (!strcmp(r->path, "-") && isatty(STDOUT_FILENO))
		return message_fail(-EINVAL,
			"%s: -w -: standard output is a terminal; send it to a file or a program",
			r->cfg->capture.command);
	if (r->cfg->split && !stat(r->path, &st) && !S_ISREG(st.st_mode))
		return message_fail(-EINVAL,
			"%s: --split: '%s' is not a regular file; give -w FILE, whose name "
			"those of the files begin with",
			r->cfg->capture.command, r->path);
	/* One for each interface: as soon as it is known. */
	if (r->cfg->split == SPLIT_INTERFACE)
		return 0;
	ret = add_parts(r, r->cfg->split && directions(r) == (RINGTAP_RX | RINGTAP_TX) ? 2 : 1);
	for (unsigned i = 0; i < r->part_count && !ret; i++)
		ret = open_next(r, &r->parts[i]);
	if (ret)
		message_print("%s: cannot write '%s': %s", r->cfg->capture.command,
			r->bad_path ? r->bad_path : r->path, packet_file_error(ret));
	else if (!r->cfg->path && !r->cfg->rotating && !r->cfg->split)
		fprintf(stderr, "File: %s\n", r->path);
	else if (!r->cfg->quiet)
		check_suffix(r);
	return ret;
}

/* Applications with little memory cut packets, each at its own length, and a port may come later.
 */
static uint32_t common_snaplen(const struct recorder *r)
{
	struct ringtap_interface info = {.size = sizeof(info)};
	uint32_t least, most = capture_config_snaplen(&r->cfg->capture, &least), known = 0;

	for (unsigned i = 0; !ringtap_capture_interface(r->cap, i, &info); i++)
		known = info.snaplen > known ? info.snaplen : known;
	return known && least == most && r->targets.count == 1 ? known : most;
}

/* A file of pcap has one for all packets. targets_add_links() has checked that they have. */
static uint16_t linktype_of_pcap(const struct recorder *r)
{
	struct ringtap_interface info = {.size = sizeof(info)};

	return ringtap_capture_interface(r->cap, 0, &info) ? RINGTAP_LINKTYPE_ETHERNET
							   : info.linktype;
}

static void describe(const void *ctx, const struct ringtap_interface *info,
	struct ringtap_pcapng_interface_options *o)
{
	const struct recorder *r = ctx;
	const struct iface_config *cfg = targets_iface(&r->targets, &r->cfg->capture, info);

	o->name = cfg->ifname;
	o->description = cfg->ifdescr;
	o->filter = cfg->filter;
}

static int begin_part(struct recorder *r, struct part *p)
{
	int ret = p->file.out.sink ? 0 : open_next(r, p);

	if (ret)
		return ret;
	p->file.cap = r->cap;
	p->file.comments = r->cfg->comments;
	p->file.nic_time = r->cfg->capture.options.timestamp == RINGTAP_NIC;
	p->file.snaplen = common_snaplen(r);
	p->file.describe = describe;
	p->file.ctx = r;
	p->file.out.linktype = linktype_of_pcap(r);
	return capture_file_start(&p->file);
}

/* Files of interfaces that have none yet. */
static int begin_interfaces(struct recorder *r)
{
	unsigned before = r->part_count;
	int ret = 0;

	if (r->cfg->split == SPLIT_INTERFACE)
		ret = add_parts(r, ringtap_capture_interface_count(r->cap));
	for (unsigned i = before; i < r->part_count && !ret; i++)
		ret = begin_part(r, &r->parts[i]);
	return ret;
}

int file_begin(struct recorder *r)
{
	int ret = 0;

	r->file_ns = now_ns(CLOCK_REALTIME);
	for (unsigned i = 0; i < r->part_count && !ret; i++)
		ret = begin_part(r, &r->parts[i]);
	r->file_mono_ns = now_ns(CLOCK_MONOTONIC);
	ret = ret ?: begin_interfaces(r);
	return ret ?: record_fates_begin_file(r);
}

/* Does f() with each file that is open, and returns the first error. */
static int with_each(struct recorder *r, int (*f)(struct capture_file *))
{
	int first = 0;

	for (unsigned i = 0; i < r->part_count; i++) {
		int ret = r->parts[i].file.out.sink ? f(&r->parts[i].file) : 0;

		first = first ? first : ret;
	}
	return first;
}

int file_interfaces(struct recorder *r)
{
	int ret = begin_interfaces(r);

	return ret ?: with_each(r, capture_file_interfaces);
}

static int push(struct capture_file *f)
{
	return output_push(&f->out);
}

int file_push(struct recorder *r)
{
	return with_each(r, push);
}

static int flush(struct capture_file *f)
{
	return output_flush(&f->out);
}

int file_flush(struct recorder *r)
{
	return with_each(r, flush);
}

void file_abandon(struct recorder *r)
{
	for (unsigned i = 0; i < r->part_count; i++)
		if (r->parts[i].file.out.sink)
			sink_abandon(r->parts[i].file.out.sink);
}

void file_free(struct recorder *r)
{
	for (unsigned i = 0; i < r->part_count; i++)
		output_free(&r->parts[i].file.out);
	free(r->parts);
	files_free(&r->files);
}

/* Packets of interface i in the file. Before the end known only if there is one interface, and
 * never of one direction. */
static void set_delivered(const struct recorder *r, unsigned i, bool final,
	struct ringtap_pcapng_statistics_options *o)
{
	o->has_delivered = (final || r->share_count == 1) && r->cfg->split != SPLIT_DIRECTION;
	o->delivered =
		final ? r->shares[i].counts.captured - r->shares[i].discarded : recorder_written(r);
}

static int put_statistics(struct recorder *r, struct part *p, unsigned i, bool final)
{
	struct ringtap_pcapng_statistics_options o = {.size = sizeof(o), .start_ns = r->start_ns};
	char comment[64], clock[CLOCK_TEXT_LEN];

	set_delivered(r, i, final, &o);
	if (final) {
		snprintf(comment, sizeof(comment), "capture ended by: %s", end_name(r->end));
		o.end_ns = r->end_ns;
		o.comment = comment;
	}
	if (i == 0 || r->cfg->split == SPLIT_INTERFACE) {
		clock_report(clock, &r->clock);
		o.clock = clock;
	}
	return capture_file_statistics(&p->file, i, &o);
}

/* Statistics of all interfaces that the file describes, or of its only one. */
static int put_all_statistics(struct recorder *r, struct part *p, bool final)
{
	int ret = 0;

	if (!p->file.out.sink)
		return 0;
	if (r->cfg->split == SPLIT_INTERFACE)
		return put_statistics(r, p, (unsigned)(p - r->parts), final);
	/* shares may know of interfaces that the file does not describe yet. */
	for (unsigned i = 0; i < p->file.interfaces && !ret; i++)
		ret = put_statistics(r, p, i, final);
	return ret;
}

int file_statistics(struct recorder *r, bool final)
{
	int ret;

	if (r->cfg->output.pcap)
		return 0;
	ret = shares_update(r);
	(void)clock_check(&r->clock);
	for (unsigned i = 0; i < r->part_count && !ret; i++)
		ret = put_all_statistics(r, &r->parts[i], final);
	r->clock.set_ns = 0;
	return ret;
}

/* Appends the name of a file that is complete to the file of -b printname. */
static int print_name(const struct recorder *r, const char *name)
{
	const char *to = r->cfg->print_name;
	FILE *f;

	if (!to)
		return 0;
	if (!strcmp(to, "stderr") || !strcmp(to, "stdout") || !strcmp(to, "-")) {
		f = strcmp(to, "stderr") ? stdout : stderr;
		return fprintf(f, "%s\n", name) < 0 || fflush(f) ? -EIO : 0;
	}
	f = fopen(to, r->files.made > 1 ? "ae" : "we");
	if (!f)
		return -errno;
	fprintf(f, "%s\n", name);
	return fclose(f) ? -errno : 0;
}

static int end_part(struct recorder *r, struct part *p)
{
	struct file *f = &r->files.list[p->listed];
	int ret;

	if (!p->file.out.sink)
		return 0;
	ret = output_close(&p->file.out, &f->bytes, &f->packets);
	r->written += f->packets;
	if (!ret && print_name(r, f->name))
		message_print("%s: -b printname:%s: cannot be written; going on",
			r->cfg->capture.command, r->cfg->print_name);
	return ret;
}

int file_end(struct recorder *r, bool final)
{
	int first = file_statistics(r, final), ret = 0;

	for (unsigned i = 0; i < r->part_count; i++) {
		int closed = end_part(r, &r->parts[i]);

		ret = ret ? ret : closed;
	}
	return ret ? ret : first;
}

int file_next(struct recorder *r)
{
	int ret;

	if (r->cfg->stop.files && r->files.made >= r->cfg->stop.files) {
		recorder_end(r, END_FILES, true);
		return 0;
	}
	ret = file_end(r, false);
	return ret ? ret : file_begin(r);
}
