/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Uses libpcap handles as programs do: interrupts loops, forks, opens many, closes in callbacks and
 * in children, outlives the interface. pcap_life WHAT INTERFACE [COUNT] prints "good" at the end,
 * or the failed check. It requests frames by a line "send COUNT LENGTH", and other actions by a
 * line "WORD"; it continues when it reads a line.
 */
#include <dirent.h>
#include <pcap/pcap.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(x)                            \
	do {                                \
		if (!(x))                   \
			fail(__LINE__, #x); \
	} while (0)
#define SMALL_BUFFER (256 << 10)

static pcap_t *handle;
static const char *device;
static int count;

static void fail(int line, const char *what)
{
	printf("line %d: %s (%s)\n", line, what, handle ? pcap_geterr(handle) : "");
	fflush(stdout);
	_exit(1);
}

static void request(const char *what)
{
	char line[16];

	printf("%s\n", what);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		_exit(2);
}

static void send_frames(int n, int length)
{
	char line[64];

	snprintf(line, sizeof(line), "send %d %d", n, length);
	request(line);
}

static pcap_t *open_it(int buffer)
{
	char err[PCAP_ERRBUF_SIZE] = "";
	pcap_t *p = pcap_create(device, err);

	CHECK(p);
	handle = p;
	CHECK(!pcap_set_timeout(p, 50) && !pcap_set_promisc(p, 1));
	CHECK(!pcap_set_buffer_size(p, buffer));
	CHECK(!pcap_activate(p));
	return p;
}

static void on_packet(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	if (user)
		++*(int *)user;
}

static void filter(pcap_t *p, const char *expression)
{
	struct bpf_program prog;

	CHECK(!pcap_compile(p, &prog, expression, 1, PCAP_NETMASK_UNKNOWN));
	CHECK(!pcap_setfilter(p, &prog));
	pcap_freecode(&prog);
}

/* ---- breaking loops ---- */

static void *break_it(void *arg)
{
	pcap_breakloop(handle);
	return NULL;
}

static void breaks_from_a_thread(void)
{
	open_it(SMALL_BUFFER);
	for (int i = 0; i < count; i++) {
		pthread_t thread;

		CHECK(!pthread_create(&thread, NULL, break_it, NULL));
		CHECK(pcap_loop(handle, -1, on_packet, NULL) == PCAP_ERROR_BREAK);
		pthread_join(thread, NULL);
	}
}

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
	if (++signals % 3 == 0) /* a signal without pcap_breakloop() must not end */
		pcap_breakloop(handle);
}

static void breaks_from_a_signal(void)
{
	struct sigaction sa = {.sa_handler = on_signal};
	struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};

	open_it(SMALL_BUFFER);
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < count; i++) {
		int before = signals;

		CHECK(pcap_loop(handle, -1, on_packet, NULL) == PCAP_ERROR_BREAK);
		CHECK(signals > before);
	}
	setitimer(ITIMER_REAL, &never, NULL);
}

static void break_in_callback(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	++*(int *)user;
	pcap_breakloop(handle);
}

static void breaks_from_the_callback(void)
{
	int seen = 0;

	open_it(SMALL_BUFFER);
	send_frames(count, 100);
	for (int i = 1; i <= count; i++) {
		CHECK(pcap_loop(handle, -1, break_in_callback, (u_char *)&seen) ==
			PCAP_ERROR_BREAK);
		CHECK(seen == i);
	}
}

/* ---- opening and closing ---- */

