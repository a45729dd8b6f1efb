/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast `ringtap flows` counts: 64-byte packets of random flows, which are added to a ledger,
 * and a refresh of the view: counters, the choice of the largest entries, and the table or the
 * document. Excludes the probe and the reader. CPU time of one thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "cli/flows/flows.h"

#define FRAME   60u
#define PACKETS (1u << 16)
#define ROUNDS  10
#define LARGEST 20u

static uint8_t (*frames)[64];

static double cpu_ns(void)
{
	return (double)now_ns(CLOCK_THREAD_CPUTIME_ID);
}

static uint32_t random_below(uint32_t n)
{
	static uint64_t state = 1;

	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((state >> 32) * n >> 32);
}

/* A ring of frames, as a reader has them: their flows change with each round. */
static void make_round(uint32_t flows)
{
	static const uint8_t head[] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 46, 0,
		0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 0, 192, 0, 2, 1, 4, 0, 0, 53};

	for (uint32_t i = 0; i < PACKETS; i++) {
		uint32_t flow = random_below(flows);

		memcpy(frames[i], head, sizeof(head));
		memcpy(frames[i] + 27, &flow, 3);
	}
}

static void add_round(struct ledger *t, bool ids)
{
	struct ringtap_packet p[LEDGER_BATCH];
	uint16_t types[LEDGER_BATCH];
	bool counted[LEDGER_BATCH];
	static uint64_t id;

	for (uint32_t i = 0; i < PACKETS; i += LEDGER_BATCH) {
		for (uint32_t j = 0; j < LEDGER_BATCH; j++) {
			p[j] = (struct ringtap_packet){.data = frames[i + j],
				.caplen = FRAME,
				.length = FRAME,
				.direction = RINGTAP_RX,
				.id = ids ? ++id : 0,
				.ns = i + j};
			types[j] = LINKTYPE_ETHERNET;
		}
		ledger_add_batch(t, p, types, LEDGER_BATCH, counted);
	}
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* ms of an update of the screen, and of a line of JSON. */
static int refresh(const struct ledger *t, bool json, double *ms)
{
	static struct flows_command c;
	FILE *f = fopen("/dev/null", "w");
	double start;
	int ret = -1;

	c = (struct flows_command){.ledger = *t,
		.rows = LARGEST,
		.request = {.sample = 1, .ids = t->ids},
		.view = {.screen = true,
			.seconds = 1,
			.s = {.command = "flows", .app = {.name = "bench", .dir = "bench"}}}};
	if (f && !ringtap_capture_create(&c.view.s.cap, NULL)) {
		start = cpu_ns();
		ret = json ? json_print_line(flows_json(&c), f) : flows_text(&c, f);
		ret = fflush(f) || ret;
		*ms = (cpu_ns() - start) / 1e6;
	}
	ringtap_capture_close(c.view.s.cap);
	if (f)
		fclose(f);
	return ret;
}

static int measure(uint32_t flows, bool ids)
{
	const struct ledger_flow *top[LARGEST];
	double ns[ROUNDS], start, top_ms, text_ms = 0, json_ms = 0;
	struct ledger t;
	int ret = ledger_init(&t, LEDGER_5_TUPLE, 1u << 21, ids);

	/* All flows come first. */
	for (uint32_t i = 0; !ret && i < 4 * (flows / PACKETS + 1); i++) {
		make_round(flows);
		add_round(&t, ids);
	}
	for (int i = 0; !ret && i < ROUNDS; i++) {
		make_round(flows);
		start = cpu_ns();
		add_round(&t, ids);
		ns[i] = (cpu_ns() - start) / PACKETS;
	}
	start = cpu_ns();
	if (!ret)
		ledger_top(&t, LEDGER_BY_PACKETS, false, top, LARGEST);
	top_ms = (cpu_ns() - start) / 1e6;
	if (!ret)
		ret = refresh(&t, false, &text_ms) || refresh(&t, true, &json_ms);
	qsort(ns, ROUNDS, sizeof(ns[0]), compare);
	if (!ret)
		printf("{\"flows\":%u,\"ids\":%s,\"entries\":%u,\"ns_least\":%.1f,\"ns_median\":%.1f,"
		       "\"top_ms\":%.2f,\"text_ms\":%.2f,\"json_ms\":%.2f}\n",
			flows, ids ? "true" : "false", t.table.count, ns[0], ns[ROUNDS / 2], top_ms,
			text_ms, json_ms);
	ledger_free(&t);
	return ret;
}

int main(void)
{
	static const uint32_t flows[] = {10, 10000, 100000, 1000000};
	int ret = 0;

	frames = malloc(PACKETS * sizeof(*frames));
	for (size_t i = 0; frames && !ret && i < sizeof(flows) / sizeof(flows[0]); i++)
		ret = measure(flows[i], false) || measure(flows[i], true);
	free(frames);
	return !frames || ret;
}
