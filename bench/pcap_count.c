/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts packets with pcap_loop(), as simply as it can be done. It knows nothing of ringtap: the
 * same binary runs on a kernel interface by the system's libpcap and, under `ringtap run`, on a
 * port.
 *
 *   pcap_count INTERFACE SECONDS [FILTER [SNAPLEN [BUFFER_BYTES]]]
 *
 * Prints "ready" on standard error when it captures, and one line of JSON after that number of
 * seconds, or on SIGINT or SIGTERM: packets and bytes (on the wire) of the callback; received,
 * dropped and ifdropped of pcap_stats() since "ready"; received_before and dropped_before, up to
 * then (the loop gets these packets, too); seconds from "ready" to the end of the loop; user and
 * system, CPU seconds of this process in that time.
 */
#include <pcap/pcap.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static pcap_t *handle;
static uint64_t packets, bytes;

static void on_packet(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	packets++;
	bytes += h->len;
}

static void on_signal(int number)
{
	pcap_breakloop(handle);
}

static double seconds_of(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "pcap_count: %s: %s\n", what, why);
	exit(1);
}

/* As tcpdump does it. */
static void activate(char **argv, int argc)
{
	char err[PCAP_ERRBUF_SIZE] = "";
	int ret;

	handle = pcap_create(argv[1], err);
	if (!handle)
		fail(argv[1], err);
	pcap_set_promisc(handle, 1);
	pcap_set_timeout(handle, 100);
	pcap_set_snaplen(handle, argc > 4 ? atoi(argv[4]) : 262144);
	if (argc > 5)
		pcap_set_buffer_size(handle, atoi(argv[5]));
	ret = pcap_activate(handle);
	if (ret < 0)
		fail(pcap_statustostr(ret), pcap_geterr(handle));
}

static void filter(const char *expression)
{
	struct bpf_program prog;

	if (pcap_compile(handle, &prog, expression, 1, PCAP_NETMASK_UNKNOWN) ||
		pcap_setfilter(handle, &prog))
		fail(expression, pcap_geterr(handle));
	pcap_freecode(&prog);
}

static struct pcap_stat stats(void)
{
	struct pcap_stat st = {0};

	if (pcap_stats(handle, &st))
		fail("pcap_stats", pcap_geterr(handle));
	return st;
}

static void stop_on(int number)
{
	struct sigaction sa = {.sa_handler = on_signal};

	sigaction(number, &sa, NULL);
}

int main(int argc, char **argv)
{
	struct rusage before, after;
	struct pcap_stat first, last;
	double began, took;
	int ret;

	if (argc < 3)
		fail("usage", "pcap_count INTERFACE SECONDS [FILTER [SNAPLEN [BUFFER_BYTES]]]");
	activate(argv, argc);
	if (argc > 3 && argv[3][0])
		filter(argv[3]);
	stop_on(SIGALRM);
	stop_on(SIGINT);
	stop_on(SIGTERM);
	first = stats();
	getrusage(RUSAGE_SELF, &before);
	began = now();
	fprintf(stderr, "ready\n");
	alarm((unsigned)atoi(argv[2]));
	ret = pcap_loop(handle, -1, on_packet, NULL);
	took = now() - began;
	getrusage(RUSAGE_SELF, &after);
	if (ret != PCAP_ERROR_BREAK)
		fail("pcap_loop", pcap_geterr(handle));
	last = stats();
	printf("{\"packets\": %llu, \"bytes\": %llu, \"received\": %u, \"dropped\": %u, "
	       "\"ifdropped\": %u, \"received_before\": %u, \"dropped_before\": %u, \"seconds\": "
	       "%.6f, \"user\": %.6f, \"system\": %.6f}\n",
		(unsigned long long)packets, (unsigned long long)bytes,
		last.ps_recv - first.ps_recv, last.ps_drop - first.ps_drop,
		last.ps_ifdrop - first.ps_ifdrop, first.ps_recv, first.ps_drop, took,
		seconds_of(after.ru_utime) - seconds_of(before.ru_utime),
		seconds_of(after.ru_stime) - seconds_of(before.ru_stime));
	pcap_close(handle);
	return 0;
}
