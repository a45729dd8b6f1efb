/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handle.h"

#define HANDLES_MAX 1024

struct slot {
	pcap_t *user; /* NULL: free */
	struct handle *h;
};

/* Slots from `used` on are free. Every call of the program searches the table, also in signal
 * handlers and in several threads at once: entries are written under the lock only. Another thread
 * may free a handle meanwhile: h is used only after user has been found, since the caller keeps
 * this one open. Programs have few handles, so the first slots hold them. */
static struct slot slots[HANDLES_MAX];
static uint32_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct handle *handle_of(const pcap_t *p)
{
	uint32_t n = rt_load_acquire(&used);

	for (uint32_t i = 0; p && i < n; i++) {
		/* Pairs with the release in enter(): h belongs to user and is initialized. */
		if (rt_load_acquire(&slots[i].user) == p)
			return rt_load(&slots[i].h);
	}
	return NULL;
}

static bool enter(struct handle *h)
{
	uint32_t i = 0;

	pthread_mutex_lock(&lock);
	while (i < HANDLES_MAX && slots[i].user)
		i++;
	if (i < HANDLES_MAX) {
		rt_store(&slots[i].h, h);
		rt_store_release(&slots[i].user, h->user);
		if (i == used)
			rt_store_release(&used, i + 1);
	}
	pthread_mutex_unlock(&lock);
	return i < HANDLES_MAX;
}

static void leave(const struct handle *h)
{
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < used; i++) {
		if (slots[i].user == h->user)
			rt_store_release(&slots[i].user, NULL);
	}
	while (used && !slots[used - 1].user)
		rt_store_release(&used, used - 1);
	pthread_mutex_unlock(&lock);
}

static void lock_table(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_table(void)
{
	pthread_mutex_unlock(&lock);
}

/* A child can close the handles that it has inherited. */
__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(lock_table, unlock_table, unlock_table);
}

struct handle *handle_new(const char *device, char *err)
{
	struct handle *h = calloc(1, sizeof(*h));

	if (!h || !(h->device = strdup(device)) ||
		!(h->user = real()->pcap_open_dead_with_tstamp_precision(
			  DLT_EN10MB, SNAPLEN_MAX, PCAP_TSTAMP_PRECISION_MICRO))) {
		snprintf(err, PCAP_ERRBUF_SIZE, "malloc: Cannot allocate memory");
	} else if (enter(h)) {
		h->tstamp_type = -1;
		return h;
	} else {
		snprintf(err, PCAP_ERRBUF_SIZE, "%s: %d captures are open already", device,
			HANDLES_MAX);
	}
	if (h && h->user)
		real()->pcap_close(h->user);
	if (h)
		free(h->device);
	free(h);
	return NULL;
}

void handle_free(struct handle *h)
{
	leave(h);
	/* A forked process may keep the connection open: closing does not end the session. */
	if (h->cap && fork_owns(h))
		ringtap_capture_stop(h->cap);
	ringtap_capture_close(h->cap);
	if (h->inner)
		real()->pcap_close(h->inner);
	real()->pcap_close(h->user);
	fork_release(h);
	free(h->filter.bf_insns);
	free(h->checks[RT_DIR_RX]);
	free(h->checks[RT_DIR_TX]);
	free(h->copy);
	free(h->device);
	free(h);
}

int handle_fail(struct handle *h, int code, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(real()->pcap_geterr(h->user), PCAP_ERRBUF_SIZE, format, ap);
	va_end(ap);
	return code;
}

int handle_not_activated(struct handle *h)
{
	return handle_fail(h, PCAP_ERROR_NOT_ACTIVATED, "This handle hasn't been activated yet");
}

void handle_take_error(struct handle *h)
{
	handle_fail(h, 0, "%s", real()->pcap_geterr(h->inner));
}
