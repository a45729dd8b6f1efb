/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "anonymize/blocks.h"
#include "anonymize/key.h"
#include "base/out_file.h"
#include "base/util.h"
#include "cli/commands.h"
#include "common/array.h"
#include "packet/unpack.h"

#define OUT_BUFFER (1u << 20)

struct anonymize_options {
	const char *in, *out, *key;
	enum payload payload;
	bool group_read, quiet;
};

#define TO(field) OPTION_TO(struct anonymize_options, field)

/* clang-format off: it would break the texts at odd places */
static const struct option_def options[] = {
	{TO(out), OPTION_FILE, 'w', "write", "FILE", NULL, 0, 0,
		"The anonymous file, in the format of the recording; - is standard output"},
	{TO(payload), OPTION_CHOICE, 0, "payload", PAYLOAD_CHOICES, PAYLOAD_CHOICES, 0, 0,
		"What becomes of bytes behind the headers: cut them off (the default), replace "
		"them with zeros, or keep the payload of TCP, UDP, SCTP and ICMP echo"},
	{TO(key), OPTION_FILE, 0, "key", "FILE", NULL, 0, 0,
		"Key of the pseudonyms; a file that is missing is made, with a random key. Without "
		"it each run has a random key, so that two files do not have the same pseudonyms"},
	{TO(group_read), OPTION_FLAG, 'g', "group", NULL, NULL, 0, 0,
		"Let the group read the file (mode 0640 instead of 0600)"},
	{TO(quiet), OPTION_FLAG, 'q', "quiet", NULL, NULL, 0, 0,
		"Print no summary on standard error"},
};
/* clang-format on */

static int add_file(void *ctx, const char *text)
{
	struct anonymize_options *c = ctx;

	if (c->in)
		return message_fail(-EINVAL,
			"anonymize: %s: one file at a time; run it again for "
			"another one",
			text);
	c->in = text;
	return 0;
}

/* A run of the command. */
struct work {
	const struct anonymize_options *c;
	struct anonymizer a;
	struct window in;
	FILE *out;
	uint8_t *buf; /* for a block, or a packet */
	size_t room;
	uint64_t packets, left_out, unknown; /* packets, blocks, packets of unknown link types */
};

static int put(struct work *w, size_t len)
{
	return fwrite_unlocked(w->buf, 1, len, w->out) == len ? 0 : -errno;
}

static const char *name_in(const struct work *w)
{
	return strcmp(w->c->in, "-") ? w->c->in : "standard input";
}

static int failed_in(const struct work *w, const char *why)
{
	char n[FORMAT_LEN];

	if (!w->packets)
		return message_fail(
			-EBADMSG, "anonymize: %s: %s; no packet is written", name_in(w), why);
	return message_fail(-EBADMSG, "anonymize: %s: %s; the %s packets before that are written",
		name_in(w), why, format_count(n, w->packets));
}

/* ---- pcapng ---- */

static int put_block(struct work *w, int kind, const struct block *b)
{
	size_t len;

	if (rt_array_room(w->buf, w->room, b->len + ANONYMIZE_MORE))
		return -ENOMEM;
	len = anonymize_block(&w->a, kind, b, w->buf);
	w->left_out += !len;
	if (kind == BLOCK_PACKET) {
		w->packets++;
		w->unknown += !anonymize_knows(b->linktype);
	}
	return put(w, len);
}

static int copy_pcapng(struct work *w)
{
	struct block b;
	int kind, ret = 0;

	blocks_start(&w->a.blocks, &w->in);
	w->in = (struct window){.fd = -1};
	while (!ret && (kind = blocks_next(&w->a.blocks, &b)) > 0)
		ret = put_block(w, kind, &b);
	if (ret)
		return ret;
	if (kind < 0)
		return failed_in(w, unpack_error(kind));
	return w->a.blocks.torn[0] ? failed_in(w, w->a.blocks.torn) : 0;
}

/* ---- pcap ---- */

struct stream {
	struct window *w;
	uint64_t at;
	int error;
};

static ssize_t read_stream(void *cookie, char *buf, size_t size)
{
	struct stream *s = cookie;
	const uint8_t *p;
	ssize_t n = window_peek(s->w, s->at, 1, &p);

	if (n < 0) {
		s->error = (int)n;
		errno = EIO;
		return -1;
	}
	n = (size_t)n < size ? n : (ssize_t)size;
	memcpy(buf, p, (size_t)n);
	s->at += (uint64_t)n;
	return n;
}

static int put_packet(struct work *w, pcap_dumper_t *to, uint16_t linktype,
	const struct pcap_pkthdr *h, const uint8_t *data)
{
	struct pcap_pkthdr made = *h;

	if (rt_array_room(w->buf, w->room, h->caplen + 1))
		return -ENOMEM;
	made.caplen = (uint32_t)anonymize_packet(
		w->a.names, w->a.payload, linktype, data, h->caplen, h->len, w->buf);
	pcap_dump((uint8_t *)to, &made, w->buf);
	w->packets++;
	w->unknown += !anonymize_knows(linktype);
	return !ferror(w->out) ? 0 : errno == EPIPE ? -EPIPE : -EIO;
}

static int copy_packets(struct work *w, pcap_t *from, const struct stream *s)
{
	pcap_dumper_t *to = pcap_dump_fopen(from, w->out);
	const uint16_t linktype = (uint16_t)pcap_datalink(from);
	struct pcap_pkthdr *h;
	const uint8_t *data;
	int n = 0, ret = to ? 0 : failed_in(w, pcap_geterr(from));

	while (!ret && (n = pcap_next_ex(from, &h, &data)) > 0)
		ret = put_packet(w, to, linktype, h, data);
	if (!ret && n == PCAP_ERROR)
		ret = failed_in(w, s->error ? unpack_error(s->error) : pcap_geterr(from));
	return ret;
}

