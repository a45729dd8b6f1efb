/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/attach_app.h"
#include "config.h"
#include "listen.h"
#include "base/util.h"

enum {
	OPT_INTERFACE = 1,
	OPT_FILTER,
	OPT_SNAPLEN,
	OPT_IFNAME,
	OPT_IFDESCR,
	OPT_DIRECTION,
	OPT_QUEUE,
	OPT_AUTOSTOP,
	OPT_RING_BUFFER,
	OPT_ON_FULL,
	OPT_TIMESTAMP,
	OPT_IDS,
	OPT_INFER_IDS,
	OPT_FATES,
	OPT_COMMENT,
	OPT_SPLIT,
	OPT_CUT,
	OPT_ALLOW,
	OPT_FIRST,
};

#define STOP_KEYS   "duration|filesize|packets|files"
#define ROTATE_KEYS STOP_KEYS "|interval"
#define NAME_KEYS   "|printname|nametimenum"
enum { KEY_DURATION, KEY_FILESIZE, KEY_PACKETS, KEY_FILES, KEY_INTERVAL };

#define KEYED_ARG "CONDITION:N"

#define TO(field) OPTION_TO(struct record_config, field)

/* clang-format off: it would break the texts at odd places */
const struct option_def record_options[RECORD_OPTION_COUNT] = {
	{.kind = OPTION_HEADING, .help = "What to record"},
	{OPTION_SET(OPT_INTERFACE), OPTION_PORT, 'i', "interface", "APP[:PORT]|PORT", NULL, 0, 0,
		"Record this port, given by its name or number, as the word APP[:PORT] does; may be "
		"given several times. APP is needed only where there are several applications; "
		"alone it means all its ports. Without -i and words: all ports of the only "
		"application, also those that appear later"},
	ATTACH_OPTION(struct record_config, capture.attach),
	{OPTION_SET(OPT_FILTER), OPTION_TEXT, 'f', "filter", "FILTER", NULL, 0, 0,
		"Only packets that match this libpcap expression, see pcap-filter(7). This "
		"option and the next five apply to the -i before them, and without one to all "
		"words and all -i behind them"},
	{OPTION_SET(OPT_SNAPLEN), OPTION_BYTES, 's', "snapshot-length", "BYTES", NULL, 0,
		RINGTAP_SNAPLEN_MAX, "Capture at most BYTES of each packet (default: 0, all)"},
	{OPTION_SET(OPT_DIRECTION), OPTION_CHOICE, 0, "direction", "rx|tx|both", "rx|tx|both", 0, 0,
		"Received packets, sent packets, or both (the default)"},
	{OPTION_SET(OPT_QUEUE), OPTION_NUMBER, 0, "queue", "N", NULL, 0, 65535,
		"Only this queue (default: all)"},
	{OPTION_SET(OPT_IFNAME), OPTION_TEXT, 0, "ifname", "NAME", NULL, 0, 0,
		"Name of the interface in the file, instead of the port's"},
	{OPTION_SET(OPT_IFDESCR), OPTION_TEXT, 0, "ifdescr", "TEXT", NULL, 0, 0,
		"Description of the interface in the file"},
	TAGS_OPTION(struct record_config, capture.tags),
	INNER_OPTION(struct record_config, capture.inner),
	{OPTION_SET(OPT_CUT), OPTION_TEXT, 0, "cut", CUT_ARG, NULL, 0, 0,
		"Capture of each packet only its headers, up to those of TCP, UDP, SCTP or ICMP, these "
		"and N bytes more (l4+N), or N bytes. With :FILTER for packets that match it; may be "
		"given several times, and the first that matches applies. Packets without IP are "
		"whole"},
	{OPTION_SET(OPT_FIRST), OPTION_TEXT, 0, "first", FIRST_ARG, NULL, 0, 0,
		"Capture the first SIZE bytes or N packets (as in 100p/flow) of each flow in each "
		"direction, and cut the rest: a packet is captured if less of its flow came before "
		"it. A flow is protocol, addresses and ports, with --inner those inside of tunnels; "
		"packets without IP are captured"},
	{TO(capture.options.first_flows), OPTION_NUMBER, 0, "first-flows", "N", NULL,
		FIRST_FLOWS_MIN, FIRST_FLOWS_MAX,
		"Flows that each polling thread remembers for --first, a power of two; one that is "
		"evicted begins again (default: 16384)"},
	{.kind = OPTION_HEADING, .help = "When to stop"},
	{TO(stop.packets), OPTION_NUMBER, 'c', "packets", "N", NULL, 1, UINT64_MAX,
		"Stop after exactly N packets"},
	{TO(stop.duration_ns), OPTION_TIME, 0, "duration", "TIME", NULL, SOME_TIME,
		"Stop after TIME"},
	{OPTION_SET(OPT_AUTOSTOP), OPTION_KEYED, 'a', "autostop", KEYED_ARG, STOP_KEYS, 0, 0,
		"Stop after N seconds (duration:N, also duration:5min), when a file has N kB of "
		"1000 bytes (filesize:N, also filesize:100MB), after N packets (packets:N) or N "
		"files (files:N); may be given several times"},
	{.kind = OPTION_HEADING, .help = "Where to write"},
	{TO(path), OPTION_FILE, 'w', "write", "FILE", NULL, 0, 0,
		"The file; - is standard output (default: ringtap_APP_DATE.pcapng in the current "
		"folder)"},
	{OPTION_SET(OPT_RING_BUFFER), OPTION_KEYED, 'b', "ring-buffer", KEYED_ARG,
		ROTATE_KEYS NAME_KEYS, 0, 0,
		"Go on to the next file after N seconds (duration:N), before a file exceeds N kB "
		"of 1000 bytes (filesize:N), after N packets (packets:N), or when the time of "
		"day is a multiple of N seconds (interval:N). files:N keeps the N newest files. "
		"Files are called NAME_00001_YYYYmmddHHMMSS.EXT, with nametimenum:2 the time stands "
		"before the number. printname:FILE writes the name of each file that is complete to "
		"FILE (stdout, stderr). May be given several times"},
	{OPTION_SET(OPT_SPLIT), OPTION_CHOICE, 0, "split", "interface|direction",
		"interface|direction", 0, 0,
		"Write a file for each interface, or one for received and one for sent packets. With "
		"-w a.pcapng their names are a_PORT.pcapng (a_APP_PORT.pcapng with several "
		"applications), or a_rx.pcapng and a_tx.pcapng"},
	{TO(output.group_read), OPTION_FLAG, 'g', "group", NULL, NULL, 0, 0,
		"Let the group read the files (mode 0640 instead of 0600)"},
	{TO(output.pcap), OPTION_FLAG, 'P', "pcap", NULL, NULL, 0, 0,
		"Write pcap with nanoseconds instead of pcapng: such a file has no interfaces, "
		"directions, queues, comments or losses"},
	{OPTION_SET(OPT_COMMENT), OPTION_TEXT, 0, "capture-comment", "TEXT", NULL, 0, 0,
		"Put a comment into the file (pcapng only); may be given several times"},
	{TO(output.compress), OPTION_CHOICE, 0, "compress", "zstd|lz4", "zstd|lz4", 0, 0,
		"Compress the file. Sizes for -a and -b are those before compression"},
	{TO(output.threads), OPTION_NUMBER, 0, "threads", "N", NULL, 1, THREADS_MAX,
		"Use N threads with --compress: one reads the packets and writes the file, the "
		"others compress (default: 1, which does all)"},
	{TO(output.no_direct), OPTION_FLAG, 0, "no-direct", NULL, NULL, 0, 0,
		"Write files on disk through the page cache rather than by io_uring and O_DIRECT"},
	{TO(listen), OPTION_TEXT, 0, "listen", "[HOST:]PORT|unix:PATH", NULL, 0, 0,
		"Write to each client that connects a recording of its own, from then on "
		"(PCAP-over-IP), until a signal comes. HOST is 127.0.0.1 if it is left out. Clients on "
		"this host must be programs of the same user"},
	{OPTION_SET(OPT_ALLOW), OPTION_TEXT, 0, "allow", "ADDRESS[/BITS]", NULL, 0, 0,
		"Take clients of --listen on this other host or network as well: they get all packets, "
		"without a password and not encrypted. May be given several times"},
	{TO(anonymize), OPTION_FLAG, 0, "anonymize", NULL, NULL, 0, 0,
		"Write pseudonyms instead of addresses, and no names, comments or payload, see "
		"ringtap-anonymize(1)"},
	{TO(output.payload), OPTION_CHOICE, 0, "payload", PAYLOAD_CHOICES, PAYLOAD_CHOICES, 0, 0,
		"With --anonymize, bytes behind the headers are cut off (the default), replaced by "
		"zeros, or kept, if they are payload of TCP, UDP, SCTP or ICMP echo"},
	{TO(key), OPTION_FILE, 0, "key", "FILE", NULL, 0, 0,
		"Key of the pseudonyms of --anonymize; a file that is missing is made (default: a "
		"random key)"},
	{.kind = OPTION_HEADING, .help = "How to capture"},
	{TO(capture.options.buffer_size), OPTION_SIZE, 0, "buffer", "SIZE", NULL, BUFFER_MIN,
		BUFFER_MAX,
		"Memory of the recorder for the packets of each application. The "
		"default is 256M, 32M for each polling thread if that is more, but at most a "
		"quarter of the memory that is available"},
	{OPTION_SET(OPT_ON_FULL), OPTION_CHOICE, 0, "on-full", "drop|wait", "drop|wait", 0, 0,
		"When the buffer is full, drop packets and count them (the "
		"default), or let the application wait, for a bounded time: for laboratories only"},
	{OPTION_SET(OPT_TIMESTAMP), OPTION_CHOICE, 0, "timestamp", "tsc|nic", "tsc|nic", 0, 0,
		"Time of the CPU when the burst left the driver (the default), or of the NIC "
		"where it gives one"},
	{OPTION_SET(OPT_IDS), OPTION_FLAG, 0, "ids", NULL, NULL, 0, 0,
		"Give each received packet an id (epb_packetid), which it, its clones and copies keep "
		"when they are sent. It takes 8 bytes and a flag of the application's mbufs"},
	{OPTION_SET(OPT_INFER_IDS), OPTION_FLAG, 0, "infer-ids", NULL, NULL, 0, 0,
		"As --ids, also for packets that the application has sent with their flags reset, "
		"as testpmd's mac mode does: likely, not certain"},
	{OPTION_SET(OPT_FATES), OPTION_FLAG, 0, "fates", NULL, NULL, 0, 0,
		"As --ids, and record for each received packet whether the application has offered "
		"it to a port or, if not, when the probe noticed that"},
	{TO(capture.options.mbufs), OPTION_FLAG, 0, "metadata", NULL, NULL, 0, 0,
		"Record metadata of mbufs for each packet: whether its checksum was left to the NIC or "
		"found valid or bad by it, segmentation by the NIC, the mark of a flow rule, and the "
		"packet type"},
	SAMPLE_OPTION(struct record_config, capture.options.sample),
	{.kind = OPTION_HEADING, .help = "Reports"},
	{TO(quiet), OPTION_FLAG, 'q', "quiet", NULL, NULL, 0, 0,
		"Print no live counts and no summary on standard error"},
	{TO(json), OPTION_FLAG, 0, "json", NULL, NULL, 0, 0,
		"Print the summary as JSON on standard output, on standard error with -w -"},
	{TO(html), OPTION_FILE, 0, "html", "FILE", NULL, 0, 0,
		"At the end, write what was seen and lost, and when, as a page that needs nothing "
		"else; it has no packets"},
	{TO(fail_on_loss), OPTION_FLAG, 0, "fail-on-loss", NULL, NULL, 0, 0,
		"Exit with status 3 if the capture lost packets"},
	{.kind = OPTION_HEADING, .help = "Instead of recording"},
	{TO(list_interfaces), OPTION_FLAG, 'D', "list-interfaces", NULL, NULL, 0, 0,
		"List the values of -i, and exit"},
	{TO(dump_filter), OPTION_FLAG, 'd', "print-filter", NULL, NULL, 0, 0,
		"Print the compiled filters and exit; needs no application"},
	{TO(statistics), OPTION_FLAG, 'S', "statistics", NULL, NULL, 0, 0,
		"Print the packet counts of each interface every second, and write nothing"},
};
/* clang-format on */

