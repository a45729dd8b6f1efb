/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by unit tests of the probe: an EAL without huge pages and devices, packets, a ring, and a
 * foreign reader of records. */
#ifndef RINGTAP_PROBE_TEST_EAL_H
#define RINGTAP_PROBE_TEST_EAL_H

#include <stdbool.h>

#include <rte_mbuf.h>

#include "probe/capture/session.h"
#include "ringtap/reader.h"

/* Aborts if EAL does not start. At the end of the program the runtime folder is removed. */
void test_eal_start(void);

/* The calling thread may run on every CPU. EAL binds its own threads to a CPU, and with them those
 * that they start. */
void test_any_cpu(void);

/* A pool whose mbufs take jumbo frames in one segment; made once. */
struct rte_mempool *test_pool(void);

/* Makes room in mbufs for the history of operations, as DPDK does if it was built to note them.
 * Returns its offset. */
int test_add_history(void);

/* The byte at off of the frame that seed makes. */
uint8_t test_byte(uint32_t seed, uint32_t off);

/* A frame of len bytes made of seed. The caller frees it with rte_pktmbuf_free_bulk() or so. */
struct rte_mbuf *test_frame(uint32_t seed, uint32_t len);

/* The same cut into segments of these lengths; the last takes what is left. */
struct rte_mbuf *test_chain(uint32_t seed, uint32_t len, const uint16_t *cuts, unsigned cut_count);

void test_drop(struct rte_mbuf *m);

/* A session's memory, laid out and attached. Aborts where there is none. */
void test_shm_make(struct rt_shm *m, uint32_t rings, uint64_t buffer_size, uint32_t taps);
/* Memory as a reader makes it for a layout; the caller closes fds. */
void test_shm_memory(const struct rt_shm *m, int fds[RT_FD_COUNT]);

/* A session with one target, whose program is in insns; with RT_OPEN_SAMPLE that of test_sample,
 * with RT_OPEN_FIRST the limit of test_first. Fails the test if it is refused. */
extern struct rt_msg_sample test_sample;
extern struct rt_msg_first test_first;
struct rt_session *test_session_open(const struct rt_msg_open *open,
	const struct rt_msg_target *target, const struct rt_insn *insns);
/* Replaces its filter by one instruction, NULL: by none. 0 or -errno, and then a sentence in err
 * (RT_TEXT_LEN bytes). */
int test_set_filter(struct rt_session *s, const struct rt_insn *insn, char *err);

/* The reader's part in making an opened session ready. Fails the test where it is refused. */
void test_session_ready(struct rt_session *s, const struct rt_clock_line *clock);
/* Makes an opened session ready and arms it. */
void test_session_arm(struct rt_session *s, const struct rt_clock_line *clock);
/* Stops the session and waits until no hook uses it. The caller frees it. */
void test_session_end(struct rt_session *s);
/* Where the records of a ring end that writes alone, and is not read. */
uint64_t test_session_room(const struct rt_session *s);
/* Counters by tap of ring i, or, where i is s->rows, of threads without a ring. */
const struct rt_seg_count *test_session_row(const struct rt_session *s, uint32_t i);
/* The counters of all rings and taps. */
struct rt_seg_count test_session_sum(const struct rt_session *s);

/* Starts a capture of all ports of the probe in dir, with small rings. The caller closes it. */
struct ringtap_capture *test_capture(const char *dir);

/* Starts EAL, runs a group of tests with the copy for any CPU, and with that for this CPU if it is
 * another one. Returns the number of failed tests. */
int test_run_both_copies(int (*run)(const char *group));

/* Pseudorandom bits, the same in each run. */
uint32_t test_random(void);

/* One ring with one session and some taps, outside of any hook. */
struct test_ring {
	struct rt_shm shm;
	struct rt_chunks chunks;
	struct rt_ring ring;
	struct rt_session *session;
	struct rt_tap tap[2]; /* RX and TX of one queue */
	uint64_t pending[2];
	uint64_t read; /* test_ring_next() is here */
};

#define TEST_RING ((uint64_t)RT_CHUNKS_OF_RING * RT_CHUNK_MIN) /* bytes; the smallest ring */

void test_ring_make(struct test_ring *t, uint64_t size);
void test_ring_free(struct test_ring *t);

/* Pushes a burst as hook_burst.c does it. */
void test_ring_push(struct test_ring *t, enum rt_direction dir, struct rte_mbuf **pkts, unsigned n,
	uint64_t ns);

struct test_record {
	uint64_t ns, dropped, id;
	uint32_t total, if_index, captured, original, flags, queue, hash;
	bool has_hash, has_dropped, has_id;
	const uint8_t *data, *verdict; /* NULL: there is none */
};

/* The next record of the ring, taken apart and checked against the pcapng format (fails the test).
 * False: there is none. */
bool test_ring_next(struct test_ring *t, struct test_record *r);

/* The byte at a position of the ring. */
const uint8_t *test_ring_at(const struct test_ring *t, uint64_t pos);

/* Gives back to the producer what has been read. */
void test_ring_release(struct test_ring *t);

#endif
