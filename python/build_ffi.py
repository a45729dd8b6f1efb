# SPDX-License-Identifier: BSD-3-Clause
"""Writes the C source of ringtap._ringtap. usage: build_ffi.py OUTPUT

Structures end in "...": the C compiler fills in their layout, so that they follow the headers.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import cffi

if TYPE_CHECKING:
    from typing import Any

CDEF = """
#define RINGTAP_RX ...
#define RINGTAP_TX ...
#define RINGTAP_NO_INDEX ...
#define RINGTAP_FIELDS_ALL ...
#define RINGTAP_SNAPLEN_MAX ...
#define RINGTAP_POLLS ...
#define RINGTAP_BYTES ...
#define RINGTAP_BUSY ...
#define RINGTAP_GAPS ...
#define RINGTAP_LATENCY ...
#define RINGTAP_ADDRESSES ...
#define RINGTAP_POOLS ...
#define RINGTAP_LATENCY_SPLIT ...

const char *ringtap_version(void);
void free(void *);

struct ringtap_apps;
int ringtap_apps_find(struct ringtap_apps **out);
void ringtap_apps_free(struct ringtap_apps *apps);
size_t ringtap_apps_count(const struct ringtap_apps *apps);
const char *ringtap_apps_name(const struct ringtap_apps *apps, size_t i);
const char *ringtap_apps_dir(const struct ringtap_apps *apps, size_t i);

struct ringtap_insn { ...; };
struct ringtap_target {
    const char *port; int queue; unsigned directions; uint32_t snaplen;
    const struct ringtap_insn *filter; uint32_t filter_len; ...;
};
enum ringtap_ids { RINGTAP_NO_IDS, RINGTAP_IDS, RINGTAP_IDS_INFERRED };
struct ringtap_capture_options { size_t size; uint64_t buffer_size; int timeout_ms; enum ringtap_ids ids; bool fates; uint32_t sample; ...; };
struct ringtap_capture;
int ringtap_capture_create(struct ringtap_capture **out, const void *opts);
int ringtap_capture_attach(struct ringtap_capture *cap, const char *dir, const struct ringtap_target *targets,
    size_t target_count, const struct ringtap_capture_options *opts);
int ringtap_capture_start(struct ringtap_capture *cap);
const char *ringtap_capture_error(const struct ringtap_capture *cap);
struct ringtap_run { uint64_t packets, bytes; uint32_t app; bool stale; ...; };
int ringtap_capture_next(struct ringtap_capture *cap, struct ringtap_run *runs, unsigned max, int timeout_ms);
void ringtap_capture_release(struct ringtap_capture *cap);
void ringtap_capture_break(struct ringtap_capture *cap);
int ringtap_capture_stop(struct ringtap_capture *cap);
void ringtap_capture_detach(struct ringtap_capture *cap);
void ringtap_capture_close(struct ringtap_capture *cap);

struct ringtap_packet {
    const uint8_t *data; uint32_t caplen, length; uint64_t ns; uint32_t interface, queue, hash;
    uint8_t direction; bool has_hash; uint64_t dropcount, id; ...;
};
struct ringtap_packets { ...; };
int ringtap_packets_create(struct ringtap_packets **out);
void ringtap_packets_free(struct ringtap_packets *it);
void ringtap_packets_start(struct ringtap_packets *it, const struct ringtap_run *run);
void ringtap_packets_fields(struct ringtap_packets *it, int fields);
int ringtap_packets_error(const struct ringtap_packets *it);
const struct ringtap_packet *ringtap_packet_next(struct ringtap_packets *it);

struct ringtap_interface {
    size_t size; uint32_t app, target; char app_name[64], name[64], driver[64]; uint8_t mac[6];
    uint16_t port_id; uint32_t link_mbps, snaplen; bool gone;
    uint64_t nic_ipackets, nic_opackets, nic_imissed, nic_ierrors, nic_nombuf, nic_oerrors;
    char device[64]; ...;
};
struct batch_row { ...; };
struct batch { struct batch_row *rows; uint32_t count, room; uint8_t *data; uint64_t used, size; };
static bool batch_fill(struct batch *b, struct ringtap_packets *it);