void config_init(struct record_config *c)
{
	*c = (struct record_config){.output = {.compress = COMPRESS_NONE, .threads = 1}};
	capture_config_init(&c->capture, "record");
	c->last = &c->capture.defaults;
}

static int add_target(struct record_config *c, const char *spec, bool port_alone)
{
	struct iface_config *i = &c->capture.ifaces[c->capture.iface_count];

	if (c->capture.iface_count == CAPTURE_IFACES_MAX)
		return message_fail(-EINVAL, "record: %s: too many interfaces; give at most %d",
			spec, CAPTURE_IFACES_MAX);
	if (!*spec)
		return message_fail(
			-EINVAL, "record: '': no target; give APP[:PORT], see 'ringtap record -D'");
	*i = c->capture.defaults;
	i->spec = spec;
	i->port_alone = port_alone;
	c->capture.iface_count++;
	if (port_alone)
		c->last = i;
	return 0;
}

int config_operand(void *ctx, const char *text)
{
	return add_target(ctx, text, false);
}

/* Also the defaults that stood behind them. */
static void complete_words(struct record_config *c)
{
	for (unsigned n = 0; n < c->capture.iface_count; n++) {
		struct iface_config *i = &c->capture.ifaces[n];
		const char *spec = i->spec;

		if (i->port_alone)
			continue;
		*i = c->capture.defaults;
		i->spec = spec;
	}
}

