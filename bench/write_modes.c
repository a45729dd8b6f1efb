/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records what the ports of an application receive, as `ringtap record` does, but hands the packets
 * on in ways that are known to be slower, or not at all. It shows what writing costs.
 *
 *   write_modes packet|buffer|touch APP FILE
 *
 * packet  a write() for each packet
 * buffer  packets are copied into a buffer of 1 MiB, which is written when it is full
 * touch   the first bytes of each packet are read; FILE is not used
 *
 * Prints "ready" to standard error when it captures. Ends on SIGINT or SIGTERM, or when the
 * application ends, and prints one line of JSON: what the probe counted (seen = captured + filtered
 * + lost), packets and bytes that were handed on, calls of write(), seconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/segment.h"
#include "ringtap/reader.h"

#define RUNS_MAX 256
#define BUFFER   (1u << 20)
#define TOUCHED  16 /* bytes of a packet: both addresses and the type of Ethernet */

struct writer {
	int fd;
	uint8_t *buffer;
	size_t filled; /* bytes of buffer */
	uint64_t packets, bytes, writes;
	uint64_t touched; /* a sum, so that reading is not left out */
};

/* Writes the n bytes of a record; all modes get the same bytes, in order. */
typedef void (*record_fn)(struct writer *w, const uint8_t *record, size_t n);

static struct ringtap_capture *capture;
static volatile sig_atomic_t stop_requested;

