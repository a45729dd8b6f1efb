/* SPDX-License-Identifier: BSD-3-Clause */
/* Wireshark's request: see the "extcap" chapter of its developer's guide. */
#ifndef RINGTAP_EXTCAP_EXTCAP_H
#define RINGTAP_EXTCAP_EXTCAP_H

#include <stdbool.h>
#include <stdint.h>

#include "ringtap/open.h"
#include "ringtap/reader.h"

#define EXTCAP_SCHEME "ringtap:"
#define EXTCAP_SSH    "ringtap-ssh"

/* Texts are argv's; NULL: not given. */
struct extcap {
	bool interfaces, dlts, config, capture;
	const char *interface; /* ringtap:APP:PORT, ringtap:APP for all its ports, or ringtap-ssh */
	const char *reload;
	const char *filter;
	enum ringtap_tags tags;
	bool inner;
	const char *cut, *first; /* NULL or empty: all bytes, the whole of each flow */
	const char *fifo;
	/* Options of the capture. */
	unsigned directions;  /* RINGTAP_RX | RINGTAP_TX; 0: both */
	int queue;            /* -1: all */
	uint32_t snaplen;     /* bytes; 0: all */
	uint64_t buffer_size; /* bytes; 0: the default */
	enum ringtap_timestamp timestamp;
	enum ringtap_ids ids;
	uint32_t sample; /* one of N packets; 0: all */
	/* The other host of ringtap-ssh. All but its name may be empty. */
	const char *remote_host, *remote_port, *remote_user, *remote_key, *remote_target;
};

/* ---- sentences.c: answers on standard output. Return enum status. */

int print_interfaces(void);
/* An interface of several link types has that of its first port. */
int print_dlts(const char *interface);
uint16_t linktype_of(const char *interface);
/* The options of the interface; with e->reload, only the values of that option. */
int print_config(const struct extcap *e);
bool is_remote(const char *interface);

/* ---- capture.c: until Wireshark closes the pipe, or the application ends. Returns enum status. */
int capture(const struct extcap *e);

/* ---- remote.c: the same on another host. Returns only after a failure. */
int capture_remote(const struct extcap *e);

#endif