/* dumpcap's units, seconds and 1000 bytes, where there is none. */
static int parse_limit(int key, const char *text, uint64_t *n, char most[FORMAT_LEN])
{
	bool time = key == KEY_DURATION || key == KEY_INTERVAL;
	uint64_t max = time ? TIME_MAX : UINT64_MAX / 1000;
	int ret;

	if (time)
		ret = parse_time(text, NS_PER_S, n);
	else
		ret = key == KEY_FILESIZE ? parse_size(text, 1000, n) : parse_count(text, n);
	if (time)
		write_time(most, max);
	else
		snprintf(most, FORMAT_LEN, "%" PRIu64, max);
	return !ret && *n > max ? -ERANGE : ret;
}

/* KEY:N of -a and -b into the limits they set. */
static int set_limit(struct limits *l, const char *option, const char *keys, const char *text)
{
	size_t len = strcspn(text, ":");
	int key = choice_index(keys, text, len);
	const char *value = text[len] ? text + len + 1 : "";
	char most[FORMAT_LEN];
	char list[128];
	uint64_t n = 0;
	int ret;

	if (key < 0) {
		snprintf(list, sizeof(list), "choose from %s, as in duration:10", keys);
		return message_fail(-EINVAL, "record: %s %s: unknown condition; %s", option, text,
			choice_advice(keys, text, len, list));
	}
	if (!text[len])
		return message_fail(-EINVAL,
			"record: %s %s: lacks its number; give one, as in duration:10 or "
			"files:5",
			option, text);
	ret = parse_limit(key, value, &n, most);
	if (ret == -ERANGE)
		return message_fail(
			-EINVAL, "record: %s %s: too large; give at most %s", option, text, most);
	if (ret || !n)
		return message_fail(-EINVAL,
			"record: %s %s: not a number above zero; give one, as in duration:10s or "
			"filesize:100MB",
			option, text);
	switch (key) {
	case KEY_DURATION: l->duration_ns = n; break;
	case KEY_FILESIZE: l->bytes = n; break;
	case KEY_PACKETS: l->packets = n; break;
	case KEY_FILES: l->files = n; break;
	default: l->interval_ns = n; break;
	}
	return 0;
}

