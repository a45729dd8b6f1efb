/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a handle. The program holds a pcap_t of pcap_open_dead(), so that functions that are
 * not replaced (pcap_geterr(), pcap_perror(), pcap_file(), …) work on it; the table in handle.c
 * maps it to the state. Activation makes a second one with snapshot length and precision, which
 * compiling and dumping need: they cannot be set after it has been made.
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
#define SNAPLEN_MAX  RINGTAP_SNAPLEN_MAX /* the same as libpcap's */
#define MEGABYTE     (1 << 20)
#define BUFFER_USUAL (2 * MEGABYTE) /* libpcap's default */

struct handle {
	pcap_t *user;
	char *device;
	bool activated, nonblock, rfmon, all_ports;
	int snaplen, timeout_ms, buffer_size, tstamp_type, precision, protocol;
	uint16_t linktype; /* LINKTYPE_… of its ports; 0 before activation */
	int ignored;       /* settings without effect */
	u_char *copy;      /* the packet that is handed out, snaplen bytes; NULL: none is made */

	/* Valid after activation. */
	pcap_t *inner;
	struct ringtap_capture *cap;
	pcap_direction_t direction;
	struct bpf_program filter;  /* the program's; bf_insns NULL: all packets pass */
	struct bpf_insn *checks[2]; /* the same for RX and for TX, by enum rt_direction */
	bool filter_here;           /* the application does not run it: the library does */
	bool unsettled;  /* an application may run a filter that has failed: see mode.c */
	uint32_t broken; /* pcap_breakloop(); atomic */
	unsigned depth;  /* nested calls of reading functions, by callbacks */
	bool moved;      /* a nested call has read: the outer one must return */
	bool closing;
	int over;            /* -errno: why the capture has ended; 0: it has not */
	uint32_t generation; /* fork_generation of the reader, see fork.c */
	int32_t *owner;      /* ID of the process that reads; shared with children */

	/* Fetched runs, and the position in them. */
	struct ringtap_run runs[RUNS];
	int run_count, run_at;
	uint64_t offset; /* in the run */
	uint64_t ns;     /* the time in tv */
	struct timeval tv;
	struct pcap_pkthdr header; /* for pcap_next_ex() */
};

/* The state of a handle; NULL for handles of the system's libpcap. Async-signal-safe. */
struct handle *handle_of(const pcap_t *p);

/* A new handle that handle_of() finds; NULL on errors, with the reason in err (PCAP_ERRBUF_SIZE
 * bytes). */
struct handle *handle_new(const char *device, char *err);
/* Ends its capture, if any, and frees it with its pcap_t's. */
void handle_free(struct handle *h);

/* Sets the text that pcap_geterr() returns; returns code. */
int handle_fail(struct handle *h, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* libpcap's error for operations that need an activated handle. */
int handle_not_activated(struct handle *h);
/* Copies the error text of h->inner. */
void handle_take_error(struct handle *h);

/* ---- read.c ---- */

/* Whether reading returns at once: packets have been fetched, or the capture has ended. */
static inline bool read_has_more(const struct handle *h)
{
	return h->over || h->run_at + 1 < h->run_count ||
	       (h->run_at < h->run_count && h->offset < h->runs[h->run_at].bytes);
}

/* ---- mode.c ---- */

/* Installs the valid filter again once the applications have answered for one that has failed. */
void mode_settle(struct handle *h);

/* ---- fork.c ---- */

/* The number of forks between the first process and this one, plus 1. */
extern uint32_t fork_generation;

int fork_prepare(struct handle *h);
void fork_release(struct handle *h);
/* Whether this process is the reader. */
bool fork_owns(const struct handle *h);
/* The slow part of fork_may_read(). */
bool fork_claim(struct handle *h);

/* Whether this process may read. The first process that reads becomes the reader; another one can
 * take over when it has ended. False sets the handle's error. */
static inline bool fork_may_read(struct handle *h)
{
	return rt_likely(h->generation == fork_generation) || fork_claim(h);
}

/* ---- devices.c ---- */

/* Adds the DPDK ports of all applications behind *list; its elements and texts are malloc()ed. */
void devices_add(pcap_if_t **list);

/* ---- name.c ---- */

/* Whether device is ringtap:…, or an alias that is not the name of an interface of the kernel. */
bool name_is_ours(const char *device);

/* Attaches the capture to everything that h->device names, with one target as the model for all.
 * 0 or PCAP_ERROR_…, with the reason as the handle's error. */
int name_attach(struct handle *h, const struct ringtap_target *model,
	const struct ringtap_capture_options *options);

/* Whether all ports that h->device names deliver time stamps of their NICs. */
bool name_has_adapter_time(struct handle *h);

/* The first port that h->device names. False: none, or its application does not answer. */
bool name_first_port(struct handle *h, struct ringtap_port_info *port);

#endif
