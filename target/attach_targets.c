/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "targets.h"
#include "which_app.h"

/* Ports of all targets, by whether they have the queue of --queue. */
struct queue_check {
	bool any;       /* a port is captured */
	char none[512]; /* those without the queue, and what they have */
};

static const char *queue_range(char buf[24], uint32_t count)
{
	snprintf(buf, 24, count > 1 ? "0-%u" : count ? "0" : "none", count - 1);
	return buf;
}

static bool has_queue(const struct ringtap_target *want, const struct ringtap_port_info *p)
{
	uint32_t queue = (uint32_t)want->queue;

	return want->queue < 0 || (want->directions & RINGTAP_RX && queue < p->rx_queues) ||
	       (want->directions & RINGTAP_TX && queue < p->tx_queues);
}

static void check_port(
	struct queue_check *c, const struct target *t, const struct ringtap_port_info *p)
{
	static const char *const kinds[] = {
		[RINGTAP_RX] = "RX ", [RINGTAP_TX] = "TX ", [RINGTAP_RX | RINGTAP_TX] = ""};
	const struct ringtap_target *want = t->ports, *end = t->ports + t->port_count;
	char text[RINGTAP_NAME_LEN + 96], rx[24], tx[24];

	while (want < end && want->port &&
		!target_port_matches(p->name, p->device, p->port_id, want->port))
		want++;
	if (want == end)
		return;
	if (has_queue(want, p)) {
		c->any = true;
		return;
	}
	snprintf(text, sizeof(text), "port %s has no %squeue %d (it has RX %s, TX %s)", p->name,
		kinds[want->directions & 3], want->queue, queue_range(rx, p->rx_queues),
		queue_range(tx, p->tx_queues));
	text_list_add(c->none, sizeof(c->none), text);
}

/* An application that does not answer now is reported by attaching to it. */
static void check_target(struct queue_check *c, const struct target *t)
{
	struct ringtap_list *list;
	bool named = false;

	for (unsigned i = 0; i < t->port_count; i++)
		named |= t->ports[i].queue >= 0;
	c->any |= !named;
	list = named ? target_ports(t->dir) : NULL;
	for (size_t i = 0; list && i < list->port_count; i++)
		check_port(c, t, ringtap_list_port(list, i));
	ringtap_list_free(list);
}

static int check_queues(const struct targets *t, const struct capture_config *cfg)
{
	struct queue_check c = {0};

	for (unsigned i = 0; i < t->count; i++)
		check_target(&c, &t->list[i]);
	if (!*c.none)
		return 0;
	message_print("%s: --queue: %s; %s: give a queue that it has, or leave out --queue for all",
		cfg->command, c.none,
		c.any ? "nothing of it is captured" : "there is nothing to capture");
	return c.any ? 0 : -ENODEV;
}

static void print_error(const struct capture_config *cfg, uint32_t pid, const struct target *t,
	struct ringtap_capture *cap, int error)
{
	struct ringtap_list *list = error == -ENODEV ? target_ports(t->dir) : NULL;
	const char *missing = NULL;

	/* The probe's own sentence names the port as ethdev does. */
	for (unsigned i = 0; list && i < t->port_count && !missing; i++)
		if (t->ports[i].port && !target_has_port(list, t->ports[i].port))
			missing = t->ports[i].port;
	if (missing)
		print_no_port(cfg->command, t->name, pid, missing, list);
	else
		print_not_attached(cfg->command, t->name, error, ringtap_capture_error(cap));
	ringtap_list_free(list);
}

static void leave_out(struct targets *t, unsigned i)
{
	target_free_filters(&t->list[i]);
	t->count--;
	memmove(&t->list[i], &t->list[i + 1], (t->count - i) * sizeof(*t->list));
}

int targets_attach(struct targets *t, const struct capture_config *cfg, struct ringtap_capture *cap)
{
	int ret = check_queues(t, cfg);

	for (unsigned i = 0; i < t->count && !ret; i++) {
		const struct target *one = &t->list[i];

		ret = ringtap_capture_attach(
			cap, one->dir, one->ports, one->port_count, &cfg->options);
		if (ret)
			print_error(cfg, target_pid(t->apps, one->dir), one, cap, ret);
		/* It may have ended by now. */
		if (ret && one->implied) {
			leave_out(t, i--);
			ret = 0;
		}
	}
	return ret;
}

const struct iface_config *targets_iface(const struct targets *t, const struct capture_config *cfg,
	const struct ringtap_interface *i)
{
	/* The library checks the probe's numbers; the bounds of this array are checked here. */
	if (i->app < t->count && i->target < t->list[i->app].port_count)
		return t->list[i->app].ifaces[i->target];
	return &cfg->defaults;
}
