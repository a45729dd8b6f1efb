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
#include "base/util.h"

static int open_path(struct recorder *r, const char *path)
{
	int ret = output_open(&r->file.out, &r->cfg->output, path, &signals_patience);

	if (ret)
		return ret;
	ret = files_add(&r->files, path);
	if (ret == -ENOMEM)
		return ret;
	if (ret)
		message_print("%s: removing the oldest file: %s; going on", r->cfg->capture.command,
			strerror(-ret));
	return 0;
}

/* Opens the next file of a ring buffer, or the only one. */
static int open_next(struct recorder *r)
{
	char *name = NULL;
	int ret;

	if (!r->cfg->rotating)
		return open_path(r, r->path);
	name = file_name(
		r->path, r->files.made + 1, (time_t)(r->file_ns / NS_PER_S), r->cfg->time_first);
	if (!name)
		return -ENOMEM;
	ret = open_path(r, name);
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
	int ret = -ENOMEM;

	r->file_ns = now_ns(CLOCK_REALTIME);
	r->path = r->cfg->path ? strdup(r->cfg->path) : own_name(r);
	r->files.keep = r->cfg->rotate.files;
	if (!r->path)
		return ret;
	if (!strcmp(r->path, "-") && isatty(STDOUT_FILENO)) {
		message_print(
			"%s: -w -: standard output is a terminal; send it to a file or a program",
			r->cfg->capture.command);
		return -EINVAL;
	}
	ret = open_next(r);
	if (ret)
		message_print("%s: cannot write '%s': %s", r->cfg->capture.command,
			r->bad_path ? r->bad_path : r->path, packet_file_error(ret));
	else if (!r->cfg->path && !r->cfg->rotating)
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

int file_begin(struct recorder *r)
{
	int ret;

	r->file_ns = now_ns(CLOCK_REALTIME);
	ret = r->file.out.sink ? 0 : open_next(r);
	if (ret)
		return ret;
	r->file_mono_ns = now_ns(CLOCK_MONOTONIC);
	r->file.cap = r->cap;
	r->file.comments = r->cfg->comments;
	r->file.nic_time = r->cfg->capture.options.timestamp == RINGTAP_NIC;
	r->file.snaplen = common_snaplen(r);
	r->file.describe = describe;
	r->file.ctx = r;
	r->file.out.linktype = linktype_of_pcap(r);
	ret = capture_file_start(&r->file);
	return ret ?: record_fates_begin_file(r);
}

/* Packets of interface i in the file. Before the end known only if there is one interface. */
static void set_delivered(const struct recorder *r, unsigned i, bool final,
	struct ringtap_pcapng_statistics_options *o)
{
	o->has_delivered = final || r->share_count == 1;
	o->delivered =
		final ? r->shares[i].counts.captured - r->shares[i].discarded : recorder_written(r);
}

static int put_statistics(struct recorder *r, unsigned i, bool final)
{
	struct ringtap_pcapng_statistics_options o = {.size = sizeof(o), .start_ns = r->start_ns};
	char comment[64], clock[CLOCK_TEXT_LEN];

	set_delivered(r, i, final, &o);
	if (final) {
		snprintf(comment, sizeof(comment), "capture ended by: %s", end_name(r->end));
		o.end_ns = r->end_ns;
		o.comment = comment;
	}
	if (i == 0) {
		(void)clock_check(&r->clock);
		clock_report(clock, &r->clock);
		o.clock = clock;
		r->clock.set_ns = 0;
	}
	return capture_file_statistics(&r->file, i, &o);
}

int file_statistics(struct recorder *r, bool final)
{
	int ret = r->cfg->output.pcap ? 0 : shares_update(r);

	/* shares may know of interfaces that the file does not describe yet. */
	for (unsigned i = 0; i < r->file.interfaces && !ret && !r->cfg->output.pcap; i++)
		ret = put_statistics(r, i, final);
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

int file_end(struct recorder *r, bool final)
{
	struct file *f = files_last(&r->files);
	int first = file_statistics(r, final);
	int ret = output_close(&r->file.out, &f->bytes, &f->packets);

	r->written += f->packets;
	if (!ret && print_name(r, f->name))
		message_print("%s: -b printname:%s: cannot be written; going on",
			r->cfg->capture.command, r->cfg->print_name);
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
