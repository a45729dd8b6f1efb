/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All metrics: names, units and meanings. ringtap top, its JSON, ringtap export, the probe's
 * telemetry and the table in docs/statistics.md follow from this table. measure/metrics.c
 * computes the values.
 */
#ifndef RINGTAP_COMMON_METRICS_H
#define RINGTAP_COMMON_METRICS_H

enum rt_metric_object {
	RT_OBJECT_APP,
	RT_OBJECT_PORT,
	RT_OBJECT_DRIVER, /* a port: the driver's counters */
	RT_OBJECT_CALLS,  /* a port and direction, or a queue: the probe's counters */
	RT_OBJECT_QUEUE,
	RT_OBJECT_THREAD,
	RT_OBJECT_POOL,
	RT_OBJECT_RING,
	RT_OBJECT_XSTAT,
	RT_OBJECT_DEVICE, /* a statistic of an event, crypto or DMA device */
	RT_OBJECT_LCORE,  /* what the application counts of it */
	RT_OBJECT_PAIR,   /* latency between two ports */
	RT_OBJECT_GAP,    /* a polling gap or a microburst */
	/* Not of a snapshot, but of a flight recorder's answer, by the same keys. */
	RT_OBJECT_RECORDER,
	RT_OBJECT_KEPT,      /* a port of a recorder's application */
	RT_OBJECT_CONDITION, /* a recorder's condition */
};

enum rt_metric_type { RT_METRIC_GAUGE, RT_METRIC_COUNTER, RT_METRIC_HISTOGRAM, RT_METRIC_INFO };

enum rt_unit {
	RT_UNIT_TEXT,
	RT_UNIT_BOOL,
	RT_UNIT_COUNT, /* whole numbers, also identifiers */
	RT_UNIT_RATE,  /* per second */
	RT_UNIT_SHARE, /* 0 … 1 */
	RT_UNIT_MEAN,
	RT_UNIT_NS,
	RT_UNIT_CYCLES,
	RT_UNIT_BYTES,
	RT_UNIT_MBPS,
	RT_UNIT_CLOCK, /* nanoseconds since the epoch */
	RT_UNIT_BARS,  /* a histogram */
};

/*
 * M(object, id, key in JSON and telemetry, name in Prometheus, type, unit, meaning)
 *
 * Prometheus: after "ringtap_"; counters get "_total" and infos "_info"; cycles and nanoseconds
 * become seconds, Mbit/s bytes a second. NULL: not there. Keys of counters of DRIVER are rates in
 * JSON.
 */
