/* SPDX-License-Identifier: BSD-3-Clause */
/* Filters select what libpcap selects on the same bytes, for all shapes of mbufs. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <pcap/pcap.h>

#include "epb.h"
#include "filter.h"
#include "probe/test_eal.h"
#include "probe/tunables.h"

#define FRAME_MAX  2000u
#define FRAMES_MAX 20000u

static const char *const expressions[] = {"arp", "ip", "ip6", "tcp", "udp", "icmp", "icmp6", "sctp",
	"igmp", "pim", "esp", "stp", "isis", "ether proto 0x88cc", "rarp", "mpls", "pppoes", "vlan",
	"vlan 5", "vlan and ip", "vlan and tcp", "vlan and vlan", "vlan and udp port 53",
	"not vlan", "ether broadcast", "ether multicast", "ip multicast", "ip broadcast or arp",
	"ether host 00:11:22:33:44:55", "ether src 00:11:22:33:44:55",
	"ether dst ff:ff:ff:ff:ff:ff", "ether[0] & 1 != 0", "ether[12:2] = 0x800",
	"ether proto 0x86dd", "len > 100", "less 80", "greater 1000", "len = 60", "host 10.0.0.1",
	"src host 192.168.0.1", "dst net 10.0.0.0/8", "net 192.168",
	"src net 172.16 mask 255.240.0.0", "ip6 host ff02::1", "dst net fe80::/10", "port 53",
	"src port 80", "dst port 443", "portrange 1000-2000", "tcp portrange 1-1023",
	"udp port 53 or tcp port 53", "tcp[tcpflags] & tcp-syn != 0",
	"tcp[tcpflags] & (tcp-syn|tcp-fin) != 0", "tcp[13] & 7 != 0", "tcp[tcpflags] = tcp-ack",
	"ip[8] < 5", "ip[0] & 0xf != 5", "ip[6:2] & 0x1fff = 0", "ip[2:2] > 576", "ip proto 17",
	"ip6 proto 58", "ip6[6] = 17", "icmp[icmptype] = icmp-echo", "udp[8:4] > 0x1000",
	"udp[4:2] < 20", "tcp[((tcp[12] & 0xf0) >> 2):4] = 0x47455420",
	"ip[((ip[0] & 0xf) << 2)] = 0", "ether[len - 1] = 0", "ether[len - 64:4] = 0",
	"ether[ether[0:4]:4] = 1", "ether[ether[14:4] - 5] = 0", "ether[14:4] / 3 > 1000",
	"ether[14:4] % 7 = 3", "ether[14] * 3 - 5 > 100", "ether[14] ^ 0x55 = 0x10",
	"ether[14:4] << 3 != 8 and ether[15] | 1 = 3", "-ether[14] > 4000000000",
	"ip and not tcp and not udp", "not (tcp port 80) and not arp",
	"(tcp or udp) and (port 53 or port 80 or port 443)",
	"ip host 10.0.0.1 and (tcp port 80 or udp port 53)", "ether[20] = 0x11 or ether[54] = 0x11",
	"not ip and not ip6 and not arp", "ip6 and udp", "src or dst port 179", "ether[200:4] != 0",
	"tcp[20:4] = 0 or udp[20] = 1", "not ip", "not (ip or ip6)", "ip and not tcp", "tcp or udp",
	"ip proto 89", "ip6 proto 89", "port 179", "tcp port 179", "udp port 67 or udp port 68",
	"src port 179", "dst port 5353", "portrange 1-1023", "udp dst portrange 3000-4000",
	"src net 10.0.0.0/8", "dst net 192.168.0.0/16", "net 224.0.0.0/4", "ip6 net fe80::/10",
	"ether host 01:80:c2:00:00:00", "ether proto 0x8847", "ether[0] & 1 = 1", "less 64",
	"len > 100 and len <= 200", "ip[6:2] & 0x1fff != 0", "icmp[icmptype] = 8", "vlan 5 and tcp",
	"ip or (vlan and ip)", "ether[12:2] = 0x8100", "tcp[4:4] > 1000000",
	"udp[ip[0] & 0xf:4] != 0", "ip[ip[8] & 0x1f] < 0x20", "ip[2:2] / 3 > 100",
	"ip[2:2] % ip[8] = 3", "ip[0] << 2 = 276", "ip[12:4] & 0x80000000 != 0",
	"ip[8] - ip[9] > 40", "ip[4:2] * ip[8] > 0x100000", "ip[12:4] > 0xc0000000",
	"ether[6:4] | ether[8:4] > 0xf0000000", "link[0:4] = 0x01005e00", "llc",
	"ip and ether[14] & 0xf > 5"};
#define EXPRESSIONS (sizeof(expressions) / sizeof(expressions[0]))

struct frame {
	uint32_t len;
	uint8_t bytes[FRAME_MAX];
};

static struct frame *frames;
static uint32_t frame_count, from_corpus;

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* A frame that many expressions match or nearly match; some have wrong length fields. */
static void generate(struct frame *f)
{
	static const uint16_t types[] = {
		0x0800, 0x0800, 0x0800, 0x86dd, 0x86dd, 0x0806, 0x88cc, 0x8847, 0x8864, 0x0050};
	static const uint8_t protocols[] = {6, 6, 17, 17, 1, 2, 58, 132, 50, 103};
	static const uint16_t ports[] = {53, 80, 443, 179, 1500, 40000};
	uint8_t *p = f->bytes + 12;
	uint16_t type = types[test_random() % 10];

	f->len = 14 + test_random() % 200;
	for (uint32_t i = 0; i < FRAME_MAX; i++)
		f->bytes[i] = (uint8_t)(test_random() % 5 ? test_random() : 0);
	if (test_random() % 4 == 0)
		memset(f->bytes, 0xff, 6);
	if (test_random() % 4 == 0)
		memcpy(f->bytes + 6, "\x00\x11\x22\x33\x44\x55", 6);
	for (uint32_t tags = test_random() % 3; tags > 0 && test_random() % 2; tags--, p += 4) {
		put16(p, tags == 2 ? 0x88a8 : 0x8100);
		put16(p + 2, test_random() % 8);
	}
	put16(p, type);
	p += 2;
	if (type == 0x0800) {
		p[0] = (uint8_t)(0x45 + (test_random() % 4 ? 0 : test_random() % 10));
		put16(p + 6, test_random() % 3 ? 0 : test_random());
		p[9] = protocols[test_random() % 10];
		memcpy(p + 12, test_random() % 2 ? "\x0a\x00\x00\x01" : "\xc0\xa8\x00\x01", 4);
		p += (p[0] & 15) * 4;
	} else if (type == 0x86dd) {
		p[0] = 0x60;
		p[6] = protocols[test_random() % 10];
		memcpy(p + 24, "\xff\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\x01", 16);
		p += 40;
	}
	put16(p, ports[test_random() % 6]);
	put16(p + 2, ports[test_random() % 6]);
}

