/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A handle of ours. The program holds a real pcap_t, a dead one, so that whatever we do not wrap
 * (pcap_geterr(), pcap_perror(), pcap_file(), …) works on it; the table in handle.c leads from it
 * to our state. Once activated there is a second one, which knows snapshot length and precision:
 * these cannot be set afterwards, and compiling and dumping want them.
 */
#ifndef RINGTAP_PCAP_HANDLE_H
#define RINGTAP_PCAP_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/atomics.h"
#include "common/segment.h"
#include "real.h"
#include "ringtap/reader.h"

#define EXPORT       __attribute__((visibility("default")))
#define NAME_PREFIX  "ringtap:"
#define RUNS         64
#define SNAPLEN_MAX  RINGTAP_SNAPLEN_MAX /* libpcap's, too */
#define MEGABYTE     (1 << 20)
#define BUFFER_USUAL (2 * MEGABYTE) /* what libpcap takes where nothing is asked for */

struct handle {
	pcap_t *user;
	char *device;
	bool activated, nonblock, rfmon, all_ports;
	int snaplen, timeout_ms, buffer_size, tstamp_type, precision, protocol;
	int ignored; /* set to no effect */

	/* From here on: once activated. */
	pcap_t *inner;
	struct ringtap_capture *cap;
	pcap_direction_t direction;
	struct bpf_program filter;  /* as the program gave it; bf_insns NULL: everything passes */
	struct bpf_insn *checks[2]; /* it, for what comes in and for what goes out */
	bool filter_here; /* the application does not run it: all packets are checked here */
	bool unsettled;   /* an application may have one that was given up: see mode.c */
	uint32_t broken;  /* pcap_breakloop(); atomic */
	unsigned depth;   /* of reading functions: a callback may call one */
	bool moved;       /* such a one has read on: the one that called the callback must leave */
	bool closing;
	int over;            /* -errno: why nothing comes any more; 0: something may */
	uint32_t generation; /* of processes, see fork.c */
	int32_t *owner;      /* process that reads, shared with children */

	/* What is being handed out. */
	struct ringtap_run runs[RUNS];
	int run_count, run_at;
	uint64_t offset; /* in the run */
	uint64_t ns;     /* the time that tv is */
	struct timeval tv;
	struct pcap_pkthdr header; /* for pcap_next_ex() */
};

/* Our state of a handle, NULL if it is none of ours. Async-signal-safe. */
struct handle *handle_of(const pcap_t *p);

/* A new handle that handle_of() finds; NULL, and a sentence in err (PCAP_ERRBUF_SIZE bytes). */
struct handle *handle_new(const char *device, char *err);
/* Ends its capture, if any, and frees it with its pcap_t's. */
void handle_free(struct handle *h);

/* Makes a sentence what pcap_geterr() says; returns code. */
int handle_fail(struct handle *h, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* As libpcap does where an operation needs an activated handle. */
int handle_not_activated(struct handle *h);
/* Takes over the text that an operation on h->inner left. */
void handle_take_error(struct handle *h);

/* ---- read.c ---- */

/* Would reading not wait: is there something fetched and not handed out yet, or only an error? */
static inline bool read_has_more(const struct handle *h)
{
	return h->over || h->run_at + 1 < h->run_count ||
	       (h->run_at < h->run_count && h->offset < h->runs[h->run_at].bytes);
}

/* ---- mode.c ---- */

/* Gives the applications the filter that holds, once they have answered for one that was given up.
 */
void mode_settle(struct handle *h);

/* ---- fork.c ---- */

/* Forks between the first of the processes and this one. */
extern uint32_t fork_generation;

int fork_prepare(struct handle *h);
void fork_release(struct handle *h);
/* Is this the process that reads? */
bool fork_owns(const struct handle *h);
/* The slow part of fork_may_read(). */
bool fork_claim(struct handle *h);

/* May this process read? The first to read does, and who comes after it when it has ended. False:
 * the handle's error says so. */
static inline bool fork_may_read(struct handle *h)
{
	return rt_likely(h->generation == fork_generation) || fork_claim(h);
}

/* ---- name.c ---- */

static inline bool name_is_ours(const char *device)
{
	return device && !__builtin_strncmp(device, NAME_PREFIX, sizeof(NAME_PREFIX) - 1);
}

/* Attaches the capture to everything that h->device names, with one want as the model for all.
 * 0 or PCAP_ERROR_…, with the reason as the handle's error. */
int name_attach(struct handle *h, const struct ringtap_target *model,
	const struct ringtap_capture_options *options);

/* Do all ports that h->device names deliver time stamps of their NICs? */
bool name_has_adapter_time(struct handle *h);

#endif
