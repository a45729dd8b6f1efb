/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration of ringtap-fwd: its options, parsed. */
#ifndef RINGTAP_FWD_CONFIG_H
#define RINGTAP_FWD_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/command.h"

#define ROLES_MAX     16
#define STAGES_MAX    32
#define SIZES_MAX     64 /* frames in one round of a mix */
#define DEVICES_MAX   32
#define PORT_NAME_MAX 64
#define BURST_MAX     256
#define RATE_MAX      UINT64_C(1000000000) /* packets per second */
#define FRAME_MIN     60 /* bytes; all lengths are without the frame check sequence */
#define FRAME_MAX     9600
#define FRAME_ROOM    64u  /* bytes: frames are copied in units of this size */
#define HEADROOM      128u /* bytes before the frame in a buffer: RTE_PKTMBUF_HEADROOM */
#define ANY_CPU       -1

/* In the order of the choices of --plane, --frame, … */
enum plane_id { PLANE_DPDK, PLANE_PACKET, PLANE_MMAP };
enum frame_kind { FRAME_ARP, FRAME_UDP };
enum memory_kind {
	MEMORY_DPDK,
	MEMORY_4K,
	MEMORY_THP,
	MEMORY_HUGE,
	MEMORY_GPU,
	MEMORY_GPU_MANAGED,
	MEMORY_GPU_PINNED
};
enum pool_order { ORDER_RING, ORDER_STACK, ORDER_SHUFFLED };
extern const char *const plane_names[], *const memory_names[], *const order_names[];

enum role_kind { ROLE_FORWARD, ROLE_ONEWAY, ROLE_ECHO, ROLE_GENERATE, ROLE_SINK };
#define ROLE_CHOICES "forward|oneway|echo|generate|sink"
extern const char *const role_names[];

/* One --role. */
struct role_spec {
	enum role_kind kind;
	char ports[2][PORT_NAME_MAX]; /* the second one: forward and oneway only */
	int cpu;                      /* ANY_CPU: the next allowed one */
};

struct stage {
	uint64_t rate; /* packets per second; RATE_UNLIMITED: as fast as possible */
	uint64_t ns;   /* duration; 0: unlimited, then the only stage */
};
#define RATE_UNLIMITED UINT64_MAX

/* Policy for packets that a port did not accept. */
struct tx_full {
	bool retry;
	uint64_t tries; /* with retry: maximum, then drop; 0: until sent */
};

struct fwd_config {
	enum plane_id plane;
	struct role_spec roles[ROLES_MAX];
	unsigned role_count;
	bool sleep, mac_swap, poisson, rtt, timing, no_huge, no_probe, json, verbose;
	bool rate_given;             /* or --stages */
	uint16_t burst, descriptors; /* burst: 0 until config_check() */
	uint64_t tx_first;
	struct tx_full tx_full;
	uint64_t work_ns;            /* for each forwarded packet */
	uint64_t duration_ns, count; /* 0: no limit */

	const char *vdevs[DEVICES_MAX], *rings[DEVICES_MAX], *pcis[DEVICES_MAX];
	unsigned vdev_count, ring_count, pci_count;
	const char *name;   /* NULL: ringtap-fwd-PID */
	uint64_t eal_bytes; /* 0: computed */
	char **eal_argv;    /* arguments behind -- */
	int eal_argc;

	enum frame_kind frame;
	uint16_t sizes[SIZES_MAX];
	unsigned size_count;
	const char *pcap;
	struct stage stages[STAGES_MAX];
	unsigned stage_count;
	uint64_t seed;
	uint8_t stream; /* stream of the first generator; incremented for each further one */
	uint8_t dst_mac[6];
	bool dst_mac_given;
	uint32_t src_ip, dst_ip;      /* host order */
	uint64_t outstanding;         /* 0: no limit */
	uint64_t timeout_ns, link_ns; /* maximum wait for an answer; for a link */
	uint64_t linger_ns;           /* from the report to the closing of ports */
	uint64_t sink_rate;           /* packets per second; 0: unlimited */

	enum memory_kind memory;
	enum pool_order order;
	uint64_t page_size; /* MEMORY_HUGE: bytes */
	uint32_t pool_size, pool_cache;
	uint32_t buffer_size; /* bytes, headroom included */

	uint64_t stats_ns;   /* between lines; 0: none */
	uint64_t latency;    /* bursts per measured burst; 0: not measured */
	const char *samples; /* file */
	uint64_t sample_every, sample_run, samples_max;
};

void config_init(struct fwd_config *c);
/* The set() of the command. 0, or -EINVAL after printing why. */
int config_set(void *ctx, int id, const struct option_value *v);
/* Checks the combination of options after the last one. 0, or -EINVAL after printing why. */
int config_check(struct fwd_config *c);
/* Whether any role is of this kind. */
bool config_has(const struct fwd_config *c, enum role_kind kind);

#endif
