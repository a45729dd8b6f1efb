/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plug-ins of libpcap, as its pull request 1659 has them: its ABI version 1.
 * It is open, so no released libpcap has them. libpcap loads pcap-*.so of its folder and calls
 * pcap_plugin_entry.
 */
#ifndef RINGTAP_PCAP_PLUGIN_HOST_H
#define RINGTAP_PCAP_PLUGIN_HOST_H

#include <pcap/pcap.h>
#include <stdbool.h>
#include <stddef.h>

#define PLUGIN_ABI 1

struct device_list; /* libpcap's own */

struct plugin_entry {
	int abi_version;
	const char *name;
	int (*findalldevs)(struct device_list *, char *err);
	pcap_t *(*create)(const char *device, char *err, int *is_ours);
};

struct plugin_ops {
	int (*read)(pcap_t *, int, pcap_handler, u_char *);
	int (*inject)(pcap_t *, const void *, int);
	int (*setfilter)(pcap_t *, struct bpf_program *);
	int (*setdirection)(pcap_t *, pcap_direction_t);
	int (*set_datalink)(pcap_t *, int);
	int (*getnonblock)(pcap_t *);
	int (*setnonblock)(pcap_t *, int);
	int (*stats)(pcap_t *, struct pcap_stat *);
	void (*cleanup)(pcap_t *);
	void (*breakloop)(pcap_t *);
};

/* Functions of the libpcap that has loaded the plug-in, pcap_plugin_NAME. */
#define HOST_FUNCTIONS(X)                                                                  \
	X(pcap_t *, create_handle, (char *err, size_t size))                               \
	X(void *, priv, (pcap_t *))                                                        \
	X(void, set_activate, (pcap_t *, int (*activate)(pcap_t *)))                       \
	X(void, set_ops, (pcap_t *, const struct plugin_ops *))                            \
	X(void, set_linktype, (pcap_t *, int))                                             \
	X(void, set_snapshot, (pcap_t *, int))                                             \
	X(const char *, get_device, (pcap_t *))                                            \
	X(int, get_snapshot, (pcap_t *))                                                   \
	X(int, get_timeout, (pcap_t *))                                                    \
	X(void, set_errbuf, (pcap_t *, const char *format, ...))                           \
	X(int, get_tstamp_type, (pcap_t *))                                                \
	X(int, get_tstamp_precision, (pcap_t *))                                           \
	X(int, get_buffer_size, (pcap_t *))                                                \
	X(int, set_tstamp_type_list, (pcap_t *, const int *, int count))                   \
	X(int, set_tstamp_precision_list, (pcap_t *, const int *, int count))              \
	X(void, set_selectable_fd, (pcap_t *, int))                                        \
	X(void, cleanup_live, (pcap_t *))                                                  \
	X(pcap_if_t *, add_dev,                                                            \
		(struct device_list *, const char *name, unsigned flags, const char *text, \
			char *err))

struct host {
#define FIELD(type, name, args) type(*name) args;
	HOST_FUNCTIONS(FIELD)
#undef FIELD
};

/* Finds the functions of the object that has the address; the first call counts. False: it lacks
 * some. */
bool host_find(const void *address);
extern struct host host;

#endif