unsigned ringtap_capture_interface_count(const struct ringtap_capture *cap);
int ringtap_capture_interface(const struct ringtap_capture *cap, unsigned i, struct ringtap_interface *out);
struct ringtap_counts { uint64_t seen, captured, filtered, bytes; uint64_t lost[...]; uint64_t not_sampled, cut, evicted; ...; };
struct ringtap_stats {
    size_t size; struct ringtap_counts total; uint64_t delivered, reordered, apps_dead, queues_refused; ...;
};
int ringtap_capture_stats(const struct ringtap_capture *cap, struct ringtap_stats *out);

struct ringtap_port_stats {
    char name[64], driver[64]; uint16_t port_id; bool link_up, gone;
    uint32_t link_mbps, rx_queues, tx_queues, rx_descriptors, tx_descriptors, mtu; uint64_t read_ns;
    uint64_t ipackets, opackets, ibytes, obytes, imissed, ierrors, rx_nombuf, oerrors; char device[64];
    uint64_t tx_before, tx_after; uint32_t epoch; uint64_t tx_unknown; ...;
};
struct ringtap_gap { uint64_t start_ns, cycles, ns; uint32_t packets, port; uint16_t queue; bool open; ...; };
struct ringtap_microburst { uint64_t start_ns, cycles, ns, packets; ...; };
struct ringtap_thread_stats {
    uint32_t slot, generation; bool alive; uint32_t lcore, tid, cpu; char name[16];
    uint64_t cpu_ns, wait_ns, preempted, read_ns, busy_cycles, idle_cycles, busy_periods;
    uint64_t busy_period_packets[...], gaps_busy[...], gaps_idle[...];
    uint32_t gap_count, microburst_count; uint64_t last_poll_ns, quiet_ns;
    uint32_t last_poll_packets, last_poll_port; uint16_t last_poll_queue; bool last_poll_holds; ...;
};
struct ringtap_queue_stats {
    uint32_t thread, port; uint16_t queue, direction; uint32_t max_burst;
    uint64_t polls, empty_polls, packets, bytes, byte_packets, big_polls, big_packets, burst[...]; ...;
};
struct ringtap_pair_stats {
    uint32_t thread, rx_port, tx_port, inferred; uint64_t count, sum, min, max, unstamped, shared;
    const uint64_t *bucket; uint32_t tx_queue, bytes_from, bytes_to; ...;
};
struct ringtap_pool_stats {
    char name[64], ops[32]; uint64_t address; bool gone, pinned_external;
    uint32_t size, object_bytes, buffer_bytes, chunks, cache_size; int32_t socket;
    uint64_t page_bytes, base, span; uint32_t available, in_caches, lowest; ...;
};
struct ringtap_snapshot {
    uint64_t taken_ns, taken_tsc, interval_ns, tsc_hz; unsigned collectors, latency_every; uint32_t switched;
    uint64_t no_thread_polls, no_block_polls, no_pair_packets;
    uint32_t port_count, thread_count, queue_count, pair_count, pool_count;
    uint32_t ports_beyond, pools_beyond; uint64_t taken_mono_ns; ...;
};
const struct ringtap_port_stats *ringtap_snapshot_port(const struct ringtap_snapshot *s, uint32_t i);
const struct ringtap_thread_stats *ringtap_snapshot_thread(const struct ringtap_snapshot *s, uint32_t i);
const struct ringtap_queue_stats *ringtap_snapshot_queue(const struct ringtap_snapshot *s, uint32_t i);
const struct ringtap_pair_stats *ringtap_snapshot_pair(const struct ringtap_snapshot *s, uint32_t i);
const struct ringtap_pool_stats *ringtap_snapshot_pool(const struct ringtap_snapshot *s, uint32_t i);
const struct ringtap_gap *ringtap_thread_gap(const struct ringtap_thread_stats *t, uint32_t i);
const struct ringtap_microburst *ringtap_thread_microburst(const struct ringtap_thread_stats *t, uint32_t i);
struct ringtap_monitor_options { size_t size; unsigned collectors, latency_every; int timeout_ms; ...; };
struct ringtap_monitor;
int ringtap_monitor_open(struct ringtap_monitor **out, const char *dir,
    const struct ringtap_monitor_options *opts, char *err, size_t errlen);