static int entries(const char *folder)
{
	DIR *d = opendir(folder);
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static int lines_of(const char *file)
{
	FILE *f = fopen(file, "r");
	int c, n = 0;

	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static void opens_and_closes(void)
{
	int fds = 0, threads = 0, maps = 0;

	for (int i = 0; i < count; i++) {
		open_it(SMALL_BUFFER);
		if (i % 2)
			CHECK(pcap_get_selectable_fd(handle) >= 0);
		if (i % 3)
			CHECK(pcap_dispatch(handle, 1, on_packet, NULL) >= 0);
		if (i % 5 == 0)
			filter(handle, "tcp port 80");
		pcap_close(handle);
		handle = NULL;
		if (i == 20) {
			fds = entries("/proc/self/fd");
			threads = entries("/proc/self/task");
			maps = lines_of("/proc/self/maps");
		}
	}
	CHECK(entries("/proc/self/fd") == fds);
	CHECK(entries("/proc/self/task") == threads);
	CHECK(lines_of("/proc/self/maps") <= maps + count / 10); /* mappings of the heap */
}

static void close_in_callback(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	++*(int *)user;
	pcap_close(handle);
}

static void closes_in_the_callback(void)
{
	int seen = 0;

	open_it(SMALL_BUFFER);
	send_frames(5, 100);
	CHECK(pcap_loop(handle, -1, close_in_callback, (u_char *)&seen) == PCAP_ERROR_BREAK);
	CHECK(seen == 1);
	handle = NULL;
}

static void two_handles(void)
{
	pcap_t *a = open_it(SMALL_BUFFER), *b = open_it(SMALL_BUFFER);
	struct pcap_stat st;
	int of_a = 0, of_b = 0;

	filter(a, "len = 100");
	filter(b, "len = 200");
	send_frames(3, 100);
	send_frames(4, 200);
	CHECK(!pcap_loop(b, 4, on_packet, (u_char *)&of_b) && of_b == 4);
	CHECK(!pcap_loop(a, 3, on_packet, (u_char *)&of_a) && of_a == 3);
	CHECK(!pcap_stats(b, &st) && st.ps_recv == 4 && !st.ps_drop);
	pcap_close(b);
	handle = a;
	send_frames(3, 100);
	CHECK(!pcap_loop(a, 3, on_packet, (u_char *)&of_a) && of_a == 6);
	CHECK(!pcap_stats(a, &st) && st.ps_recv == 6 && !st.ps_drop);
	pcap_close(a);
}

/* As many captures as a queue supports; one more fails, and succeeds after another has ended. */
static void opens_too_many(void)
{
	pcap_t *many[64], *p;
	char err[PCAP_ERRBUF_SIZE] = "";
	int n = 0, ret;

	for (; n < 64; n++) {
		p = pcap_create(device, err);
		CHECK(p && !pcap_set_buffer_size(p, SMALL_BUFFER));
		ret = pcap_activate(p);
		if (ret)
			break;
		many[n] = p;
	}
	handle = p;
	CHECK(n == 16 && ret == PCAP_ERROR);
	CHECK(strstr(pcap_geterr(p), "too many captures"));
	CHECK(pcap_dispatch(p, 1, on_packet, NULL) == PCAP_ERROR_NOT_ACTIVATED);
	pcap_close(many[--n]);
	handle = p;
	while (pcap_activate(p)) /* the application ends captures asynchronously */
		CHECK(strstr(pcap_geterr(p), "too many captures"));
	pcap_close(p);
	while (n)
		pcap_close(many[--n]);
	handle = NULL;
}

/* Reads as dumpcap does: waits for the descriptor, reads one packet, waits again. No packet may be
 * missed, and no wake-up may be spurious. */
static void waits_for_each_packet(void)
{
	struct pollfd p = {.events = POLLIN};
	int seen = 0, sent = 0;

	open_it(SMALL_BUFFER);
	p.fd = pcap_get_selectable_fd(handle);
	for (int i = 0; i < count; i++) {
		int before = seen;

		send_frames(i % 5 + 1, 100);
		sent += i % 5 + 1;
		while (seen < sent) {
			CHECK(poll(&p, 1, 10000) == 1);
			CHECK(pcap_dispatch(handle, 1, on_packet, (u_char *)&seen) == 1);
		}
		CHECK(seen == sent && before < seen);
		CHECK(poll(&p, 1, 0) == 0);
	}
}

/* ---- fork ---- */

static int wait_for(pid_t child)
{
	int status;

	CHECK(waitpid(child, &status, 0) == child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void child_closes(void)
{
	int seen = 0;
	pid_t child;

	open_it(SMALL_BUFFER);
	CHECK(pcap_get_selectable_fd(handle) >= 0);
	child = fork();
	if (!child) {
		pcap_close(handle);
		_exit(0);
	}
	CHECK(wait_for(child) == 0);
	send_frames(10, 100);
	CHECK(!pcap_loop(handle, 10, on_packet, (u_char *)&seen) && seen == 10);
}

static void child_cannot_read(void)
{
	int seen = 0;
	pid_t child;

	open_it(SMALL_BUFFER);
	send_frames(20, 100);
	CHECK(!pcap_loop(handle, 10, on_packet, (u_char *)&seen) && seen == 10);
	child = fork();
	if (!child)
		_exit(pcap_dispatch(handle, 1, on_packet, NULL) == PCAP_ERROR &&
					strstr(pcap_geterr(handle), "reads from this handle")
				? 0
				: 1);
	CHECK(wait_for(child) == 0);
	CHECK(!pcap_loop(handle, 10, on_packet, (u_char *)&seen) && seen == 20);
}

/* The capture ends with the process that reads, although a child has the descriptors. */
static void child_keeps_descriptors(void)
{
	int fds[2], seen = 0;
	pid_t child;

	open_it(SMALL_BUFFER);
	send_frames(1, 100);
	CHECK(!pcap_loop(handle, 1, on_packet, (u_char *)&seen) && seen == 1);
	CHECK(!pipe(fds));
	child = fork();
	if (!child) {
		close(fds[1]);
		_exit((int)read(fds[0], &seen, 1)); /* until the parent continues */
	}
	pcap_close(handle);
	handle = NULL;
	request("callbacks");
	close(fds[1]);
	CHECK(wait_for(child) == 0);
}

/* daemon(): the parent ends, and the child waits on the descriptor and reads. */
static void child_reads_as_daemon(void)
{
	struct pollfd p = {.events = POLLIN};
	int seen = 0;

	open_it(SMALL_BUFFER);
	p.fd = pcap_get_selectable_fd(handle);
	if (fork()) {
		_exit(0);
	}
	CHECK(!pcap_setnonblock(handle, 1, (char[PCAP_ERRBUF_SIZE]){0}));
	CHECK(poll(&p, 1, 20) == 0);
	for (int i = 1; i <= 20; i++) {
		send_frames(1, 100);
		CHECK(poll(&p, 1, 10000) == 1);
		while (seen < i)
			CHECK(pcap_dispatch(handle, -1, on_packet, (u_char *)&seen) >= 0);
		CHECK(poll(&p, 1, 5) == 0);
	}
}

/* ---- the end of an application ---- */

static void outlives_the_application(void)
{
	struct pollfd p = {.events = POLLIN};
	struct pcap_stat st;
	int seen = 0;

	open_it(SMALL_BUFFER);
	p.fd = pcap_get_selectable_fd(handle);
	send_frames(7, 100);
	request("kill");
	CHECK(poll(&p, 1, 10000) == 1);
	CHECK(pcap_loop(handle, -1, on_packet, (u_char *)&seen) == PCAP_ERROR);
	CHECK(seen == 7);
	CHECK(!strcmp(pcap_geterr(handle), "The interface disappeared"));
	CHECK(poll(&p, 1, 10000) == 1);
	CHECK(pcap_dispatch(handle, -1, on_packet, NULL) == PCAP_ERROR);
	CHECK(pcap_next(handle, &(struct pcap_pkthdr){0}) == NULL);
	CHECK(!pcap_stats(handle, &st) && st.ps_recv == 7);
	filter(handle, "ip");
	pcap_breakloop(handle);
	CHECK(pcap_dispatch(handle, -1, on_packet, NULL) == PCAP_ERROR_BREAK);
	pcap_close(handle);
	handle = NULL;
}

/* Corrupt records must not crash the program. */
static void reads_corrupt_records(void)
{
	int ret;

	open_it(SMALL_BUFFER);
	do {
		ret = pcap_dispatch(handle, -1, on_packet, NULL);
	} while (ret >= 0);
	CHECK(ret == PCAP_ERROR);
	request(pcap_geterr(handle));
}

/* A flood that a filter in the library rejects completely: timeouts must be kept. */
static void filters_a_flood(void)
{
	struct pcap_stat st;

	open_it(SMALL_BUFFER);
	filter(handle, "ip6 protochain 58 and len = 7");
	for (int i = 0; i < 10; i++)
		CHECK(pcap_dispatch(handle, -1, on_packet, NULL) == 0);
	CHECK(!pcap_setnonblock(handle, 1, (char[PCAP_ERRBUF_SIZE]){0}));
	for (int i = 0; i < 100; i++)
		CHECK(pcap_dispatch(handle, -1, on_packet, NULL) == 0);
	CHECK(!pcap_stats(handle, &st) && st.ps_recv > 0);
}

/* ---- filters in flight ---- */

static struct {
	bool odd;
	struct timeval from; /* when the filter was certainly set */
	unsigned long long packets, last;
	unsigned long long wrong, gaps;
} stream;

static void on_stream(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	unsigned long long seq =
		(unsigned)data[14] << 24 | data[15] << 16 | data[16] << 8 | data[17];

	stream.wrong += (seq & 1) != stream.odd;
	if (timercmp(&h->ts, &stream.from, <))
		return; /* captured under earlier filters, which may have rejected its neighbours */
	stream.gaps += stream.packets && seq != stream.last + 2;
	stream.last = seq;
	stream.packets++;
}

static unsigned dropped(void)
{
	struct pcap_stat st;

	CHECK(!pcap_stats(handle, &st));
	return st.ps_drop;
}

/* After pcap_setfilter() returns, no packet that the new filter rejects is returned, and every
 * later packet that it accepts. Except when this process had no CPU for so long that the ring was
 * full, which is counted. */
static void replaces_filters(void)
{
	const struct timeval doubt = {.tv_usec = 1000}; /* between the two clocks */
	int complete = 0;

	open_it(32 << 20);
	request("go");
	for (int i = 0; i < count; i++) {
		struct timeval now;
		unsigned before;

		stream.odd = i % 2;
		filter(handle, stream.odd ? "ether[17] & 1 = 1" : "ether[17] & 1 = 0");
		gettimeofday(&now, NULL);
		timeradd(&now, &doubt, &stream.from);
		stream.packets = stream.gaps = 0;
		before = dropped();
		while (stream.packets < 1000)
			CHECK(pcap_dispatch(handle, 500, on_stream, NULL) >= 0);
		CHECK(!stream.wrong);
		if (dropped() == before) {
			CHECK(!stream.gaps);
			complete++;
		}
	}
	CHECK(complete > count / 2);
	request("stop");
}

static struct {
	bpf_u_int32 length; /* the only length that the filter accepts */
	int packets;
} taken;

static void on_length(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	CHECK(h->len == taken.length);
	taken.packets++;
}

/* The old filter stays if the application does not answer in time, and the application restores it
 * when it continues. It may have set the new one before that, and have rejected packets that the
 * old one accepts. */
static void filters_a_stopped_application(void)
{
	struct bpf_program prog;

	taken.length = 100;
	open_it(SMALL_BUFFER);
	filter(handle, "len = 100");
	CHECK(!pcap_compile(handle, &prog, "len = 101", 1, PCAP_NETMASK_UNKNOWN));
	request("pause");
	CHECK(pcap_setfilter(handle, &prog) == PCAP_ERROR);
	CHECK(strstr(pcap_geterr(handle), "it is stopped"));
	CHECK(!pcap_setnonblock(handle, 1, (char[PCAP_ERRBUF_SIZE]){0}));
	CHECK(pcap_dispatch(handle, -1, on_length, NULL) == 0);
	request("resume");
	for (int i = 0; i < 1000 && taken.packets < 100; i++) {
		send_frames(1, 101);
		send_frames(1, 100);
		CHECK(pcap_dispatch(handle, -1, on_length, NULL) >= 0);
	}
	CHECK(taken.packets >= 100);
	CHECK(!pcap_setnonblock(handle, 0, (char[PCAP_ERRBUF_SIZE]){0}));
	CHECK(!pcap_setfilter(handle, &prog));
	taken.length = 101;
	taken.packets = 0;
	send_frames(5, 101);
	while (taken.packets < 5)
		CHECK(pcap_dispatch(handle, -1, on_length, NULL) >= 0);
	pcap_freecode(&prog);
}

static const struct {
	const char *name;
	void (*run)(void);
} table[] = {
	{"breaks_from_a_thread", breaks_from_a_thread},
	{"breaks_from_a_signal", breaks_from_a_signal},
	{"breaks_from_the_callback", breaks_from_the_callback},
	{"opens_and_closes", opens_and_closes},
	{"closes_in_the_callback", closes_in_the_callback},
	{"opens_too_many", opens_too_many},
	{"waits_for_each_packet", waits_for_each_packet},
	{"two_handles", two_handles},
	{"child_closes", child_closes},
	{"child_cannot_read", child_cannot_read},
	{"child_keeps_descriptors", child_keeps_descriptors},
	{"child_reads_as_daemon", child_reads_as_daemon},
	{"filters_a_flood", filters_a_flood},
	{"outlives_the_application", outlives_the_application},
	{"reads_corrupt_records", reads_corrupt_records},
	{"replaces_filters", replaces_filters},
	{"filters_a_stopped_application", filters_a_stopped_application},
};

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	device = argv[2];
	count = argc > 3 ? atoi(argv[3]) : 10;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strcmp(table[i].name, argv[1]))
			continue;
		table[i].run();
		printf("good\n");
		return 0;
	}
	return 2;
}