static void take_file(const char *path)
{
	char err[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *h;
	const uint8_t *bytes;
	pcap_t *p = pcap_open_offline(path, err);

	if (!p)
		return;
	while (pcap_datalink(p) == DLT_EN10MB && frame_count < FRAMES_MAX &&
		pcap_next_ex(p, &h, &bytes) == 1) {
		struct frame *f = &frames[frame_count];

		f->len = h->caplen < FRAME_MAX ? h->caplen : FRAME_MAX;
		memcpy(f->bytes, bytes, f->len);
		frame_count += f->len > 0;
	}
	pcap_close(p);
}

/* Captured packets, in a folder that an environment variable names. */
static void take_corpus(void)
{
	const char *dir = getenv("RINGTAP_PCAPS");
	DIR *d = dir ? opendir(dir) : NULL;
	struct dirent *e;
	char path[512];

	while (d && (e = readdir(d))) {
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		take_file(path);
	}
	if (d)
		closedir(d);
}

static int make_frames(void **state)
{
	frames = calloc(FRAMES_MAX, sizeof(*frames));
	take_corpus();
	from_corpus = frame_count;
	printf("%u packets of the corpus\n", from_corpus);
	for (int i = 0; i < 1500 && frame_count < FRAMES_MAX; i++)
		generate(&frames[frame_count++]);
	return frames ? 0 : -1;
}

static int drop_frames(void **state)
{
	free(frames);
	return 0;
}

/* ---- comparison ---- */

static struct rt_filter *compile(const char *text, struct bpf_program *prog)
{
	pcap_t *p = pcap_open_dead(DLT_EN10MB, 262144);
	struct rt_filter *f = NULL;
	int ret;

	if (pcap_compile(p, prog, text, 1, 0xffffff00))
		fail_msg("%s: %s", text, pcap_geterr(p));
	pcap_close(p);
	ret = rt_filter_create(&f, (const struct rt_insn *)prog->bf_insns, prog->bf_len);
	if (ret)
		fail_msg("%s: refused: %s", text, strerror(-ret));
	return f;
}

static bool passes(const struct rt_filter *f, enum rt_direction dir, struct rte_mbuf *m)
{
	struct rte_mbuf *out = NULL;
	unsigned n = rt_filter_burst(f, dir, &m, 1, &out, &(unsigned){0});

	assert_int_equal(n, out == m && n ? 1 : 0);
	return n;
}

/* An mbuf with these bytes in segments of these lengths. */
static struct rte_mbuf *shape(
	const uint8_t *bytes, uint32_t len, const uint16_t *cuts, unsigned cut_count)
{
	struct rte_mbuf *m = test_chain(0, len, cuts, cut_count);

	for (struct rte_mbuf *s = m; s; bytes += s->data_len, s = s->next)
		memcpy(rte_pktmbuf_mtod(s, void *), bytes, s->data_len);
	return m;
}

/* Moves the frame's first VLAN tags to where a NIC would put them. NULL: it has none. */
static struct rte_mbuf *strip(const struct frame *f, uint32_t len, enum rt_direction dir,
	const uint16_t *cuts, unsigned n)
{
	bool outer = len >= 20 && f->bytes[12] == 0x88 && f->bytes[13] == 0xa8 &&
		     f->bytes[16] == 0x81 && f->bytes[17] == 0;
	bool single = len >= 16 && f->bytes[12] == 0x81 && f->bytes[13] == 0;
	uint32_t cut = outer ? 8 : 4;
	uint8_t rest[FRAME_MAX];
	struct rte_mbuf *m;

	if (!outer && !single)
		return NULL;
	memcpy(rest, f->bytes, 12);
	memcpy(rest + 12, f->bytes + 12 + cut, len - 12 - cut);
	m = shape(rest, len - cut, cuts, n);
	m->vlan_tci = (uint16_t)(f->bytes[10 + cut] << 8 | f->bytes[11 + cut]);
	m->vlan_tci_outer = (uint16_t)(f->bytes[14] << 8 | f->bytes[15]);
	if (dir == RT_DIR_RX)
		m->ol_flags |=
			RTE_MBUF_F_RX_VLAN_STRIPPED | (outer ? RTE_MBUF_F_RX_QINQ_STRIPPED : 0);
	else
		m->ol_flags |= outer ? RTE_MBUF_F_TX_QINQ : RTE_MBUF_F_TX_VLAN;
	return m;
}

static void compare(const struct rt_filter *f, const char *text, enum rt_direction dir,
	struct rte_mbuf *m, bool expected, uint32_t frame, const char *what)
{
	if (!m)
		return;
	if (passes(f, dir, m) != expected)
		fail_msg("'%s' on frame %u, %s: libpcap says %d", text, frame, what, expected);
	test_drop(m);
}

/* Every frame, truncated to varying lengths, in several shapes. */
static void compare_with_libpcap(const char *text, bool cut_at_random)
{
	static const uint16_t three[] = {13, 10}, tiny[] = {3, 0, 20, 1};
	struct bpf_program prog;
	struct rt_filter *f = compile(text, &prog);

	for (uint32_t i = 0; i < frame_count; i++) {
		const struct frame *frame = &frames[i];
		uint32_t len = cut_at_random ? 1 + test_random() % frame->len : frame->len;
		bool expected = bpf_filter(prog.bf_insns, frame->bytes, len, len) != 0;

		compare(f, text, 0, shape(frame->bytes, len, NULL, 0), expected, i, "whole");
		if (i % 4 == 0)
			compare(f, text, 0, shape(frame->bytes, len, three, 2), expected, i,
				"three segments");
		if (i % 4 == 1)
			compare(f, text, 0, shape(frame->bytes, len, tiny, 4), expected, i,
				"tiny segments");
		compare(f, text, i % 2, strip(frame, len, i % 2, NULL, 0), expected, i,
			"tag stripped");
		compare(f, text, i % 2, strip(frame, len, i % 2, tiny, 4), expected, i,
			"tag stripped, tiny segments");
	}
	rt_filter_free(f);
	pcap_freecode(&prog);
}

static void compare_all(bool cut_at_random)
{
	for (unsigned e = 0; e < EXPRESSIONS; e++)
		compare_with_libpcap(expressions[e], cut_at_random);
}

static void test_whole_frames_as_with_libpcap(void **state)
{
	compare_all(false);
}

static void test_truncated_frames_as_with_libpcap(void **state)
{
	compare_all(true);
}

/* As where SELinux refuses execmem: filters are interpreted. */
static void test_filters_where_nothing_becomes_executable(void **state)
{
	int status = 1;
	pid_t child = fork();

	if (!child) {
		/* PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN of Linux 6.3 */
		if (prctl(65, 1, 0, 0, 0))
			_exit(77);
		compare_with_libpcap("tcp port 80 or udp port 53", false);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

static int interpret(void **state)
{
	rt_probe_limits.filter_steps = 0;
	return 0;
}

static int compile_again(void **state)
{
	rt_probe_limits.filter_steps = 400000;
	return 0;
}

/* The expressions test nothing if each gives one result for all frames. */
static void test_expressions_distinguish_frames(void **state)
{
	unsigned dull = 0;

	for (unsigned e = 0; e < EXPRESSIONS; e++) {
		struct bpf_program prog;
		uint32_t n = 0;

		rt_filter_free(compile(expressions[e], &prog));
		for (uint32_t i = 0; i < frame_count; i++)
			n += bpf_filter(prog.bf_insns, frames[i].bytes, frames[i].len,
				     frames[i].len) != 0;
		dull += n == 0 || n == frame_count;
		pcap_freecode(&prog);
	}
	assert_true(EXPRESSIONS >= 60);
	/* A checkout by itself has the generated frames only. */
	assert_in_range(dull, 0, from_corpus ? 12 : 20);
}

/* ---- programs that libpcap's compiler rarely or never makes ---- */

#define FRAME_LEN 60u

static bool selects(const struct rt_insn *insns, uint32_t count, enum rt_direction dir,
	const uint8_t *bytes, bool tiny)
{
	static const uint16_t cuts[] = {3, 0, 20, 1};
	struct rt_filter *f = NULL;
	struct rte_mbuf *m;
	bool verdict;

	assert_int_equal(rt_filter_create(&f, insns, count), 0);
	m = shape(bytes, FRAME_LEN, cuts, tiny ? 4 : 0);
	verdict = passes(f, dir, m);
	test_drop(m);
	rt_filter_free(f);
	return verdict;
}

/* A is 0x80000001, or 1, or 3; X comes out of the packet. */
static void test_shifts_by_x_as_with_libpcap(void **state)
{
	static const uint16_t shifts[] = {BPF_LSH, BPF_RSH};
	static const uint8_t by[] = {0, 1, 7, 30, 31, 32, 33, 63, 64, 100, 255};
	static const uint32_t values[] = {1, 3, 0x80000001u, 0xffffffffu};
	uint8_t bytes[FRAME_LEN] = "";
	unsigned passed = 0;

	for (unsigned i = 0; i < 2 * 4 * sizeof(by); i++) {
		uint32_t value = values[i / 2 % 4];
		struct rt_insn prog[] = {{.code = BPF_LD | BPF_B | BPF_ABS, .k = 20},
			{.code = BPF_MISC | BPF_TAX}, {.code = BPF_LD | BPF_IMM, .k = value},
			{.code = (uint16_t)(BPF_ALU | shifts[i % 2] | BPF_X)},
			{.code = BPF_RET | BPF_A}};
		uint32_t expected;

		bytes[20] = by[i / 8];
		expected = bpf_filter((struct bpf_insn *)prog, bytes, FRAME_LEN, FRAME_LEN);
		passed += expected != 0;
		for (int tiny = 0; tiny < 2; tiny++) {
			if (selects(prog, 5, RT_DIR_RX, bytes, tiny) != (expected != 0))
				fail_msg("%#x %s %u: libpcap has %#x", value, i % 2 ? ">>" : "<<",
					bytes[20], expected);
		}
	}
	assert_in_range(passed, 20, 60);
}

/* Independent of what is on the stack: bpf_filter() leaves it undefined, the probe reads 0. */
static void test_scratch_memory_is_zero_at_first(void **state)
{
	uint8_t bytes[FRAME_LEN] = "";

	for (uint32_t k = 0; k < 16; k++) {
		const struct rt_insn a[] = {
			{.code = BPF_LD | BPF_MEM, .k = k}, {.code = BPF_RET | BPF_A}};
		const struct rt_insn x[] = {{.code = BPF_LD | BPF_IMM, .k = 7},
			{.code = BPF_ST, .k = (k + 1) % 16}, {.code = BPF_LDX | BPF_MEM, .k = k},
			{.code = BPF_MISC | BPF_TXA}, {.code = BPF_RET | BPF_A}};
		const struct rt_insn stored[] = {{.code = BPF_LD | BPF_IMM, .k = 7},
			{.code = BPF_ST, .k = k}, {.code = BPF_LD | BPF_MEM, .k = k},
			{.code = BPF_RET | BPF_A}};

		for (int tiny = 0; tiny < 2; tiny++) {
			assert_false(selects(a, 2, RT_DIR_RX, bytes, tiny));
			assert_false(selects(x, 5, RT_DIR_RX, bytes, tiny));
			assert_true(selects(stored, 4, RT_DIR_RX, bytes, tiny));
		}
	}
}

static void test_inbound_and_outbound(void **state)
{
	static const struct {
		const char *text;
		bool rx, tx;
	} cases[] = {{"inbound", true, false}, {"outbound", false, true},
		{"not inbound", false, true}, {"inbound and ip", true, false},
		{"outbound and arp", false, false}, {"outbound or len = 60", true, true},
		{"inbound and not outbound and ether[20] = 0", true, false}};
	uint8_t bytes[FRAME_LEN] = {[12] = 8};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bpf_program prog;

		rt_filter_free(compile(cases[i].text, &prog));
		for (int tiny = 0; tiny < 2; tiny++) {
			const struct rt_insn *insns = (const struct rt_insn *)prog.bf_insns;

			if (selects(insns, prog.bf_len, RT_DIR_RX, bytes, tiny) != cases[i].rx ||
				selects(insns, prog.bf_len, RT_DIR_TX, bytes, tiny) != cases[i].tx)
				fail_msg("'%s' is wrong", cases[i].text);
		}
		pcap_freecode(&prog);
	}
}

static void test_selected_packets_keep_their_order(void **state)
{
	struct rte_mbuf *m[100], *pass[100];
	struct bpf_program prog;
	struct rt_filter *f = compile("ether[0] & 1 = 0", &prog);
	unsigned n, k = 0;

	for (uint32_t i = 0; i < 100; i++)
		m[i] = test_frame(i, 60);
	n = rt_filter_burst(f, RT_DIR_RX, m, 100, pass, &(unsigned){0});
	assert_in_range(n, 1, 99);
	for (uint32_t i = 0; i < 100; i++) {
		if (test_byte(i, 0) & 1)
			continue;
		assert_ptr_equal(pass[k++], m[i]);
	}
	assert_int_equal(k, n);
	rte_pktmbuf_free_bulk(m, 100);
	rt_filter_free(f);
	pcap_freecode(&prog);
}

/* It passes, so that the copy finds it broken and counts it. */
/* Each part of a chain stores a word of the verifier's state, or not, and both ways continue at the
 * same place: each part doubles the number of paths. The program counts in A how many of the first
 * bytes of the packet are the expected ones. */
static void test_compile_time_is_bounded(void **state)
{
	enum { PARTS = 40, EACH = 6 };
	struct rt_insn prog[PARTS * EACH + 3], *p = prog;
	uint8_t bytes[FRAME_LEN];

	for (uint32_t i = 0; i < PARTS; i++) {
		*p++ = (struct rt_insn){.code = BPF_LD | BPF_B | BPF_ABS, .k = i};
		*p++ = (struct rt_insn){
			.code = BPF_JMP | BPF_JEQ | BPF_K, .jf = EACH - 2, .k = i + 100};
		*p++ = (struct rt_insn){.code = BPF_LD | BPF_MEM, .k = 0};
		*p++ = (struct rt_insn){.code = BPF_ALU | BPF_ADD | BPF_K, .k = 1};
		*p++ = (struct rt_insn){.code = BPF_ST, .k = 0};
		*p++ = (struct rt_insn){.code = BPF_ST, .k = 1 + i % 15};
	}
	*p++ = (struct rt_insn){.code = BPF_LD | BPF_MEM, .k = 0};
	*p++ = (struct rt_insn){.code = BPF_ALU | BPF_SUB | BPF_K, .k = PARTS - 1};
	*p = (struct rt_insn){.code = BPF_RET | BPF_A};
	for (uint32_t i = 0; i < FRAME_LEN; i++)
		bytes[i] = (uint8_t)(i + 100);
	assert_true(selects(prog, sizeof(prog) / sizeof(*prog), RT_DIR_RX, bytes, false));
	bytes[7] = 0; /* one match fewer */
	assert_false(selects(prog, sizeof(prog) / sizeof(*prog), RT_DIR_RX, bytes, false));
	assert_false(selects(prog, sizeof(prog) / sizeof(*prog), RT_DIR_TX, bytes, true));
}

/* DPDK's verifier does not finish lists of this length in reasonable time. */
static void test_lists_of_hosts_and_ports(void **state)
{
	char text[4096] = "";
	size_t n = 0;

	for (unsigned i = 1; i <= 30; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
			"%s(host 10.0.%u.1 and port %u) or host fe80::%x", i > 1 ? " or " : "", i,
			i == 3 ? 53 : 1000 + i, i == 7 ? 1 : i + 100);
	compare_with_libpcap(text, false);
}

static void test_broken_chain(void **state)
{
	static const uint16_t cuts[] = {30};
	struct bpf_program prog;
	struct rt_filter *f = compile("ether[100] = 1 or ether[70:4] = 3", &prog);
	struct rte_mbuf *m = test_chain(1, 60, cuts, 1);

	m->pkt_len = 1000;
	assert_true(passes(f, RT_DIR_RX, m));
	m->ol_flags |= RTE_MBUF_F_RX_VLAN_STRIPPED;
	assert_true(passes(f, RT_DIR_RX, m));
	m->pkt_len = 60;
	test_drop(m);
	m = test_frame(1, 60);
	m->pkt_len = UINT32_MAX;
	assert_true(passes(f, RT_DIR_RX, m));
	m->pkt_len = 60;
	test_drop(m);
	rt_filter_free(f);
	pcap_freecode(&prog);
}

static void test_invalid_programs_are_refused(void **state)
{
	static const struct rt_insn bad[] = {
		{.code = 0xffff},          /* no such instruction */
		{.code = 0x05, .k = 100},  /* jumps out */
		{.code = 0x05, .k = ~0u},  /* jumps back */
		{.code = 0x15, .jt = 200}, /* so does this, conditionally */
		{.code = 0x60, .k = 16},   /* scratch memory has 16 words */
		{.code = 0x02, .k = 16}, {.code = 0x02, .k = 1 << 30},
		{.code = 0x20, .k = 0xfffff008}, /* kernel extension: interface index */
		{.code = 0x34},                  /* divides by zero */
		{.code = 0x64, .k = 32},         /* shifts by the width */
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct rt_insn prog[2] = {bad[i], {.code = 0x06, .k = 1}};
		struct rt_filter *f = NULL;

		if (rt_filter_create(&f, prog, 2) != -EINVAL)
			fail_msg("program %zu is taken", i);
		assert_null(f);
	}
}

/* rte_bpf_load() of DPDK 22.11 writes beyond its memory for the first of them. */
static void test_programs_without_return_are_refused(void **state)
{
	struct rt_insn insn = {.code = 0x30};
	struct rt_filter *f = NULL;

	assert_int_equal(rt_filter_create(&f, &insn, 1), -EINVAL);
	assert_int_equal(rt_filter_create(&f, &insn, 0), -EINVAL);
	assert_null(f);
}

#define interpreted(f) cmocka_unit_test_setup_teardown(f, interpret, compile_again)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_frames_as_with_libpcap),
		cmocka_unit_test(test_truncated_frames_as_with_libpcap),
		cmocka_unit_test(test_filters_where_nothing_becomes_executable),
		cmocka_unit_test(test_expressions_distinguish_frames),
		cmocka_unit_test(test_shifts_by_x_as_with_libpcap),
		cmocka_unit_test(test_scratch_memory_is_zero_at_first),
		cmocka_unit_test(test_inbound_and_outbound),
		cmocka_unit_test(test_selected_packets_keep_their_order),
		cmocka_unit_test(test_broken_chain),
		cmocka_unit_test(test_invalid_programs_are_refused),
		cmocka_unit_test(test_programs_without_return_are_refused),
		cmocka_unit_test(test_compile_time_is_bounded),
		cmocka_unit_test(test_lists_of_hosts_and_ports),
		interpreted(test_whole_frames_as_with_libpcap),
		interpreted(test_truncated_frames_as_with_libpcap),
		interpreted(test_shifts_by_x_as_with_libpcap),
		interpreted(test_scratch_memory_is_zero_at_first),
		interpreted(test_inbound_and_outbound),
		interpreted(test_selected_packets_keep_their_order),
		interpreted(test_broken_chain),
	};

	test_eal_start();
	return cmocka_run_group_tests(tests, make_frames, drop_frames);
}