static void on_signal(int number)
{
	stop_requested = 1;
	ringtap_capture_break(capture);
}

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("write_modes: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

static void put(struct writer *w, const uint8_t *data, size_t n)
{
	while (n > 0) {
		ssize_t done = write(w->fd, data, n);

		if (done < 0 && errno != EINTR)
			fail("writing: %s", strerror(errno));
		w->writes++;
		data += done < 0 ? 0 : done;
		n -= done < 0 ? 0 : (size_t)done;
	}
}

static void flush(struct writer *w)
{
	put(w, w->buffer, w->filled);
	w->filled = 0;
}

static void write_packet(struct writer *w, const uint8_t *record, size_t n)
{
	put(w, record, n);
}

static void copy_packet(struct writer *w, const uint8_t *record, size_t n)
{
	if (n > BUFFER - w->filled)
		flush(w);
	memcpy(w->buffer + w->filled, record, n);
	w->filled += n;
}

static void touch_packet(struct writer *w, const uint8_t *record, size_t n)
{
	uint64_t part;

	for (size_t i = RT_EPB_HEADER; i < RT_EPB_HEADER + TOUCHED && i + sizeof(part) <= n;
		i += sizeof(part)) {
		memcpy(&part, record + i, sizeof(part));
		w->touched += part;
	}
}

/* Inlined with each of the functions, so that none pays for being called. */
__attribute__((always_inline)) static inline void each(
	struct writer *w, const struct ringtap_run *run, record_fn handle)
{
	const uint8_t *p = ringtap_run_pcapng(run, NULL, 0);
	uint64_t left = run->bytes;

	if (!p)
		fail("interfaces have other numbers than the application's");
	while (left > 0) {
		uint32_t n; /* the block's length follows its type */

		if (left < RT_EPB_MIN)
			fail("a broken record");
		memcpy(&n, p + sizeof(n), sizeof(n));
		if (n < RT_EPB_MIN || n > BUFFER || n > left)
			fail("a broken record");
		handle(w, p, n);
		p += n;
		left -= n;
	}
	w->packets += run->packets;
	w->bytes += run->bytes;
}

static void each_written(struct writer *w, const struct ringtap_run *run)
{
	each(w, run, write_packet);
}

static void each_copied(struct writer *w, const struct ringtap_run *run)
{
	each(w, run, copy_packet);
}

static void each_touched(struct writer *w, const struct ringtap_run *run)
{
	each(w, run, touch_packet);
}

/* Blocks before the packets: the interfaces as they are when capturing begins. */
static void put_head(struct writer *w)
{
	int n = ringtap_pcapng_section(w->buffer, BUFFER, NULL);

	for (unsigned i = 0; n > 0 && (unsigned)n <= BUFFER; i++) {
		put(w, w->buffer, (size_t)n);
		if (i == ringtap_capture_interface_count(capture))
			return;
		n = ringtap_pcapng_interface(capture, i, w->buffer, BUFFER, NULL);
	}
	fail("the file's head does not fit");
}

static void attach(const char *app)
{
	const struct ringtap_target target = {.queue = -1, .directions = RINGTAP_RX};
	struct ringtap_apps *apps;
	const char *dir = NULL;

	if (ringtap_capture_create(&capture, NULL) || ringtap_apps_find(&apps))
		fail("starting: out of memory");
	for (size_t i = 0; i < ringtap_apps_count(apps); i++) {
		if (!strcmp(ringtap_apps_name(apps, i), app))
			dir = ringtap_apps_dir(apps, i);
	}
	if (!dir)
		fail("no application '%s'", app);
	if (ringtap_capture_attach(capture, dir, &target, 1, NULL) ||
		ringtap_capture_start(capture))
		fail("%s: %s", app, ringtap_capture_error(capture));
	ringtap_apps_free(apps);
}

static void loop(struct writer *w, void (*handle)(struct writer *, const struct ringtap_run *))
{
	struct ringtap_run runs[RUNS_MAX];
	bool stopping = false;
	int n;

	while ((n = ringtap_capture_next(capture, runs, RUNS_MAX, -1)) >= 0) {
		for (int i = 0; i < n; i++)
			handle(w, &runs[i]);
		ringtap_capture_release(capture);
		if (stop_requested && !stopping) {
			stopping = true;
			ringtap_capture_stop(capture);
		}
	}
	flush(w);
	if (n != -EPIPE)
		fail("reading: %s", ringtap_capture_error(capture));
}

static void report(const struct writer *w, double seconds)
{
	struct ringtap_stats s = {.size = sizeof(s)};
	uint64_t lost = 0;

	if (ringtap_capture_stats(capture, &s))
		fail("no counters");
	for (unsigned i = 0; i < RINGTAP_LOST_MAX; i++)
		lost += s.total.lost[i];
	printf("{\"seen\": %llu, \"captured\": %llu, \"filtered\": %llu, \"lost\": %llu, "
	       "\"packets\": %llu, \"bytes\": %llu, \"writes\": %llu, \"touched\": %llu, "
	       "\"seconds\": %.6f}\n",
		(unsigned long long)s.total.seen, (unsigned long long)s.total.captured,
		(unsigned long long)s.total.filtered, (unsigned long long)lost,
		(unsigned long long)w->packets, (unsigned long long)w->bytes,
		(unsigned long long)w->writes, (unsigned long long)w->touched, seconds);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*handle)(struct writer *, const struct ringtap_run *);
	} modes[] = {{"packet", each_written}, {"buffer", each_copied}, {"touch", each_touched}};
	const struct sigaction sa = {.sa_handler = on_signal};
	struct writer w = {.fd = -1, .buffer = malloc(BUFFER)};
	unsigned mode = 0;
	double began;

	while (mode < 3 && (argc != 4 || strcmp(argv[1], modes[mode].name)))
		mode++;
	if (mode == 3)
		fail("usage: write_modes packet|buffer|touch APP FILE");
	if (modes[mode].handle != each_touched)
		w.fd = open(argv[3], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (!w.buffer || (w.fd < 0 && modes[mode].handle != each_touched))
		fail("%s: %s", argv[3], strerror(errno));
	attach(argv[2]);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	if (w.fd >= 0)
		put_head(&w);
	fputs("ready\n", stderr);
	began = now();
	loop(&w, modes[mode].handle);
	report(&w, now() - began);
	ringtap_capture_close(capture);
	free(w.buffer);
	return 0;
}