static int add_comment(struct record_config *c, const char *text)
{
	unsigned n = 0;

	while (n < COMMENTS_MAX && c->comments[n])
		n++;
	if (n == COMMENTS_MAX - (text != c->cuts))
		return message_fail(-EINVAL,
			"record: --capture-comment: too many comments; give at most %d",
			COMMENTS_MAX - 1);
	c->comments[n] = text;
	return 0;
}

/* For a comment of the file, too. */
int config_cut(struct record_config *c, const char *text)
{
	char *before = c->cuts;
	int ret = capture_config_cut(&c->capture, text);

	if (ret)
		return ret;
	if (asprintf(&c->cuts, "%s%s%s", before ? before : "cut: ", before ? ", " : "", text) < 0) {
		c->cuts = NULL;
		ret = message_fail(-ENOMEM, "record: --cut: not enough memory");
	}
	free(before);
	return ret;
}

int config_first(struct record_config *c, const char *text)
{
	c->first = text;
	return capture_config_first(&c->capture, text);
}

/* Parses options of -b about names, as dumpcap's. 1: another option. */
static int set_names(struct record_config *c, const char *text)
{
	static const char time_num[] = "nametimenum:", print[] = "printname:";
	uint64_t n;

	if (!strncmp(text, print, strlen(print)) && text[strlen(print)]) {
		c->print_name = text + strlen(print);
		return 0;
	}
	if (strncmp(text, time_num, strlen(time_num)))
		return 1;
	if (parse_number(text + strlen(time_num), UINT32_MAX, &n) || !n)
		return message_fail(-EINVAL,
			"record: -b %s: not a number above zero; give 1 (number, then time) or 2 "
			"(time, then number)",
			text);
	c->time_first = n > 1;
	return 0;
}