#define RT_METRICS(M)                                                                              \
	M(APP, APP_UP, NULL, "up", GAUGE, BOOL,                                                    \
		"1: the application shows statistics; 0: ringtap cannot attach to it")             \
	M(APP, APP_NAME, NULL, NULL, GAUGE, TEXT, "application, by its file-prefix")               \
	M(APP, APP_INFO, NULL, "application", INFO, TEXT,                                          \
		"program of the application, and versions")                                        \
	M(APP, APP_POLLS, "uncounted_polls", "uncounted_polls", COUNTER, COUNT,                    \
		"calls of threads and queues that found no room in the segment")                   \
	M(APP, APP_PORTS, "uncounted_ports", "uncounted_ports", GAUGE, COUNT,                      \
		"ports not shown: more than 64 since the first monitor, or ids too high")          \
	M(APP, APP_POOLS, "uncounted_pools", "uncounted_mempools", GAUGE, COUNT,                   \
		"mempools that are not shown: there were more than 64 since the first monitor")    \
	M(APP, APP_RINGS, "uncounted_rings", "uncounted_rings", GAUGE, COUNT,                      \
		"rings that are not shown: more than 128 since the first monitor, or the kernel "  \
		"refuses to read them")                                                            \
	M(APP, APP_XSTATS, "uncounted_xstats", "uncounted_xstats", GAUGE, COUNT,                   \
		"xstats that are not shown: more than 512 of a port, or 2048 in all")              \
	M(APP, APP_DEVICES, "uncounted_device_stats", "uncounted_device_stats", GAUGE, COUNT,      \
		"statistics of devices that are not shown: more than 2048")                        \
	M(APP, APP_LEFT_OUT, NULL, "samples_left_out", GAUGE, COUNT,                               \
		"samples that are missing here: the application has more than it may; "            \
		"--max-samples")                                                                   \
	M(APP, LAST_MINUTE, NULL, NULL, GAUGE, BARS,                                               \
		"the last minute, 3 s a bar, of its largest or of 100 %; blank: unknown")          \
	M(PORT, PORT_ID, "index", NULL, GAUGE, COUNT, "port id")                                   \
	M(PORT, PORT_NAME, "name", "port", INFO, TEXT, "name, driver and id of the port")          \
	M(PORT, PORT_DRIVER, "driver", NULL, GAUGE, TEXT, "driver of the port")                    \
	M(PORT, PORT_LINK, "link_up", "port_link_up", GAUGE, BOOL, "whether the link is up")       \
	M(PORT, PORT_REMOVED, "removed", NULL, GAUGE, BOOL, "whether the port was removed")        \
	M(PORT, PORT_MBPS, "link_mbps", "port_speed_bytes", GAUGE, MBPS,                           \
		"link speed, if it is known")                                                      \
	M(PORT, PORT_RXQ, "rx_queues", NULL, GAUGE, COUNT, "RX queues")                            \
	M(PORT, PORT_TXQ, "tx_queues", NULL, GAUGE, COUNT, "TX queues")                            \
	M(PORT, PORT_RXD, "rx_descriptors", NULL, GAUGE, COUNT, "descriptors of RX queue 0")       \
	M(PORT, PORT_TXD, "tx_descriptors", NULL, GAUGE, COUNT, "descriptors of TX queue 0")       \
	M(PORT, PORT_MTU, "mtu", NULL, GAUGE, COUNT, "MTU")                                        \
	M(DRIVER, IPACKETS, "rx_packets", "port_rx_packets", COUNTER, RATE,                        \
		"packets received, by the driver's count")                                         \
	M(DRIVER, OPACKETS, "tx_packets", "port_tx_packets", COUNTER, RATE,                        \
		"packets sent, by the driver's count")                                             \
	M(DRIVER, IBYTES, "rx_bytes", "port_rx_bytes", COUNTER, RATE,                              \
		"bytes received, if the driver counts them")                                       \
	M(DRIVER, OBYTES, "tx_bytes", "port_tx_bytes", COUNTER, RATE,                              \
		"bytes sent, if the driver counts them")                                           \
	M(DRIVER, IMISSED, "missed", "port_missed_packets", COUNTER, RATE,                         \
		"missed: the NIC had no free descriptor")                                          \
	M(DRIVER, IERRORS, "rx_errors", "port_rx_errors", COUNTER, RATE,                           \
		"errors: packets that the NIC received with errors")                               \
	M(DRIVER, NOMBUF, "no_mbuf", "port_no_mbuf_packets", COUNTER, RATE,                        \
		"no mbuf: the mempool was empty")                                                  \
	M(DRIVER, OERRORS, "tx_errors", "port_tx_errors", COUNTER, RATE,                           \
		"errors: packets that the NIC failed to send")                                     \
	M(DRIVER, OFFERED, "offered", NULL, COUNTER, RATE,                                         \
		"packets passed to TX between two readings of the driver")                         \
	M(DRIVER, UNSENT, "refused", NULL, COUNTER, RATE,                                          \
		"refused: packets passed to TX that the driver did not take; 0 unless that "       \
		"is certain")                                                                      \
	M(DRIVER, ERRORS, NULL, NULL, COUNTER, RATE, "errors: of RX and TX")                       \
	M(QUEUE, QUEUE_PORT, "port", NULL, GAUGE, TEXT, "port")                                    \
	M(QUEUE, QUEUE_NUMBER, "queue", NULL, GAUGE, COUNT, "queue")                               \
	M(QUEUE, QUEUE_DIRECTION, "direction", NULL, GAUGE, TEXT, "direction, rx or tx")           \
	M(QUEUE, QUEUE_THREAD, "thread", NULL, GAUGE, TEXT, "thread that calls the driver")        \
	M(CALLS, CALLS, "calls", "queue_calls", COUNTER, COUNT,                                    \
		"calls of rte_eth_rx_burst() (polls) or rte_eth_tx_burst()")                       \
	M(CALLS, EMPTY, "empty_calls", "queue_empty_calls", COUNTER, COUNT,                        \
		"calls without packets (empty polls)")                                             \
	M(CALLS, PACKETS, "packets", "queue_packets", COUNTER, COUNT,                              \
		"packets that the driver returned, or that were passed to TX")                     \
	M(CALLS, BYTES, "bytes", "queue_bytes", COUNTER, COUNT,                                    \
		"bytes of the packets (pkt_len), without FCS; needs the collector bytes")          \
	M(CALLS, CALL_RATE, "calls_per_second", NULL, GAUGE, RATE, "calls a second")               \
	M(CALLS, BUSY_RATE, "busy_calls_per_second", NULL, GAUGE, RATE,                            \
		"calls with packets a second")                                                     \
	M(CALLS, BUSY_CALLS, "busy_call_share", NULL, GAUGE, SHARE, "calls with packets")          \
	M(CALLS, PACKET_RATE, "packets_per_second", NULL, GAUGE, RATE, "packets a second")         \
	M(CALLS, BIT_RATE, "bits_per_second", NULL, GAUGE, RATE,                                   \
		"bits a second, without FCS; of a port without the collector bytes, the driver's") \
	M(CALLS, PER_CALL, "packets_per_call", NULL, GAUGE, MEAN, "mean packets a call")           \
	M(CALLS, PER_BUSY_CALL, "packets_per_busy_call", NULL, GAUGE, MEAN,                        \
		"mean packets of the calls that had any")                                          \
	M(CALLS, BURST_P50, "burst_p50", NULL, GAUGE, COUNT,                                       \
		"median burst of the calls with packets")                                          \
	M(CALLS, BURST_P99, "burst_p99", NULL, GAUGE, COUNT,                                       \
		"99th percentile burst of the calls with packets")                                 \
	M(CALLS, MAX_BURST, "max_burst", NULL, GAUGE, COUNT,                                       \
		"largest RX burst requested so far; of a port, by threads that polled it")         \
	M(CALLS, BIG_CALLS, "calls_beyond_histogram", NULL, COUNTER, COUNT,                        \
		"calls with more than 512 packets")                                                \
	M(CALLS, BIG_PACKETS, "packets_beyond_histogram", NULL, COUNTER, COUNT,                    \
		"packets of calls with more than 512")                                             \
	M(CALLS, BURSTS, "bursts", "burst_packets", HISTOGRAM, BARS,                               \
		"calls by packets; in top 0, 1, 2+, 4+, 8+, up to 512+")                           \
	M(THREAD, LCORE, "lcore", NULL, GAUGE, COUNT, "lcore; null: no EAL thread")                \
	M(THREAD, THREAD_NAME, "name", NULL, GAUGE, TEXT, "polling thread")                        \
	M(THREAD, TID, "tid", NULL, GAUGE, COUNT, "thread id, in the application's namespace")     \
	M(THREAD, CPU, "cpu", NULL, GAUGE, COUNT, "CPU that it ran on last")                       \
	M(THREAD, ALIVE, "alive", NULL, GAUGE, BOOL, "whether the thread lives")                   \
	M(THREAD, BUSY_CYCLES, "busy_cycles", "thread_busy_seconds", COUNTER, CYCLES,              \
		"time from polls with packets to the thread's next poll")                          \
	M(THREAD, IDLE_CYCLES, "idle_cycles", "thread_idle_seconds", COUNTER, CYCLES,              \
		"time from empty polls to the thread's next poll")                                 \
	M(THREAD, CPU_NS, "cpu_ns", "thread_cpu_seconds", COUNTER, NS,                             \
		"time on a CPU, by the kernel's count")                                            \
	M(THREAD, WAIT_NS, "wait_ns", "thread_wait_seconds", COUNTER, NS,                          \
		"time runnable without a CPU, by the kernel's count")                              \
	M(THREAD, PREEMPTIONS, "preemptions", "thread_preemptions", COUNTER, COUNT,                \
		"involuntary context switches")                                                    \
	M(THREAD, BUSY_PERIODS, "busy_periods", "thread_busy_periods", COUNTER, COUNT,             \
		"microbursts that have ended: polls in a row that all had packets")                \
	M(THREAD, BUSY_SHARE, "busy_share", NULL, GAUGE, SHARE, "busy time of the observed time")  \
	M(THREAD, OBSERVED, "observed_share", NULL, GAUGE, SHARE,                                  \
		"time between the first and the last poll, of the interval")                       \
	M(THREAD, CYCLES, "cycles_per_packet", NULL, GAUGE, MEAN, "busy cycles a packet received") \
	M(THREAD, THREAD_PPS, "packets_per_second", NULL, GAUGE, RATE,                             \
		"packets received a second")                                                       \
	M(THREAD, THREAD_POLLS, "polls_per_second", NULL, GAUGE, RATE, "RX polls a second")        \
	M(THREAD, CPU_SHARE, "cpu_share", NULL, GAUGE, SHARE, "time on a CPU")                     \
	M(THREAD, WAIT_SHARE, "wait_share", NULL, GAUGE, SHARE, "time runnable without a CPU")     \
	M(THREAD, PREEMPTION_RATE, "preemptions_per_second", NULL, GAUGE, RATE,                    \
		"involuntary context switches a second")                                           \
	M(THREAD, LCORE_USAGE, "lcore_busy_share", NULL, GAUGE, SHARE,                             \
		"busy share of its lcore, as the application counts it")                           \
	M(THREAD, MAX_GAP, "max_gap_ns", "thread_max_polling_gap_seconds", GAUGE, NS,              \
		"longest polling gap; in Prometheus of about the last 16 seconds")                 \
	M(THREAD, MAX_IDLE_GAP, "max_idle_gap_ns", NULL, GAUGE, NS,                                \
		"longest polling gap after an empty poll")                                         \
	M(THREAD, MAX_MICROBURST, "max_microburst", NULL, GAUGE, COUNT,                            \
		"packets of the largest microburst")                                               \
	M(THREAD, GAPS, NULL, "thread_polling_gap_seconds", HISTOGRAM, NS,                         \
		"polling gaps, after polls with packets (work=\"busy\") and empty ones; the sum "  \
		"is an estimate")                                                                  \
	M(POOL, POOL_NAME, "name", NULL, GAUGE, TEXT, "mempool")                                   \
	M(POOL, POOL_OPS, "ops", NULL, GAUGE, TEXT,                                                \
		"how the mempool keeps free objects (rte_mempool ops)")                            \
	M(POOL, POOL_REMOVED, "removed", NULL, GAUGE, BOOL, "whether the mempool was freed")       \
	M(POOL, POOL_SIZE, "size", "mempool_objects", GAUGE, COUNT, "objects of the mempool")      \
	M(POOL, POOL_USED, "in_use", NULL, GAUGE, COUNT,                                           \
		"objects that are neither in the pool nor in a cache")                             \
	M(POOL, POOL_SHARE, "in_use_share", NULL, GAUGE, SHARE, "objects in use")                  \
	M(POOL, POOL_FREE, "available", "mempool_available_objects", GAUGE, COUNT,                 \
		"objects in the pool and its caches")                                              \
	M(POOL, POOL_CACHED, "in_caches", "mempool_cached_objects", GAUGE, COUNT,                  \
		"objects in the caches of lcores, where other lcores cannot get them")             \
	M(POOL, POOL_MIN, "min_available", "mempool_min_available_objects", GAUGE, COUNT,          \
		"fewest available objects at any reading")                                         \
	M(POOL, POOL_CACHE, "cache_size", NULL, GAUGE, COUNT, "size of an lcore's cache")          \
	M(POOL, POOL_OBJECT, "object_bytes", "mempool_object_bytes", GAUGE, COUNT,                 \
		"bytes of an object with header and trailer")                                      \
	M(POOL, POOL_BUFFER, "buffer_bytes", NULL, GAUGE, COUNT, "data room of its mbufs")         \
	M(POOL, POOL_PAGE, "page_bytes", NULL, GAUGE, BYTES, "size of the memory's pages")         \
	M(POOL, POOL_MEMORY, "memory", NULL, GAUGE, TEXT,                                          \
		"dpdk: from DPDK's heap; external: registered with DPDK, or unknown to it")        \
	M(POOL, POOL_CHUNKS, "chunks", NULL, GAUGE, COUNT, "contiguous pieces of memory")          \
	M(POOL, POOL_SOCKET, "socket", NULL, GAUGE, COUNT, "NUMA node; -1: any")                   \
	M(RING, RING_NAME, "name", NULL, GAUGE, TEXT, "ring (rte_ring)")                           \
	M(RING, RING_REMOVED, "removed", NULL, GAUGE, BOOL, "whether the ring was freed")          \
	M(RING, RING_CAPACITY, "capacity", "ring_capacity_objects", GAUGE, COUNT,                  \
		"objects that fit into the ring")                                                  \
	M(RING, RING_USED, "used", "ring_used_objects", GAUGE, COUNT,                              \
		"objects in the ring at the last sample")                                          \
	M(RING, RING_SHARE, "used_share", NULL, GAUGE, SHARE, "the same, of its capacity")         \
	M(RING, RING_PEAK, "max_used", NULL, GAUGE, COUNT,                                         \
		"most objects at a sample of the interval, or of its last 1.6 s; samples are "     \
		"50 ms apart")                                                                     \
	M(RING, RING_PEAK_SHARE, "max_used_share", NULL, GAUGE, SHARE,                             \
		"the same, of its capacity")                                                       \
	M(RING, RING_HIGHEST, "highest", "ring_max_used_objects", GAUGE, COUNT,                    \
		"most objects at any sample since the first monitor")                              \
	M(XSTAT, XSTAT_PORT, "port", NULL, GAUGE, TEXT, "port")                                    \
	M(XSTAT, XSTAT_NAME, "name", NULL, GAUGE, TEXT, "extended statistic of the port's driver") \
	M(XSTAT, XSTAT_REMOVED, "removed", NULL, GAUGE, BOOL,                                      \
		"whether the port was removed, or its driver has no such statistic any more")      \
	M(XSTAT, XSTAT_VALUE, "value", "port_xstat", GAUGE, COUNT,                                 \
		"value of the extended statistic at the last reading of the driver")               \
	M(XSTAT, XSTAT_RATE, "per_second", NULL, GAUGE, RATE,                                      \
		"how fast it grew, if it did not fall")                                            \
	M(DEVICE, DEVICE_KIND, "kind", NULL, GAUGE, TEXT,                                          \
		"library: eventdev, cryptodev or dmadev")                                          \
	M(DEVICE, DEVICE_NAME, "device", NULL, GAUGE, TEXT, "device")                              \
	M(DEVICE, DEVICE_ID, "index", NULL, GAUGE, COUNT, "number of the device in its library")   \
	M(DEVICE, DEVICE_PART, "part", NULL, GAUGE, TEXT,                                          \
		"port, queue or channel that it is of; null: the device")                          \
	M(DEVICE, DEVICE_STAT, "name", NULL, GAUGE, TEXT, "statistic of the device")               \
	M(DEVICE, DEVICE_REMOVED, "removed", NULL, GAUGE, BOOL,                                    \
		"whether the device is not in use any more, or has no such statistic")             \
	M(DEVICE, DEVICE_VALUE, "value", "device_stat", GAUGE, COUNT,                              \
		"value of the statistic at the last reading of the device")                        \
	M(DEVICE, DEVICE_RATE, "per_second", NULL, GAUGE, RATE,                                    \
		"how fast it grew, if it did not fall")                                            \
	M(LCORE, LCORE_NUMBER, "lcore", NULL, GAUGE, COUNT, "lcore")                               \
	M(LCORE, LCORE_TOTAL, "total_cycles", "lcore_counted_seconds", COUNTER, CYCLES,            \
		"time of the lcore that the application counts (rte_lcore_register_usage_cb())")   \
	M(LCORE, LCORE_BUSY, "busy_cycles", "lcore_busy_seconds", COUNTER, CYCLES,                 \
		"busy time of the lcore, as the application counts it")                            \
	M(LCORE, LCORE_SHARE, "busy_share", NULL, GAUGE, SHARE, "busy time of the counted time")   \
	M(PAIR, RX_PORT, "rx_port", NULL, GAUGE, TEXT, "port that received")                       \
	M(PAIR, TX_PORT, "tx_port", NULL, GAUGE, TEXT, "port that sent")                           \
	M(PAIR, TX_THREAD, "thread", NULL, GAUGE, TEXT, "thread that sent")                        \
	M(PAIR, INFERRED, "inferred", NULL, GAUGE, BOOL,                                           \
		"whether the reception is inferred: the packets had lost the flag of the time "    \
		"stamp")                                                                           \
	M(PAIR, TIMED, "packets", NULL, COUNTER, COUNT, "packets timed")                           \
	M(PAIR, TIMED_RATE, "packets_per_second", NULL, GAUGE, RATE, "packets timed a second")     \
	M(PAIR, MEAN, "mean_ns", NULL, GAUGE, NS, "mean time from receive to send")                \
	M(PAIR, P50, "p50_ns", NULL, GAUGE, NS, "median time from receive to send")                \
	M(PAIR, P90, "p90_ns", NULL, GAUGE, NS, "90th percentile of it")                           \
	M(PAIR, P99, "p99_ns", NULL, GAUGE, NS, "99th percentile of it")                           \
	M(PAIR, P999, "p999_ns", NULL, GAUGE, NS, "99.9th percentile of it")                       \
	M(PAIR, MAX, "max_ns", NULL, GAUGE, NS,                                                    \
		"largest time since the collector was switched on")                                \
	M(PAIR, LATENCY, NULL, "latency_seconds", HISTOGRAM, NS,                                   \
		"time from receive to send of the packets that were timed, within 1 %")            \
	M(PAIR, INFERRED_LATENCY, NULL, "inferred_latency_seconds", HISTOGRAM, NS,                 \
		"time from receive to send of packets without the flag of the time stamp: "        \
		"likely, not certain")                                                             \
	M(GAP, GAP_THREAD, NULL, NULL, GAUGE, TEXT, "polling thread")                              \
	M(GAP, GAP_KIND, NULL, NULL, GAUGE, TEXT,                                                  \
		"idle gap: after an empty poll; busy gap: after a poll with packets; "             \
		"microburst: polls in a row that all had packets")                                 \
	M(GAP, GAP_START, "start", NULL, GAUGE, CLOCK, "when it began")                            \
	M(GAP, GAP_NS, "duration_ns", NULL, GAUGE, NS, "how long it took")                         \
	M(GAP, GAP_OPEN, "open", NULL, GAUGE, BOOL,                                                \
		"whether it lasts: it has taken so long so far")                                   \
	M(GAP, GAP_PACKETS, "packets", NULL, GAUGE, COUNT,                                         \
		"packets of the poll before it, or of the microburst")                             \
	M(GAP, GAP_PORT, "port", NULL, GAUGE, TEXT, "port of the poll before it")                  \
	M(GAP, GAP_QUEUE, "queue", NULL, GAUGE, COUNT, "queue of the poll before it")              \
	M(RECORDER, REC_FOLDER, "folder", NULL, GAUGE, TEXT, "folder of the incidents")            \
	M(RECORDER, REC_KEPT, "kept_ns", "flight_kept_seconds", GAUGE, NS,                         \
		"time until now of which the recorder has all packets")                            \
	M(RECORDER, REC_PACKETS, "kept_packets", "flight_kept_packets", GAUGE, COUNT,              \
		"packets of this time, from counters that are read once a second")                 \
	M(RECORDER, REC_BYTES, "kept_bytes", "flight_kept_bytes", GAUGE, BYTES,                    \
		"memory that packets take, these and older ones")                                  \
	M(RECORDER, REC_BUFFER, "buffer_bytes", "flight_buffer_bytes", GAUGE, BYTES,               \
		"memory of the recorder for packets")                                              \
	M(RECORDER, REC_LOST, "lost", "flight_lost_packets", COUNTER, COUNT,                       \
		"packets that the capture lost, also outside of incidents")                        \
	M(RECORDER, REC_NOT_SAMPLED, "not_sampled", "flight_not_sampled_packets", COUNTER, COUNT,  \
		"packets that --sample left out: neither kept nor lost")                           \
	M(RECORDER, REC_WRITING, "writing", "flight_incidents_in_progress", GAUGE, COUNT,          \
		"incidents that are being written")                                                \
	M(RECORDER, REC_FAILED, "failed", "flight_incidents_failed", COUNTER, COUNT,               \
		"incidents that could not be written, or not all of it")                           \
	M(RECORDER, REC_INCOMPLETE, "incomplete", "flight_incidents_incomplete", COUNTER, COUNT,   \
		"incidents without their beginning: not kept any more, or before the recorder")    \
	M(RECORDER, REC_MISSING, "missing_ns", "flight_missing_seconds", COUNTER, NS,              \
		"time that these lack")                                                            \
	M(RECORDER, REC_INCIDENT_LOST, "incident_lost", "flight_incident_lost_packets", COUNTER,   \
		COUNT, "packets that the capture lost within incidents")                           \
	M(KEPT, KEPT_PORT, "name", NULL, GAUGE, TEXT, "port")                                      \
	M(KEPT, KEPT_PACKETS, "packets", NULL, GAUGE, COUNT, "packets that are kept, about")       \
	M(KEPT, KEPT_BYTES, "bytes", NULL, GAUGE, BYTES, "their bytes on the wire, about")         \
	M(CONDITION, COND_NAME, "name", NULL, GAUGE, TEXT, "name of the incidents")                \
	M(CONDITION, COND_TEXT, "condition", NULL, GAUGE, TEXT, "condition as it was given")       \
	M(CONDITION, COND_VALUE, "value", NULL, GAUGE, TEXT,                                       \
		"worst value of the last one or two seconds, or of 'over'; null: it has none")     \
	M(CONDITION, COND_THRESHOLD, "threshold", NULL, GAUGE, TEXT, "threshold")                  \
	M(CONDITION, COND_SHARE, "threshold_share", "flight_condition_threshold_share", GAUGE,     \
		SHARE,                                                                             \
		"value as a share of the threshold, of levels of pools the inverse: 1 and more "   \
		"is met")                                                                          \
	M(CONDITION, COND_WHERE, "where", NULL, GAUGE, TEXT, "port, thread or pool of the value")  \
	M(CONDITION, COND_INCIDENTS, "incidents", "flight_incidents", COUNTER, COUNT,              \
		"incidents that it has begun")                                                     \
	M(CONDITION, COND_SUPPRESSED, "suppressed", "flight_suppressed_events", COUNTER, COUNT,    \
		"events that made no incident, for --cooldown")

#define RT_METRIC_ID(object, id, ...) RT_M_##id,
enum rt_metric_id { RT_METRICS(RT_METRIC_ID) RT_M_COUNT };
#undef RT_METRIC_ID

struct rt_metric {
	enum rt_metric_object object;
	const char *key, *prometheus;
	enum rt_metric_type type;
	enum rt_unit unit;
	const char *help; /* a phrase that begins with a small letter */
};

extern const struct rt_metric rt_metrics[RT_M_COUNT];

#endif
