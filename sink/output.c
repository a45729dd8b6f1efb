/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert.h"
#include "output.h"

/* Fits the second-level cache together with its source, and the largest block. */
#define SCRATCH (1u << 20)
#define MADE    (SCRATCH + ANONYMIZE_MORE)

int output_init(struct output *o, const struct output_options *options, uint32_t snaplen)
{
	*o = (struct output){.pcap = options->pcap,
		.snaplen = snaplen,
		.anonymizer = {
			.names = options->names, .payload = options->payload, .blocks.w.fd = -1}};
	o->scratch = malloc(SCRATCH);
	if (options->names)
		o->anonymous = malloc(MADE);
	if (!o->scratch || (options->names && !o->anonymous) || ringtap_packets_create(&o->walk))
		return -ENOMEM;
	if (options->compress == COMPRESS_NONE)
		return 0;
	return frames_new(&o->frames, options->compress, options->threads);
}

void output_free(struct output *o)
{
	frames_free(o->frames);
	ringtap_packets_free(o->walk);
	free(o->scratch);
	anonymizer_free(&o->anonymizer);
	free(o->anonymous);
}

int output_open(struct output *o, const struct output_options *options, const char *path,
	struct sink_patience *patience)
{
	const struct sink_options sink = {
		.format = options->compress != COMPRESS_NONE ? SINK_OPAQUE
			  : options->pcap                    ? SINK_PCAP
							     : SINK_PCAPNG,
		.group_read = options->group_read,
		.no_direct = options->no_direct,
		.patience = patience,
	};

	o->bytes = o->packets = o->sent = 0;
	o->iov_count = 0;
	o->error = 0;
	return sink_open(&o->sink, path, &sink);
}

/* The first error stays: what comes after it must not get into the file. */
static int note_error(struct output *o, int ret)
{
	if (!o->error && ret < 0)
		o->error = ret;
	return o->error;
}

/* Writes what is compressed; all: waits for the rest. After an error frames are only taken: the
 * file keeps what comes before. */
static int write_frames(struct output *o, bool all)
{
	for (;;) {
		struct iovec iov;
		uint64_t packets;
		int ret = frames_take(o->frames, all || frames_full(o->frames), &iov, &packets);

		if (!ret)
			return o->error;
		if (ret > 0 && !o->error)
			ret = sink_write(o->sink, &iov, 1, o->sent);
		if (!note_error(o, ret))
			o->sent = packets;
	}
}

/* Also after an error: the next file begins with a frame of its own. */
static int end_frame(struct output *o, bool all)
{
	if (!o->frames)
		return 0;
	if (frames_pending(o->frames))
		frames_end(o->frames, o->packets);
	return write_frames(o, all);
}

/* Bytes that are whole blocks, and that may change when this returns. */
static int put_now(struct output *o, const void *data, size_t len)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};

	if (!o->frames)
		return sink_write(o->sink, &iov, 1, o->sent);
	return o->error ? o->error : note_error(o, frames_put(o->frames, data, len));
}

int output_start(struct output *o)
{
	uint8_t header[PCAP_FILE_HEADER];
	int ret = sink_start(o->sink);

	if (ret || !o->pcap)
		return ret;
	pcap_file_header(header, o->snaplen, o->linktype);
	o->bytes = sizeof(header);
	return put_now(o, header, sizeof(header));
}

int output_push(struct output *o)
{
	int ret;

	if (!o->iov_count)
		return 0;
	ret = sink_write(o->sink, o->iov, o->iov_count, o->sent);
	o->iov_count = 0;
	o->sent = o->packets;
	return ret;
}

static int put_block(struct output *o, const void *data, size_t len)
{
	int ret;

	if (o->pcap)
		return 0;
	ret = output_push(o);
	if (ret)
		return ret;
	o->bytes += len;
	return put_now(o, data, len);
}