static int set_ring_buffer(struct record_config *c, const char *text)
{
	int ret = set_names(c, text);

	c->rotating = true;
	return ret > 0 ? set_limit(&c->rotate, "-b", ROTATE_KEYS, text) : ret;
}

static void set_interface(struct iface_config *i, int id, const struct option_value *v)
{
	static const unsigned directions[] = {RINGTAP_RX, RINGTAP_TX, RINGTAP_RX | RINGTAP_TX};

	switch (id) {
	case OPT_FILTER: i->filter = v->text; break;
	case OPT_SNAPLEN: i->snaplen = v->number ? (uint32_t)v->number : RINGTAP_SNAPLEN_MAX; break;
	case OPT_IFNAME: i->ifname = v->text; break;
	case OPT_IFDESCR: i->ifdescr = v->text; break;
	case OPT_DIRECTION: i->directions = directions[v->number]; break;
	default: i->queue = (int)v->number; break;
	}
}

int config_set(void *ctx, int id, const struct option_value *v)
{
	struct record_config *c = ctx;

	switch (id) {
	case OPT_INTERFACE: return add_target(c, v->text, true);
	case OPT_AUTOSTOP: return set_limit(&c->stop, "-a", STOP_KEYS, v->text);
	case OPT_RING_BUFFER: return set_ring_buffer(c, v->text);
	case OPT_COMMENT: return add_comment(c, v->text);
	case OPT_CUT: return config_cut(c, v->text);
	case OPT_ALLOW: return listen_allow(c, v->text);
	case OPT_FIRST: return config_first(c, v->text);
	case OPT_SPLIT: c->split = SPLIT_INTERFACE + (unsigned)v->number; break;
	case OPT_ON_FULL:
		c->capture.options.on_full = v->number ? RINGTAP_WAIT : RINGTAP_DROP;
		break;
	case OPT_IDS:
		c->capture.options.ids =
			c->capture.options.ids ? c->capture.options.ids : RINGTAP_IDS;
		break;
	case OPT_FATES:
		c->fates = true;
		c->capture.options.ids =
			c->capture.options.ids ? c->capture.options.ids : RINGTAP_IDS;
		break;
	case OPT_INFER_IDS: c->capture.options.ids = RINGTAP_IDS_INFERRED; break;
	case OPT_TIMESTAMP:
		c->capture.options.timestamp = v->number ? RINGTAP_NIC : RINGTAP_TSC;
		break;
	default: set_interface(c->last, id, v);
	}
	return 0;
}

static int check_rotation(const struct record_config *c)
{
	const struct limits *r = &c->rotate;

	if (!c->rotating)
		return 0;
	if (!r->packets && !r->bytes && !r->duration_ns && !r->interval_ns)
		message_print(
			"record: -b files: gives no condition for the next file; add -b filesize:N, "
			"duration:N, packets:N or interval:N");
	else if (c->path && !strcmp(c->path, "-"))
		message_print("record: -b: standard output is not a file; give -w FILE");
	else
		return 0;
	return -EINVAL;
}

static int check_split(const struct record_config *c)
{
	if (!c->split)
		return 0;
	if (c->path && !strcmp(c->path, "-"))
		message_print("record: --split: standard output is one file; give -w FILE");
	else if (c->rotating)
		message_print(
			"record: --split: -b also makes several files; leave one of them out");
	else if (c->stop.bytes || c->stop.files)
		message_print("record: --split: -a filesize and files count one file after the "
			      "other; stop by packets or duration");
	else if (c->fates)
		message_print("record: --split: a packet and its fate are in one file; leave out "
			      "--split or --fates");
	else
		return 0;
	return -EINVAL;
}

