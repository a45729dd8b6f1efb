/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compares the ids of a recording, packet by packet, with what rt_deeds has written down.
 * usage: check_ids FILE PACKETS LOG0 LOG1
 * Interface 0 has received PACKETS packets. It reads pcapng by the specification, and shares no
 * code with its writer.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt_deeds.h"

#define BLOCK_MAX (1u << 20)
#define EPB       6u

struct packet {
	uint32_t interface, flags, queue;
	uint64_t id; /* 0: none */
	struct deed_frame frame;
};

static uint32_t block[BLOCK_MAX / 4];
static uint64_t *ids; /* by number of a received packet */
static uint64_t packets, received, sent;
static FILE *logs[DEED_QUEUES][2]; /* by queue and port */

static void fail(const char *why, const struct packet *p, uint32_t what)
{
	fprintf(stderr,
		"check_ids: %s: interface %u, queue %u, flags %u, %s packet %" PRIu64
		", id %#" PRIx64 ", deed %u\n",
		why, p->interface, p->queue, p->flags, p->frame.made ? "made" : "received",
		p->frame.number, p->id, what);
	exit(1);
}

static void die(const char *why, const char *what)
{
	fprintf(stderr, "check_ids: %s: %s\n", what, why);
	exit(1);
}

/* The next block. Its type; 0 at the end. */
static uint32_t next_block(FILE *f, const char *path)
{
	if (fread(block, 4, 2, f) != 2)
		return 0;
	if (block[1] < 12 || block[1] % 4 || block[1] > BLOCK_MAX)
		die("a block has an impossible length", path);
	if (fread(block + 2, 1, block[1] - 8, f) != block[1] - 8)
		die("a block is cut off", path);
	if (block[block[1] / 4 - 1] != block[1])
		die("the lengths of a block differ", path);
	return block[0];
}

/* Options of an Enhanced Packet Block: pcapng, sections 3.5 and 4.3. */
static struct packet packet_of(const char *path)
{
	const uint32_t cap = block[5], words = (cap + 3) / 4, *o = block + 7 + words,
		       *end = block + block[1] / 4 - 1;
	struct packet p = {.interface = block[2]};

	if (cap < sizeof(p.frame) || o > end)
		die("a packet has an impossible length", path);
	memcpy(&p.frame, block + 7, sizeof(p.frame));
	for (; o < end && (*o & 0xffff); o += 1 + ((*o >> 16) + 3) / 4) {
		switch (*o) {
		case 4u << 16 | 2: p.flags = o[1]; break;
		case 4u << 16 | 6: p.queue = o[1]; break;
		case 8u << 16 | 5: memcpy(&p.id, o + 1, 8); break;
		case 8u << 16 | 4: die("packets were lost: nothing can be compared", path);
		}
	}
	return p;
}

static void take_received(const struct packet *p)
{
	if (p->interface || p->frame.made || p->frame.number >= packets)
		fail("not a packet that was received", p, 0);
	if (!p->id)
		fail("received without an id", p, 0);
	if (ids[p->frame.number])
		fail("received twice", p, 0);
	ids[p->frame.number] = p->id;
	received++;
}

static struct deed next_deed(const struct packet *p)
{
	FILE *log =
		p->queue < DEED_QUEUES && p->interface < 2 ? logs[p->queue][p->interface] : NULL;
	struct deed d;

	do {
		if (!log || fread(&d, sizeof(d), 1, log) != 1)
			fail("recorded, but not written down", p, 0);
	} while (d.port != p->interface);
	return d;
}

static void take_sent(const struct packet *p)
{
	struct deed d = next_deed(p);

	if (d.number != p->frame.number || d.made != p->frame.made)
		fail("another packet was written down", p, d.what);
	if (d.has_id && p->id != ids[d.number])
		fail("not the id of its reception", p, d.what);
	if (!d.has_id && p->id)
		fail("an id, and none was expected", p, d.what);
	sent++;
}

static void walk(const char *path, uint32_t flags, void (*take)(const struct packet *))
{
	FILE *f = fopen(path, "rb");
	uint32_t type;

	if (!f)
		die("cannot be opened", path);
	while ((type = next_block(f, path))) {
		struct packet p;

		if (type != EPB)
			continue;
		p = packet_of(path);
		if (p.flags == flags)
			take(&p);
	}
	fclose(f);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void check_end(void)
{
	struct deed d;

	for (unsigned q = 0; q < DEED_QUEUES; q++) {
		for (unsigned port = 0; port < 2; port++) {
			while (fread(&d, sizeof(d), 1, logs[q][port]) == 1) {
				if (d.port == port)
					die("written down, but not recorded", "a packet");
			}
		}
	}
	if (received != packets)
		die("are missing", "received packets");
	qsort(ids, packets, sizeof(*ids), by_value);
	for (uint64_t i = 1; i < packets; i++) {
		if (ids[i] == ids[i - 1])
			die("two packets have one", "an id");
	}
}

int main(int argc, char **argv)
{
	if (argc != 3 + DEED_QUEUES)
		die("FILE PACKETS LOG0 LOG1", "usage");
	packets = strtoull(argv[2], NULL, 0);
	ids = calloc(packets, sizeof(*ids));
	if (!ids)
		die("not enough memory", argv[2]);
	for (unsigned q = 0; q < DEED_QUEUES; q++) {
		for (unsigned port = 0; port < 2; port++) {
			logs[q][port] = fopen(argv[3 + q], "rb");
			if (!logs[q][port])
				die("cannot be opened", argv[3 + q]);
		}
	}
	walk(argv[1], 1, take_received);
	walk(argv[1], 2, take_sent);
	check_end();
	printf("%" PRIu64 " %" PRIu64 "\n", received, sent);
	return 0;
}
