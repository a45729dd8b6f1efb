/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "base/util.h"

static struct link *new_link(struct app *a, const char *name, bool rx, bool tx)
{
	struct link *l = calloc(1, sizeof(*l));
	int ret = 0;

	if (!l)
		return NULL;
	l->rx = rx;
	l->tx = tx;
	snprintf(l->name, sizeof(l->name), "%s", name);
	if (a->config->plane == PLANE_DPDK)
		ret = ports_find(&a->ports, l, name);
	else
		l->port = (uint16_t)if_nametoindex(name); /* 0 if missing: opening it fails */
	if (ret) {
		free(l);
		return NULL;
	}
	return l;
}

/* from, to: NULL or port names. Equal pointers stand for the same port. */
static int add_instance(struct app *a, const struct role_spec *s, enum role_kind kind,
	const char *from, const char *to)
{
	struct role *r;

	if (posix_memalign((void **)&r, RT_CACHE_LINE, sizeof(*r)))
		return -ENOMEM;
	memset(r, 0, sizeof(*r));
	r->kind = kind;
	r->config = a->config;
	r->plane = a->config->plane;
	r->burst = a->config->burst;
	r->cpu = s->cpu;
	a->roles[a->role_count++] = r;
	if (from)
		r->from = new_link(a, from, true, from == to);
	if (to)
		r->to = from == to ? r->from : new_link(a, to, false, true);
	return (from && !r->from) || (to && !r->to) ? -ENODEV : 0;
}

static int add_role(struct app *a, const struct role_spec *s)
{
	const char *p = s->ports[0], *q = s->ports[1];
	int ret;

	switch (s->kind) {
	case ROLE_FORWARD:
		ret = add_instance(a, s, ROLE_ONEWAY, p, q);
		return ret ? ret : add_instance(a, s, ROLE_ONEWAY, q, p);
	case ROLE_ONEWAY: return add_instance(a, s, ROLE_ONEWAY, p, q);
	case ROLE_ECHO: return add_instance(a, s, ROLE_ECHO, p, p);
	case ROLE_GENERATE: return add_instance(a, s, ROLE_GENERATE, a->config->rtt ? p : NULL, p);
	default: return add_instance(a, s, ROLE_SINK, p, NULL);
	}
}

/* Assigns the allowed CPUs in turn to roles without one. Both ways of a pair share a CPU. */
static int choose_cpus(struct fwd_config *c)
{
	cpu_set_t set;
	int next = -1;

	if (sched_getaffinity(0, sizeof(set), &set))
		return -errno;
	for (unsigned i = 0; i < c->role_count; i++) {
		int cpu = c->roles[i].cpu;

		if (cpu != ANY_CPU && (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &set)))
			return message_fail(-EINVAL,
				"CPU %d: it does not exist, or the process may not run on it; see "
				"'taskset -p $$'",
				cpu);
		while (cpu == ANY_CPU) {
			next = (next + 1) % CPU_SETSIZE;
			if (CPU_ISSET(next, &set))
				cpu = next;
		}
		c->roles[i].cpu = cpu;
	}
	return 0;
}

/* A queue may be used by one thread only, and a port may have one receiving role: a second one
 * would take packets from the first. */
static int check_sharing(const struct app *a)
{
	for (unsigned i = 0; i < a->role_count; i++) {
		for (unsigned j = 0; j < i; j++) {
			const struct role *r = a->roles[i], *q = a->roles[j];

			if (r->from && q->from && !strcmp(r->from->name, q->from->name))
				return message_fail(-EINVAL,
					"port %s: two roles receive from it; remove one",
					r->from->name);
			if (r->to && q->to && r->cpu != q->cpu && !strcmp(r->to->name, q->to->name))
				return message_fail(-EINVAL,
					"port %s: two threads would send to it; give both roles the "
					"same @CPU",
					r->to->name);
		}
	}
	return 0;
}