void ringtap_monitor_close(struct ringtap_monitor *mon);
int ringtap_monitor_read(struct ringtap_monitor *mon, struct ringtap_snapshot **out);
void ringtap_snapshot_free(struct ringtap_snapshot *f);
void ringtap_snapshot_since(struct ringtap_snapshot *later, const struct ringtap_snapshot *earlier);
uint32_t ringtap_latency_buckets(void);
double ringtap_latency_quantile(const uint64_t *bucket, double share);

enum ringtap_fate {
    RINGTAP_FATE_NONE, RINGTAP_FATE_NOT_OFFERED, RINGTAP_FATE_UNKNOWN, RINGTAP_FATE_INFERRED, RINGTAP_FATE_UNSEEN,
    RINGTAP_FATE_STOPPED
};
struct ringtap_fate_queue {
    uint32_t interface; uint16_t queue;
    uint64_t received, offered, not_offered, free, open, unknown, inferred, unseen, stopped; ...;
};
struct ringtap_fate_pool { char name[64]; ...; };
struct ringtap_fates { uint64_t taken_ns; uint32_t queue_count, pool_count; ...; };
int ringtap_fates_read(const struct ringtap_capture *cap, uint32_t app, struct ringtap_fates **out);
void ringtap_fates_free(struct ringtap_fates *f);
const struct ringtap_fate_queue *ringtap_fates_queue(const struct ringtap_fates *f, uint32_t i);
const struct ringtap_fate_pool *ringtap_fates_pool(const struct ringtap_fates *f, uint32_t i);
struct ringtap_open_packet {
    const uint8_t *data; uint32_t caplen, length; uint64_t ns; uint32_t interface, queue, pool; bool free; ...;
};
struct ringtap_open_packets;
int ringtap_open_packets_create(struct ringtap_open_packets **out, const struct ringtap_capture *cap, uint32_t app);
void ringtap_open_packets_free(struct ringtap_open_packets *it);
const struct ringtap_open_packet *ringtap_open_packets_next(struct ringtap_open_packets *it);

struct bpf_program { unsigned bf_len; struct bpf_insn *bf_insns; };
typedef struct { ...; } pcap_t;
pcap_t *pcap_open_dead(int linktype, int snaplen);
enum ringtap_tags { RINGTAP_TAGS_ANY, RINGTAP_TAGS_AS_IS };
int compile_filter(pcap_t *p, struct bpf_program *fp, const char *str, enum ringtap_tags tags);
char *pcap_geterr(pcap_t *p);
void pcap_freecode(struct bpf_program *fp);
void pcap_close(pcap_t *p);
"""

SOURCE = """
#include <stdlib.h>
#include <pcap/pcap.h>
#include <ringtap/fates.h>
#include <ringtap/monitor.h>
#include <ringtap/open.h>
#include <ringtap/reader.h>
#include "batch.h"

static int compile_filter(pcap_t *p, struct bpf_program *fp, const char *str, enum ringtap_tags tags)
{
    return ringtap_filter_compile(pcap_compile, tags, p, fp, str, 1, PCAP_NETMASK_UNKNOWN);
}
"""


def main(output: Any) -> None:
    ffi = cffi.FFI()
    ffi.cdef(CDEF.replace("typedef struct { ...; } pcap_t;", "typedef ... pcap_t;"))
    ffi.set_source("ringtap._ringtap", SOURCE)
    ffi.emit_c_code(output)


if __name__ == "__main__":
    main(sys.argv[1])
