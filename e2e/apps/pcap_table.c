/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes the same libpcap calls on any interface: results and error texts on a kernel interface are
 * the reference for the replacement library.
 *
 *    pcap_table INTERFACE [refusals]
 *
 * Prints one line for each call: a name, ": ", the result. It requests frames by a line "send rx|tx
 * COUNT LENGTH", and continues when it reads a line, after they were sent. Frames are those of
 * e2e/harness/pcap.py: their number is in bytes 14 to 17.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include <pcap/pcap.h>

#define PATIENCE_MS 10000
#define TIMEOUT_MS  50
#define BREAK_MS    400

__attribute__((format(printf, 2, 3))) static void result(const char *name, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	printf("%s: ", name);
	vprintf(format, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

/* Prints the return value of a call, and the text of pcap_geterr() after an error. */
static void report_call(const char *name, pcap_t *p, int ret)
{
	if (ret < 0)
		result(name, "%d %s | %s", ret, pcap_statustostr(ret), pcap_geterr(p));
	else
		result(name, "%d", ret);
}

#define REPORT(p, call) (errno = 0, report_call(#call, p, call))
#define SHOW(call)      result(#call, "%d", call)

static void request_frames(const char *direction, int count, int length)
{
	char line[16];

	printf("send %s %d %d\n", direction, count, length);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(2);
}

/* ---- callbacks ---- */

struct seen {
	pcap_t *p;
	int packets, stop_at;
	unsigned long long bytes, captured, numbers;
	bool times;
};

static void on_packet(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	struct seen *s = (struct seen *)user;

	s->packets++;
	s->bytes += h->len;
	s->captured += h->caplen;
	if (h->caplen >= 18)
		s->numbers = s->numbers * 31 + data[17];
	s->times &= h->ts.tv_sec > 1600000000 && h->ts.tv_usec >= 0 &&
		    h->ts.tv_usec < (pcap_get_tstamp_precision(s->p) ? 1000000000 : 1000000);
	if (s->packets == s->stop_at)
		pcap_breakloop(s->p);
}

static void seen_result(const char *name, int ret, const struct seen *s)
{
	result(name, "%d: %d packets, %llu of %llu bytes, numbers %llu, times %s", ret, s->packets,
		s->captured, s->bytes, s->numbers, s->times ? "good" : "bad");
}

static void loop(const char *name, pcap_t *p, int count, int stop_at)
{
	struct seen s = {.p = p, .stop_at = stop_at, .times = true};
	int ret = pcap_loop(p, count, on_packet, (u_char *)&s);

	seen_result(name, ret, &s);
}

/* Until this number of packets: pcap_dispatch() may return fewer, or none. */
static void dispatch(const char *name, pcap_t *p, int each, int total)
{
	struct seen s = {.p = p, .times = true};
	int ret = 0, most = 0;

	while (s.packets < total && ret >= 0) {
		ret = pcap_dispatch(p, each, on_packet, (u_char *)&s);
		if (ret > most)
			most = ret;
	}
	seen_result(name, most > each && each > 0, &s);
}

static void filter(pcap_t *p, const char *expression)
{
	struct bpf_program prog = {0};

	if (pcap_compile(p, &prog, expression, 1, PCAP_NETMASK_UNKNOWN) == 0)
		report_call("pcap_setfilter", p, pcap_setfilter(p, &prog));
	else
		report_call("pcap_compile", p, -1);
	pcap_freecode(&prog);
}

static void stats(pcap_t *p)
{
	struct pcap_stat st = {0};
	int ret = pcap_stats(p, &st);

	result("pcap_stats", "%d: received %u, dropped %u, by the interface %u", ret, st.ps_recv,
		st.ps_drop, st.ps_ifdrop);
}

/* ---- the groups ---- */

static void before_activation(const char *device)
{
	char err[PCAP_ERRBUF_SIZE] = "";
	pcap_t *p = pcap_create(device, err);
	struct pcap_stat st;
	struct bpf_program prog = {0};
	struct pcap_pkthdr header, *h;
	const u_char *data;
	int *list = NULL;

	result("pcap_create", "%s %s", p ? "yes" : "no", err);
	REPORT(p, pcap_datalink(p));
	REPORT(p, pcap_datalink_ext(p));
	REPORT(p, pcap_snapshot(p));
	REPORT(p, pcap_is_swapped(p));
	REPORT(p, pcap_major_version(p));
	REPORT(p, pcap_minor_version(p));
	REPORT(p, pcap_bufsize(p));
	REPORT(p, pcap_fileno(p));
	REPORT(p, pcap_get_selectable_fd(p));
	SHOW(pcap_get_required_select_timeout(p) != NULL);
	SHOW(pcap_file(p) != NULL);
	REPORT(p, pcap_getnonblock(p, err));
	REPORT(p, pcap_list_datalinks(p, &list));
	REPORT(p, pcap_set_datalink(p, DLT_EN10MB));
	REPORT(p, pcap_setdirection(p, PCAP_D_IN));
	REPORT(p, pcap_setfilter(p, &prog));
	REPORT(p, pcap_compile(p, &prog, "ip", 1, 0));
	REPORT(p, pcap_stats(p, &st));
	REPORT(p, pcap_dispatch(p, 1, on_packet, NULL));
	REPORT(p, pcap_loop(p, 1, on_packet, NULL));
	SHOW(pcap_next(p, &header) != NULL);
	REPORT(p, pcap_next_ex(p, &h, &data));
	REPORT(p, pcap_inject(p, "abc", 3));
	REPORT(p, pcap_sendpacket(p, (const u_char *)"abc", 3));
	SHOW(pcap_dump_open(p, "/dev/null") != NULL);
	result("pcap_geterr", "%s", pcap_geterr(p));
	REPORT(p, pcap_can_set_rfmon(p));
	SHOW(pcap_get_tstamp_precision(p));
	pcap_close(p);
}

static void settings(const char *device)
{
	char err[PCAP_ERRBUF_SIZE] = "";
	pcap_t *p = pcap_create(device, err);

	REPORT(p, pcap_setnonblock(p, 1, err));
	REPORT(p, pcap_getnonblock(p, err));
	REPORT(p, pcap_set_snaplen(p, 96));
	REPORT(p, pcap_set_promisc(p, 1));
	REPORT(p, pcap_set_timeout(p, 10));
	REPORT(p, pcap_set_immediate_mode(p, 1));
	REPORT(p, pcap_set_buffer_size(p, 4 << 20));
	REPORT(p, pcap_set_buffer_size(p, 0));
	REPORT(p, pcap_set_tstamp_type(p, PCAP_TSTAMP_HOST));
	REPORT(p, pcap_set_tstamp_type(p, -1));
	REPORT(p, pcap_set_tstamp_type(p, 99));
	REPORT(p, pcap_set_tstamp_precision(p, 7));
	REPORT(p, pcap_set_tstamp_precision(p, -1));
	REPORT(p, pcap_set_tstamp_precision(p, PCAP_TSTAMP_PRECISION_NANO));
	SHOW(pcap_get_tstamp_precision(p));
	REPORT(p, pcap_activate(p));
	REPORT(p, pcap_getnonblock(p, err));
	REPORT(p, pcap_activate(p));
	REPORT(p, pcap_set_snaplen(p, 96));
	REPORT(p, pcap_set_promisc(p, 1));
	REPORT(p, pcap_set_timeout(p, 10));
	REPORT(p, pcap_set_immediate_mode(p, 1));
	REPORT(p, pcap_set_buffer_size(p, 4 << 20));
	REPORT(p, pcap_set_rfmon(p, 1));
	REPORT(p, pcap_set_tstamp_type(p, PCAP_TSTAMP_HOST));
	REPORT(p, pcap_set_tstamp_precision(p, PCAP_TSTAMP_PRECISION_NANO));
	SHOW(pcap_get_tstamp_precision(p));
	SHOW(pcap_snapshot(p));
	pcap_close(p);
	p = pcap_create(device, err);
	REPORT(p, pcap_set_rfmon(p, 1));
	result("pcap_activate with rfmon", "%d", pcap_activate(p));
	pcap_close(p);
}

static void questions(pcap_t *p)
{
	int *list = NULL, n = pcap_list_datalinks(p, &list);

	result("pcap_list_datalinks", "%d, first %d", n, n > 0 ? list[0] : -1);
	pcap_free_datalinks(list);
	n = pcap_list_tstamp_types(p, &list);
	result("pcap_list_tstamp_types", "first %d", n > 0 ? list[0] : -1);
	pcap_free_tstamp_types(list);
	SHOW(pcap_datalink(p));
	SHOW(pcap_datalink_ext(p));
	SHOW(pcap_snapshot(p));
	SHOW(pcap_is_swapped(p));
	SHOW(pcap_major_version(p));
	SHOW(pcap_minor_version(p));
	SHOW(pcap_bufsize(p) > 0);
	SHOW(pcap_fileno(p) >= 0);
	SHOW(pcap_fileno(p) == pcap_get_selectable_fd(p));
	SHOW(pcap_get_required_select_timeout(p) != NULL);
	SHOW(pcap_file(p) != NULL);
	SHOW(pcap_get_tstamp_precision(p));
	REPORT(p, pcap_can_set_rfmon(p));
}

static void mistakes(pcap_t *p)
{
	static struct bpf_insn endless = {.code = 0x30};
	struct bpf_program prog = {.bf_len = 1, .bf_insns = &endless}, good = {0};
	u_char frame[60] = "";

	REPORT(p, pcap_set_datalink(p, DLT_EN10MB));
	REPORT(p, pcap_set_datalink(p, DLT_RAW));
	REPORT(p, pcap_set_datalink(p, 9999));
	REPORT(p, pcap_set_datalink(p, -1));
	REPORT(p, pcap_setdirection(p, (pcap_direction_t)7));
	REPORT(p, pcap_setfilter(p, NULL));
	REPORT(p, pcap_setfilter(p, &prog));
	REPORT(p, pcap_compile(p, &good, "ip and and", 1, 0));
	REPORT(p, pcap_compile(p, &good, "host 300.1.1.1", 1, 0));
	REPORT(p, pcap_compile(p, &good, "frobnicate", 1, 0));
	REPORT(p, pcap_compile(p, &good, "vlan and tcp port 80", 1, 0));
	pcap_freecode(&good);
	SHOW(pcap_dump_open(p, "/nonexistent/file") != NULL);
	result("pcap_geterr", "%s", pcap_geterr(p));
	REPORT(p, pcap_sendpacket(p, frame, 0));
	REPORT(p, pcap_sendpacket(p, frame, -1));
	REPORT(p, pcap_inject(p, frame, 0));
	REPORT(p, pcap_inject(p, frame, (size_t)1 << 31));
}

static void nonblocking(pcap_t *p)
{
	char err[PCAP_ERRBUF_SIZE] = "";
	struct pcap_pkthdr header, *h = NULL;
	const u_char *data = NULL;

	REPORT(p, pcap_getnonblock(p, err));
	REPORT(p, pcap_setnonblock(p, 1, err));
	REPORT(p, pcap_getnonblock(p, err));
	REPORT(p, pcap_dispatch(p, -1, on_packet, NULL));
	REPORT(p, pcap_dispatch(p, 1, on_packet, NULL));
	SHOW(pcap_next(p, &header) != NULL);
	REPORT(p, pcap_next_ex(p, &h, &data));
	filter(p, "len = 101");
	request_frames("rx", 2, 100);
	request_frames("rx", 3, 101);
	dispatch("pcap_dispatch of a filter set without blocking", p, -1, 3);
	filter(p, "");
	request_frames("rx", 5, 100);
	dispatch("pcap_dispatch without blocking", p, -1, 5);
	REPORT(p, pcap_dispatch(p, -1, on_packet, NULL));
	REPORT(p, pcap_setnonblock(p, 0, err));
	REPORT(p, pcap_getnonblock(p, err));
}

static void reading(pcap_t *p)
{
	struct pcap_pkthdr *h = NULL, header = {0};
	const u_char *data = NULL;
	int ret;

	request_frames("rx", 20, 200);
	loop("pcap_loop of 5", p, 5, 0);
	loop("pcap_loop of 1", p, 1, 0);
	dispatch("pcap_dispatch of 3", p, 3, 4);
	ret = pcap_next_ex(p, &h, &data);
	result("pcap_next_ex", "%d: %u of %u, number %d", ret, h->caplen, h->len, data[17]);
	data = pcap_next(p, &header);
	result("pcap_next", "%u of %u, number %d", header.caplen, header.len, data ? data[17] : -1);
	loop("pcap_loop that breaks", p, -1, 3);
	pcap_breakloop(p);
	loop("pcap_loop after a break", p, -1, 0);
	pcap_breakloop(p);
	ret = pcap_next_ex(p, &h, &data);
	result("pcap_next_ex after a break", "%d", ret);
	loop("pcap_loop of the rest", p, 2, 0);
}

static void filtering(pcap_t *p)
{
	static struct bpf_insn endless = {.code = 0x30};
	struct bpf_program wrong = {.bf_len = 1, .bf_insns = &endless};

	filter(p, "len = 112");
	REPORT(p, pcap_setfilter(p, &wrong));
	request_frames("rx", 2, 110);
	request_frames("rx", 2, 112);
	loop("pcap_loop after a filter that failed", p, 2, 0);
	filter(p, "len = 111");
	request_frames("rx", 4, 110);
	request_frames("rx", 3, 111);
	loop("pcap_loop with a filter", p, 3, 0);
	/* Waiting packets have passed the old filter; the new one applies to them, too. */
	request_frames("rx", 2, 111);
	filter(p, "len = 112");
	request_frames("rx", 2, 112);
	loop("pcap_loop with another filter", p, 2, 0);
	filter(p, "");
	request_frames("rx", 3, 113);
	loop("pcap_loop without a filter", p, 3, 0);
	filter(p, "ip6 protochain 58 or len = 114");
	request_frames("rx", 3, 113);
	request_frames("rx", 2, 114);
	loop("pcap_loop with a filter that loops", p, 2, 0);
	filter(p, "");
}

static void directions(pcap_t *p)
{
	REPORT(p, pcap_setdirection(p, PCAP_D_OUT));
	request_frames("rx", 3, 120);
	request_frames("tx", 2, 121);
	loop("pcap_loop of what goes out", p, 2, 0);
	REPORT(p, pcap_setdirection(p, PCAP_D_IN));
	request_frames("tx", 3, 122);
	request_frames("rx", 2, 123);
	loop("pcap_loop of what comes in", p, 2, 0);
	REPORT(p, pcap_setdirection(p, PCAP_D_INOUT));
	request_frames("tx", 1, 124);
	request_frames("rx", 1, 125);
	loop("pcap_loop of both", p, 2, 0);
}

static int wait_by_poll(int fd, int timeout_ms)
{
	struct pollfd f = {.fd = fd, .events = POLLIN};

	return poll(&f, 1, timeout_ms) == 1 && f.revents == POLLIN;
}

static int wait_by_select(int fd, int timeout_ms)
{
	struct timeval tv = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	return select(fd + 1, &set, NULL, NULL, &tv);
}

static int wait_by_epoll(int fd, int timeout_ms)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int ep = epoll_create1(0), ret;

	epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
	ret = epoll_wait(ep, &ev, 1, timeout_ms);
	close(ep);
	return ret;
}

static void waiting(pcap_t *p)
{
	static int (*const how[])(int, int) = {wait_by_poll, wait_by_select, wait_by_epoll};
	int fd = pcap_get_selectable_fd(p);

	for (int i = 0; i < 3; i++) {
		result("readable at first", "%d", how[i](fd, 30));
		request_frames("rx", 3, 130);
		result("readable", "%d", how[i](fd, PATIENCE_MS));
		loop("pcap_loop when readable", p, 3, 0);
		result("readable afterwards", "%d", how[i](fd, 30));
	}
}

static void *break_later(void *p)
{
	poll(NULL, 0, BREAK_MS);
	pcap_breakloop(p);
	return NULL;
}

/* PCAP_ERROR_BREAK: it waited for a packet; 0: the timeout expired first. */
static void wait_for_packet(const char *name, pcap_t *p, int immediate)
{
	struct pcap_pkthdr *h = NULL;
	const u_char *data = NULL;
	pthread_t thread;
	int ret;

	if (pthread_create(&thread, NULL, break_later, p))
		exit(2);
	ret = pcap_next_ex(p, &h, &data);
	result(name, "%d with immediate mode %d", ret, immediate);
	pthread_join(thread, NULL);
}

static void timeout(const char *device, int immediate)
{
	char err[PCAP_ERRBUF_SIZE] = "";
	pcap_t *p = pcap_create(device, err);

	pcap_set_immediate_mode(p, immediate);
	pcap_set_timeout(p, TIMEOUT_MS);
	result("pcap_activate", "%d", pcap_activate(p));
	wait_for_packet("pcap_next_ex without packets", p, immediate);
	pcap_close(p);
	p = pcap_create(device, err);
	pcap_set_immediate_mode(p, immediate);
	pcap_set_timeout(p, TIMEOUT_MS);
	result("pcap_activate", "%d", pcap_activate(p));
	filter(p, "len = 131");
	request_frames("rx", 2, 130);
	wait_for_packet("pcap_next_ex of packets that do not pass", p, immediate);
	pcap_close(p);
}

static void snapped(const char *device)
{
	char err[PCAP_ERRBUF_SIZE] = "";
	pcap_t *p = pcap_open_live(device, 60, 1, 10, err);

	result("pcap_open_live with a snapshot length", "%s %s", p ? "yes" : "no", err);
	SHOW(pcap_snapshot(p));
	request_frames("rx", 3, 300);
	loop("pcap_loop of cut packets", p, 3, 0);
	stats(p);
	pcap_close(p);
}

/* Interfaces that do not exist, or without permission. */
static void refusals(const char *device)
{
	char err[PCAP_ERRBUF_SIZE] = "";
	pcap_t *p = pcap_create(device, err);
	struct pcap_stat st;

	result("pcap_create", "%s %s", p ? "yes" : "no", err);
	result("pcap_activate", "%d", pcap_activate(p));
	result("why", "%d", pcap_geterr(p)[0] != 0);
	REPORT(p, pcap_stats(p, &st));
	REPORT(p, pcap_dispatch(p, 1, on_packet, NULL));
	REPORT(p, pcap_set_snaplen(p, 100));
	pcap_close(p);
	p = pcap_open_live(device, 100, 1, 10, err);
	result("pcap_open_live", "%s %s", p ? "yes" : "no", err);
	result("end", "good");
}

int main(int argc, char **argv)
{
	char err[PCAP_ERRBUF_SIZE] = "";
	pcap_t *p;

	if (argc == 3 && !strcmp(argv[2], "refusals")) {
		refusals(argv[1]);
		return 0;
	}
	if (argc != 2)
		return 2;
	before_activation(argv[1]);
	settings(argv[1]);
	snapped(argv[1]);
	timeout(argv[1], 0);
	timeout(argv[1], 1);
	p = pcap_open_live(argv[1], 0, 1, 10, err);
	result("pcap_open_live", "%s %s", p ? "yes" : "no", err);
	questions(p);
	mistakes(p);
	nonblocking(p);
	reading(p);
	filtering(p);
	directions(p);
	waiting(p);
	stats(p);
	pcap_close(p);
	result("end", "good");
	return 0;
}
