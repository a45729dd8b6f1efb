/* SPDX-License-Identifier: BSD-3-Clause */
/* A filter's loop as machine code: the input is a byte n, n + 1 bytes of a packet, and a program.
 * The code decides as libpcap's interpreter, reads nothing behind the packet and ends. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <pcap/pcap.h>

#include "common/program.h"
#include "probe/capture/filter_loop.h"

#define PROGRAM_MAX 256u
#define WORDS       16u /* words of scratch memory */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An mbuf at the end of a page, behind which nothing can be read. */
static struct rte_mbuf *make_packet(const uint8_t *bytes, uint32_t len)
{
	static uint8_t *end;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct rte_mbuf *m;

	if (!end) {
		end = mmap(
			NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (end == MAP_FAILED)
			abort();
		end += page;
		munmap(end, page);
	}
	m = (struct rte_mbuf *)(end - 512 - sizeof(*m));
	memset(m, 0, sizeof(*m));
	m->buf_addr = m + 1;
	m->data_off = (uint16_t)(512 - len);
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	memcpy(end - len, bytes, len);
	return m;
}

static void check(const struct rt_insn *program, uint32_t count, struct rte_mbuf *m)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(m, const uint8_t *);
	struct rte_mbuf *pkts[] = {m, m}, *pass[2];
	struct rt_loop_burst b = {.pkts = pkts, .last = pkts + 2, .pass = pass};
	struct rt_loop l;
	bool passes;

	if (!rt_program_valid(program, count) || rt_loop_create(&l, program, count))
		return;
	memset(b.memory, 0x5a, sizeof(b.memory));
	l.run(&b);
	passes = bpf_filter((const struct bpf_insn *)program, bytes, m->pkt_len, m->data_len);
	if (b.pkts == b.last ? b.pass != pass + 2 * passes : b.pkts != pkts || b.pass != pass)
		abort();
	rt_loop_destroy(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rt_insn program[WORDS + PROGRAM_MAX];
	size_t len = size ? data[0] + 1u : 0;
	uint32_t count;

	if (size <= 1 + len)
		return 0;
	count = (uint32_t)((size - 1 - len) / sizeof(*program));
	if (count > PROGRAM_MAX)
		return 0;
	/* libpcap's interpreter leaves scratch memory undefined. */
	for (uint32_t k = 0; k < WORDS; k++)
		program[k] = (struct rt_insn){.code = BPF_ST, .k = k};
	memcpy(program + WORDS, data + 1 + len, count * sizeof(*program));
	check(program, WORDS + count, make_packet(data + 1, (uint32_t)len));
	return 0;
}
