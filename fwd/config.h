/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration of ringtap-fwd: its options, parsed. */
#ifndef RINGTAP_FWD_CONFIG_H
#define RINGTAP_FWD_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/command.h"

#define ROLES_MAX     16
#define STAGES_MAX    32
#define SIZES_MAX     64 /* lengths in one turn of a mix */
#define DEVICES_MAX   32
#define PORT_NAME_MAX 64
#define BURST_MAX     256
#define RATE_MAX      UINT64_C(1000000000) /* packets per second */
#define FRAME_MIN     60 /* bytes, without the frame check sequence, as everywhere here */
#define FRAME_MAX     9600
#define FRAME_ROOM    64u  /* bytes: frames are copied in whole such places */
#define HEADROOM      128u /* bytes before the frame in a buffer, as everywhere in DPDK */
#define ANY_CPU       -1

/* In the order of the choices of --plane, --frame, … */
enum plane_id { PLANE_DPDK, PLANE_PACKET, PLANE_MMAP };
enum frame_kind { FRAME_ARP, FRAME_UDP };
enum memory_kind { MEMORY_DPDK, MEMORY_4K, MEMORY_THP, MEMORY_HUGE, MEMORY_GPU };
enum pool_order { ORDER_RING, ORDER_STACK, ORDER_SHUFFLED };
extern const char *const plane_names[], *const memory_names[], *const order_names[];

enum role_kind { ROLE_FORWARD, ROLE_ONEWAY, ROLE_ECHO, ROLE_GENERATE, ROLE_SINK };
#define ROLE_CHOICES "forward|oneway|echo|generate|sink"
extern const char *const role_names[];

/* One --role. */
struct role_spec {
	enum role_kind kind;
	char ports[2][PORT_NAME_MAX]; /* the second one of forward and oneway only */
	int cpu;                      /* ANY_CPU: the next free one */
};

struct stage {
	uint64_t rate; /* packets per second; RATE_UNLIMITED: as fast as can be */
	uint64_t ns;   /* 0: without an end; the only stage then */
};
#define RATE_UNLIMITED UINT64_MAX

/* What to do with packets that a port did not take. */
struct tx_full {
	bool retry;
	uint64_t tries; /* of retry: so many, then drop; 0: until sent */
};

struct fwd_config {
	enum plane_id plane;
	struct role_spec roles[ROLES_MAX];
	unsigned role_count;
	bool sleep, mac_swap, poisson, rtt, no_huge, no_probe, json, verbose;
	uint16_t burst, descriptors; /* burst: 0 until config_check() */
	uint64_t tx_first;
	struct tx_full tx_full;
	uint64_t duration_ns, count; /* 0: no such end */

	const char *vdevs[DEVICES_MAX], *rings[DEVICES_MAX], *pcis[DEVICES_MAX];
	unsigned vdev_count, ring_count, pci_count;
	const char *name; /* NULL: one of our own */
	uint64_t eal_mb;
	char **eal_argv; /* behind the -- */
	int eal_argc;

	enum frame_kind frame;
	uint16_t sizes[SIZES_MAX];
	unsigned size_count;
	const char *pcap;
	struct stage stages[STAGES_MAX];
	unsigned stage_count;
	uint64_t seed;
	uint8_t stream; /* of the first generator; the others count on */
	uint8_t dst_mac[6];
	bool dst_mac_given;
	uint32_t src_ip, dst_ip;      /* host order */
	uint64_t outstanding;         /* 0: no limit */
	uint64_t timeout_ns, link_ns; /* of an answer; for a link to come up */
	uint64_t linger_ns;           /* from the report to the closing of ports */
	uint64_t sink_rate;

	enum memory_kind memory;
	enum pool_order order;
	uint64_t page_size; /* of MEMORY_HUGE, bytes */
	uint32_t pool_size, pool_cache;
	uint32_t buffer_size; /* bytes, headroom included */

	uint64_t stats_s;    /* seconds between lines, 0: none */
	uint64_t latency;    /* every how many bursts, 0: never */
	const char *samples; /* file */
	uint64_t sample_every, sample_run, samples_max;
};

void config_init(struct fwd_config *c);
/* The set() of the command; prints what is wrong. */
int config_set(void *ctx, int id, const struct option_value *v);
/* After the last option: checks combinations. Prints what is wrong. */
int config_check(struct fwd_config *c);
/* Whether a role of the kind is there. */
bool config_has(const struct fwd_config *c, enum role_kind kind);

#endif
