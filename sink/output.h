/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One capture file being written: packets in, bytes out.
 *
 *   run --+------------------------------+-- gather --------> sink     (the usual way: no copy)
 *         +-- renumber or pcap, 1 MiB ---+
 *                                        +-- frames --------> sink     (zstd, lz4)
 */
#ifndef RINGTAP_SINK_OUTPUT_H
#define RINGTAP_SINK_OUTPUT_H

#include <stdint.h>
#include <sys/uio.h>

#include "anonymize/blocks.h"
#include "frames.h"
#include "ringtap/reader.h"
#include "sink.h"

#define OUTPUT_IOV 64

struct output_options {
	enum compress compress;
	uint64_t threads;           /* one reads and writes, the others compress */
	bool pcap;                  /* not pcapng */
	bool group_read, no_direct; /* as of struct sink_options */
	struct pseudonyms *names;   /* for anonymous packets and blocks; NULL: as they are */
	enum payload payload;
};

struct output {
	struct sink *sink;     /* NULL: not open */
	struct frames *frames; /* NULL: no compression */
	bool pcap;
	uint8_t *scratch;
	struct anonymizer anonymizer;
	uint8_t *anonymous;           /* a chunk; NULL: packets are written as they are */
	struct ringtap_packets *walk; /* for runs that are not written as they are */
	uint64_t bytes;               /* bytes in the file, before compression */
	uint64_t packets;             /* packets in the file */
	uint64_t sent;                /* packets in finished calls of the sink */
	int error;         /* a frame of this file is lost; 0: none. The sink has its own */
	uint32_t snaplen;  /* for the pcap header */
	uint16_t linktype; /* for the pcap header, LINKTYPE_…; set it before output_start() */
	struct iovec iov[OUTPUT_IOV];
	unsigned iov_count;
};

/* Errors are -errno; they stick until the file is closed. snaplen: for the header of pcap. */
int output_init(struct output *o, const struct output_options *options, uint32_t snaplen);
void output_free(struct output *o);
/* The next file; it stays as it is until output_start(). */
int output_open(struct output *o, const struct output_options *options, const char *path,
	struct sink_patience *patience);
/* Empties the file; pcap files get their header. */
int output_start(struct output *o);
/* Writes a block (SHB, IDB, ISB) behind all packets so far. Nothing for pcap. */
int output_block(struct output *o, const void *data, size_t len);
/* Takes packets. Their memory must stay as it is until output_push(). -EBADMSG: broken records. */
int output_run(struct output *o, const struct ringtap_run *run);
/* Hands everything gathered to the sink; afterwards the runs may be released. */
int output_push(struct output *o);
/* Makes pushed packets visible soon: flushes buffers that do not fill up. */
int output_flush(struct output *o);
/* Ends the file. *bytes: its length, *packets: those that are in it, also after an error. */
int output_close(struct output *o, uint64_t *bytes, uint64_t *packets);

#endif