static int check_comment(const struct record_config *c)
{
	size_t longest = 0;

	for (unsigned i = 0; c->comments[i]; i++)
		longest = strlen(c->comments[i]) > longest ? strlen(c->comments[i]) : longest;
	if (!c->comments[0])
		return 0;
	if (c->output.pcap)
		message_print(
			"record: --capture-comment: pcap files have no comments; leave out -P");
	else if (longest > 65535)
		message_print(
			"record: --capture-comment: longer than 65535 bytes; make it shorter");
	else
		return 0;
	return -EINVAL;
}

/* Names an option that gives an interface a text. */
static const char *text_option(const struct iface_config *i)
{
	return i->ifname ? "--ifname" : i->ifdescr ? "--ifdescr" : NULL;
}

/* Anonymous files have no texts. */
static int check_anonymize(const struct record_config *c)
{
	const char *text = c->comments[0] ? "--capture-comment" : text_option(&c->capture.defaults);

	for (unsigned i = 0; i < c->capture.iface_count && !text; i++)
		text = text_option(&c->capture.ifaces[i]);
	if (c->anonymize && text)
		return message_fail(-EINVAL,
			"record: --anonymize: leaves out all names and comments; leave out %s",
			text);
	if (c->anonymize && c->html)
		return message_fail(-EINVAL,
			"record: --anonymize: the page of --html has names of applications and "
			"ports; leave out --html");
	if (!c->anonymize && (c->key || c->output.payload != PAYLOAD_CUT))
		return message_fail(-EINVAL,
			"record: %s: for anonymous recordings; add --anonymize, or leave it out",
			c->key ? "--key" : "--payload");
	return 0;
}

static int check_threads(const struct record_config *c)
{
	if (c->output.threads == 1 || c->output.compress != COMPRESS_NONE)
		return 0;
	return message_fail(-EINVAL,
		"record: --threads: only compressing is done by several threads; add "
		"--compress or leave it out");
}

static int check_ids(const struct record_config *c)
{
	if (c->fates && c->capture.options.sample > 1)
		return message_fail(
			-EINVAL, "record: --fates: covers all packets; leave out --sample");
	if (c->fates && c->first)
		return message_fail(
			-EINVAL, "record: --fates: covers all packets; leave out --first");
	if (c->capture.options.mbufs && c->output.pcap)
		return message_fail(-EINVAL,
			"record: --metadata: pcap files have no place for it; leave out -P");
	if (c->capture.options.ids && c->capture.options.first)
		return message_fail(-EINVAL,
			"%s: --first: cuts received and sent packets by themselves, so ids "
			"would show packets as not sent; leave out --first or --ids",
			c->capture.command);
	if (!c->capture.options.ids)
		return 0;
	if (c->output.pcap)
		return message_fail(-EINVAL, "record: --ids: pcap files have no ids; leave out -P");
	/* A packet stands before its fate: both need one clock. */
	if (c->fates && c->capture.options.timestamp == RINGTAP_NIC)
		return message_fail(-EINVAL,
			"record: --fates: noticed by the clock of the CPU; leave out "
			"--timestamp nic");
	for (unsigned i = 0; i < c->capture.iface_count; i++) {
		if (c->capture.ifaces[i].directions & RINGTAP_RX)
			return 0;
	}
	return message_fail(-EINVAL,
		"record: --ids: packets get their ids when they are received; record a port "
		"that receives, or leave out --direction tx");
}

int config_check(struct record_config *c)
{
	int ret = check_rotation(c);

	complete_words(c);
	if (!ret)
		ret = check_split(c);
	if (!ret)
		ret = listen_check(c);
	if (!ret)
		ret = check_anonymize(c);
	if (!ret && c->cuts && !c->output.pcap)
		ret = add_comment(c, c->cuts);
	if (!ret)
		ret = check_comment(c);
	if (!ret)
		ret = check_threads(c);
	c->capture.one_linktype = c->output.pcap;
	if (!ret)
		ret = capture_config_check(&c->capture);
	/* The check before makes an interface of the defaults where none is given. */
	return ret ? ret : check_ids(c);
}

void config_free(struct record_config *c)
{
	capture_config_free(&c->capture);
	pseudonyms_free(c->output.names);
	free(c->cuts);
}
