/* SPDX-License-Identifier: BSD-3-Clause */
/* The smallest reader: prints the packets of an application that match a filter.
 *   cc hello.c $(pkg-config --cflags --libs libringtap libpcap) -o hello && ./hello my-app:0 'udp'
 * 10
 */
#include <inttypes.h>

#include <ringtap/open.h>

static void print(const struct ringtap_packet *p)
{
	printf("%" PRIu64 ".%09" PRIu64 " %s queue %u, %u bytes\n", p->ns / 1000000000,
		p->ns % 1000000000, p->direction == RINGTAP_RX ? "received," : "sent,", p->queue,
		p->length);
}

int main(int argc, char **argv)
{
	unsigned long left = argc > 3 ? strtoul(argv[3], NULL, 10) : 10;
	struct ringtap_open_options opts = {0};
	const struct ringtap_packet *p;
	struct ringtap_capture *cap;
	struct ringtap_packets *it;
	struct ringtap_run run;
	int n;

	if (argc < 2)
		return fprintf(stderr, "usage: hello APP[:PORT] [FILTER [PACKETS]]\n"), 2;
	if (ringtap_capture_open(&cap, argv[1], argc > 2 ? argv[2] : NULL, &opts))
		return fprintf(stderr, "hello: %s\n", opts.error), 1;
	if (ringtap_packets_create(&it))
		return 1;
	ringtap_packets_fields(it, RINGTAP_FIELDS_ALL);
	while (left && (n = ringtap_capture_next(cap, &run, 1, 1000)) >= 0) {
		if (n)
			ringtap_packets_start(it, &run);
		for (; n && left && (p = ringtap_packet_next(it)); left--)
			print(p);
		ringtap_capture_release(cap);
	}
	ringtap_packets_free(it);
	ringtap_capture_close(cap);
	return 0;
}