/* Also for pcap: packets need their interfaces. */
static int put_anonymous_block(struct output *o, const void *data, size_t len)
{
	uint8_t *made = malloc(len + ANONYMIZE_MORE);
	ssize_t n = made ? anonymize_blocks(&o->anonymizer, data, len, made, len + ANONYMIZE_MORE)
			 : -ENOMEM;

	if (n > 0)
		n = put_block(o, made, (size_t)n);
	free(made);
	return (int)n;
}

int output_block(struct output *o, const void *data, size_t len)
{
	return o->anonymous ? put_anonymous_block(o, data, len) : put_block(o, data, len);
}

/* The usual case: nothing is touched but the list. */
static int gather(struct output *o, const struct ringtap_run *run, const void *blocks)
{
	int ret = o->iov_count == OUTPUT_IOV ? output_push(o) : 0;

	if (ret)
		return ret;
	o->iov[o->iov_count++] =
		(struct iovec){.iov_base = (void *)(uintptr_t)blocks, .iov_len = run->bytes};
	o->bytes += run->bytes;
	o->packets += run->packets;
	return 0;
}

/* Replaces *run, of at most SCRATCH bytes, by one of anonymous packets. They are made of a copy:
 * the application can write to its memory at any time. */
static int make_anonymous(struct output *o, struct ringtap_run *run)
{
	const void *data = ringtap_run_pcapng(run, o->scratch, SCRATCH);
	ssize_t n;

	if (!data)
		return -EBADMSG;
	if (data != o->scratch)
		memcpy(o->scratch, data, run->bytes);
	n = anonymize_blocks(&o->anonymizer, o->scratch, run->bytes, o->anonymous, MADE);
	if (n < 0)
		return (int)n;
	run->records = o->anonymous;
	run->bytes = (uint64_t)n;
	run->form = 0;
	run->interfaces = NULL;
	run->interface_count = o->anonymizer.blocks.count;
	return 0;
}

/* A run of at most SCRATCH bytes. */
static int put_chunk(struct output *o, struct ringtap_run *run)
{
	const void *data = o->scratch;
	uint64_t len;
	int ret = o->anonymous ? make_anonymous(o, run) : 0;

	if (ret)
		return ret;
	len = run->bytes;
	if (o->pcap) {
		int64_t n = pcap_convert(o->scratch, o->walk, run);

		if (n < 0)
			return (int)n;
		len = (uint64_t)n;
	} else {
		data = ringtap_run_pcapng(run, o->scratch, SCRATCH);
		if (!data)
			return -EBADMSG;
	}
	ret = put_now(o, data, len);
	o->bytes += len;
	o->packets += run->packets;
	if (!o->frames)
		o->sent = o->packets;
	else if (!ret && frames_pending(o->frames) >= FRAME_BYTES)
		ret = end_frame(o, false);
	return ret;
}

int output_run(struct output *o, const struct ringtap_run *run)
{
	const void *blocks = ringtap_run_pcapng(run, NULL, 0);
	struct ringtap_run rest = *run, chunk;
	int ret = 0;

	if (!o->pcap && !o->frames && !o->anonymous && blocks)
		return gather(o, run, blocks);
	ret = output_push(o);
	while (rest.packets && !ret) {
		if (!ringtap_run_take(&rest, UINT64_MAX, SCRATCH, &chunk))
			return -EBADMSG;
		ret = put_chunk(o, &chunk);
	}
	return ret;
}

int output_flush(struct output *o)
{
	int ret = output_push(o);

	if (!ret)
		ret = end_frame(o, false);
	return ret ? ret : sink_flush(o->sink);
}

int output_close(struct output *o, uint64_t *bytes, uint64_t *packets)
{
	int first = output_push(o);
	int ended = end_frame(o, true);
	int ret;

	if (!first)
		first = ended;
	*packets = first ? o->sent : o->packets;
	ret = sink_close(o->sink, bytes, packets);
	o->sink = NULL;
	return ret ? ret : first;
}