static int copy_pcap(struct work *w)
{
	struct stream s = {.w = &w->in};
	FILE *f = fopencookie(&s, "r", (cookie_io_functions_t){.read = read_stream});
	char err[PCAP_ERRBUF_SIZE];
	pcap_t *from =
		f ? pcap_fopen_offline_with_tstamp_precision(f, PCAP_TSTAMP_PRECISION_NANO, err)
		  : NULL;
	int ret;

	if (!from) {
		if (f)
			fclose(f);
		return !f ? -ENOMEM
			  : message_fail(-EBADMSG,
				    "anonymize: %s: not a recording (%s), no packet is written; "
				    "give a file in pcap or pcapng",
				    name_in(w), err);
	}
	ret = copy_packets(w, from, &s);
	pcap_close(from);
	return ret;
}

/* ---- the command ---- */

static int copy(struct work *w)
{
	static const uint8_t section[4] = {0x0a, 0x0d, 0x0d, 0x0a};
	const uint8_t *p;
	ssize_t n = window_peek(&w->in, 0, sizeof(section), &p);

	if (n < 0)
		return failed_in(w, unpack_error((int)n));
	if (!n)
		return failed_in(w, "it is empty");
	return n >= (ssize_t)sizeof(section) && !memcmp(p, section, sizeof(section))
		       ? copy_pcapng(w)
		       : copy_pcap(w);
}

static void report(const struct work *w)
{
	char n[FORMAT_LEN];

	fprintf(stderr, "%s packets\n", format_count(n, w->packets));
	if (w->left_out)
		fprintf(stderr, "left out: %s blocks that are not packets or counters\n",
			format_count(n, w->left_out));
	if (w->unknown)
		message_print("anonymize: %s packets have a link type that is not read; nothing of "
			      "them is written but time and length",
			format_count(n, w->unknown));
}

static int open_output(struct out_file *o, const struct anonymize_options *c)
{
	int ret = 0;

	if (strcmp(c->out, "-")) {
		ret = out_file_open_packets(o, "anonymize", c->out, c->group_read);
	} else {
		*o = (struct out_file){
			.path = "standard output", .f = fdopen(dup(STDOUT_FILENO), "w")};
		ret = o->f ? 0 : message_fail(-EIO, "anonymize: %s: %s", o->path, strerror(errno));
	}
	if (!ret)
		setvbuf(o->f, NULL, _IOFBF, OUT_BUFFER);
	return ret;
}

/* Whether the reader of standard output has closed it: it has what it wants. */
static bool has_enough(const struct work *w, int ret)
{
	if (strcmp(w->c->out, "-"))
		return false;
	return ret == -EPIPE || (!ret && fflush(w->out) && errno == EPIPE);
}

/* The packets before damage are good; a file without any is removed. 0 or -errno. */
static int close_output(const struct work *w, struct out_file *o, int error)
{
	if (error != -EBADMSG)
		return out_file_close(o, "anonymize", error);
	if (!w->packets && !fflush(o->f))
		(void)!ftruncate(fileno(o->f), 0);
	return out_file_close(o, "anonymize", 0);
}

/* The input is opened first: an output that exists stays as it is if that fails. */
static int run_with(const struct anonymize_options *c)
{
	struct work w = {.c = c, .a = {.payload = c->payload, .blocks = {.w.fd = -1}}};
	struct out_file out = {0};
	int ret = unpack_open(&w.in, c->in);

	if (ret)
		message_print("anonymize: %s: %s", name_in(&w), unpack_error(ret));
	else if (!(w.a.names = key_open("anonymize", c->key, c->out)) || open_output(&out, c))
		ret = -EIO;
	if (!ret) {
		w.out = out.f;
		ret = copy(&w);
		if (has_enough(&w, ret)) {
			fclose(out.f);
			out.f = NULL;
			ret = 0;
		}
		if (close_output(&w, &out, ret))
			ret = -EIO;
		/* After another error the file is removed. */
		if (!c->quiet && (!ret || (ret == -EBADMSG && w.packets)))
			report(&w);
	}
	window_close(&w.in);
	anonymizer_free(&w.a);
	pseudonyms_free(w.a.names);
	free(w.buf);
	return ret ? STATUS_FAILED : STATUS_OK;
}

static bool check(const struct anonymize_options *c)
{
	if (!c->in)
		return message_fail(
			false, "anonymize: no file is given; see 'ringtap anonymize --help'");
	if (!c->out)
		return message_fail(false, "anonymize: the result has no name; add -w FILE");
	if (!strcmp(c->out, "-") && isatty(STDOUT_FILENO))
		return message_fail(false,
			"anonymize: -w -: standard output is a terminal; send it to a file or a "
			"program");
	return !out_file_check("anonymize", c->out, &c->in, 1);
}

static int run(const struct command *self, int argc, char **argv)
{
	struct anonymize_options c = {.payload = PAYLOAD_CUT};
	int ret = options_parse(self, argc, argv, &c);

	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	return check(&c) ? run_with(&c) : STATUS_USAGE;
}

const struct command cmd_anonymize = {
	.name = "anonymize",
	.summary = "copy a recording without addresses, payload and names",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = "FILE",
	.operand = add_file,
	.run = run,
};