/* A sleeping role would delay the other roles of its thread. */
static int check_sleepers(const struct app *a)
{
	for (unsigned i = 0; i < a->worker_count; i++)
		if (a->config->sleep && a->workers[i].count > 1)
			return message_fail(-EINVAL,
				"--sleep: CPU %d has several roles; assign each role its own CPU",
				a->workers[i].cpu);
	return 0;
}

static struct worker *worker_of(struct app *a, int cpu)
{
	struct worker *w;

	for (unsigned i = 0; i < a->worker_count; i++)
		if (a->workers[i].cpu == cpu)
			return &a->workers[i];
	w = &a->workers[a->worker_count++];
	w->cpu = cpu;
	w->plane = a->config->plane;
	return w;
}

int app_make(struct app *a, struct fwd_config *c)
{
	int ret = choose_cpus(c);

	for (unsigned i = 0; i < c->role_count && !ret; i++)
		ret = add_role(a, &c->roles[i]);
	if (ret == -ENOMEM)
		message_print("not enough memory");
	if (!ret)
		ret = check_sharing(a);
	for (unsigned i = 0; i < a->role_count && !ret; i++) {
		struct worker *w = worker_of(a, a->roles[i]->cpu);

		w->roles[w->count++] = a->roles[i];
	}
	return ret ? ret : check_sleepers(a);
}

static int open_link(struct app *a, struct link *l)
{
	if (a->config->plane != PLANE_DPDK)
		return plane_ops(a->config->plane)->open(l, a->config);
	l->pool = a->ports.memory.pool;
	return 0;
}

static int init_role(struct app *a, struct role *r, unsigned *generators)
{
	const struct fwd_config *c = a->config;
	int ret = 0;

	if (r->from)
		ret = open_link(a, r->from);
	if (!ret && r->to && r->to != r->from)
		ret = open_link(a, r->to);
	if (ret)
		return ret;
	if (c->samples && r->kind != ROLE_GENERATE) {
		r->samples = samples_new(c->sample_every, c->sample_run, c->samples_max);
		if (!r->samples)
			return message_fail(-ENOMEM,
				"--samples: not enough memory; give a smaller --samples-max");
	}
	if (r->kind == ROLE_GENERATE)
		return generate_init(r, (*generators)++);
	return r->kind == ROLE_SINK ? sink_init(r) : forward_init(r);
}

int app_init_roles(struct app *a)
{
	unsigned generators = 0;
	int ret = 0;

	for (unsigned i = 0; i < a->role_count && !ret; i++)
		ret = init_role(a, a->roles[i], &generators);
	return ret;
}

static void close_link(struct app *a, struct link *l)
{
	if (l && a->config->plane != PLANE_DPDK)
		plane_ops(a->config->plane)->close(l);
}

void app_free(struct app *a)
{
	for (unsigned i = 0; i < a->role_count; i++) {
		struct role *r = a->roles[i];

		close_link(a, r->from);
		if (r->to != r->from)
			close_link(a, r->to);
		role_free(r);
		free(r);
	}
	free(a->seconds);
	a->role_count = 0;
	a->seconds = NULL;
}

void role_read(const struct role *r, unsigned stage, struct counters *out)
{
	for (unsigned i = 0; i < COUNTERS; i++)
		((uint64_t *)out)[i] = rt_load(&((const uint64_t *)&r->counters[stage])[i]);
	if (r->from && r->to && !r->generator)
		out->tx_packets += out->rx_packets;
}

void role_total(const struct role *r, struct counters *sum)
{
	struct counters c;

	memset(sum, 0, sizeof(*sum));
	for (unsigned s = 0; s < r->config->stage_count; s++) {
		role_read(r, s, &c);
		for (unsigned i = 0; i < COUNTERS; i++)
			((uint64_t *)sum)[i] += ((uint64_t *)&c)[i];
	}
}

const char *role_text(const struct role *r, char buf[ROLE_TEXT])
{
	if (r->kind == ROLE_ONEWAY)
		snprintf(buf, ROLE_TEXT, "oneway %s to %s", r->from->name, r->to->name);
	else
		snprintf(buf, ROLE_TEXT, "%s %s", role_names[r->kind],
			r->to ? r->to->name : r->from->name);
	return buf;
}
