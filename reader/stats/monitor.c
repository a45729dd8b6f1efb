/* SPDX-License-Identifier: BSD-3-Clause */
/* Attaches a monitor, switches collectors, checks whether the application has ended. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fail.h"
#include "common/ipc.h"
#include "ringtap/reader.h"
#include "reader/export.h"
#include "monitor_state.h"

static_assert((int)RINGTAP_POLLS == RT_COLLECT_POLLS && (int)RINGTAP_BYTES == RT_COLLECT_BYTES &&
		      (int)RINGTAP_BUSY == RT_COLLECT_BUSY &&
		      (int)RINGTAP_GAPS == RT_COLLECT_GAPS &&
		      (int)RINGTAP_LATENCY == RT_COLLECT_LATENCY &&
		      (int)RINGTAP_ADDRESSES == RT_COLLECT_ADDRESSES &&
		      (int)RINGTAP_POOLS == RT_COLLECT_POOLS &&
		      (int)RINGTAP_INTERVALS == RT_COLLECT_INTERVALS &&
		      (int)RINGTAP_INTERVAL_GAP == RT_INTERVAL_GAP &&
		      (int)RINGTAP_INTERVAL_BUSY == RT_INTERVAL_BUSY &&
		      (int)RINGTAP_LATENCY_SPLIT == RT_COLLECT_SPLIT &&
		      (int)RINGTAP_XSTATS == RT_COLLECT_XSTATS &&
		      (int)RINGTAP_DEVICES == RT_COLLECT_DEVICES,
	"collectors go over the wire as they are");
static_assert((int)RINGTAP_DMADEV == RT_DEVICE_DMA && (int)RINGTAP_CRYPTODEV == RT_DEVICE_CRYPTO &&
		      (int)RINGTAP_PART_QUEUE == RT_PART_QUEUE &&
		      (int)RINGTAP_PART_CHANNEL == RT_PART_CHANNEL,
	"kinds of devices and parts are shown as they are");

static int too_old(const struct ringtap_monitor *mon, char *err, size_t errlen)
{
	return rt_fail(-EOPNOTSUPP, err, errlen,
		"its probe (version %s) does not know statistics; restart it with that of "
		"ringtap %s",
		mon->conn->app.probe, RINGTAP_VERSION);
}

/* Receives the answer to RT_MSG_MONITOR; the first one has the descriptor of the statistics. */
static int receive(struct ringtap_monitor *mon, char *err, size_t errlen)
{
	bool first = !mon->stats.live;
	unsigned n = 0;
	int fd = -1, ret;

	ret = rt_conn_expect(mon->conn, RT_MSG_MONITORING, &fd, 1, &n,
		rt_conn_timeout_ms(mon->conn), err, errlen);
	if (ret < 0) {
		/* A probe without support for monitors answers that the message is unknown. */
		return ret == -EPROTO && first && mon->conn->msg.h.type == RT_MSG_ERROR
			       ? too_old(mon, err, errlen)
			       : ret;
	}
	ret = 0;
	if (first && n != 1) {
		snprintf(err, errlen, "the probe sent no statistics");
		ret = -EPROTO;
	} else if (first) {
		ret = rt_stats_map(&mon->stats, fd, err, errlen);
	}
	if (n)
		close(fd);
	return ret;
}

/* Collectors that an earlier probe would refuse, with all of the request. */
static unsigned unknown(const struct ringtap_monitor *mon)
{
	return (mon->stats.logs ? 0 : (unsigned)RT_COLLECT_INTERVALS) |
	       (mon->stats.xstats ? 0 : (unsigned)RT_COLLECT_XSTATS) |
	       (mon->stats.devices ? 0 : (unsigned)RT_COLLECT_DEVICES);
}

static int ask(struct ringtap_monitor *mon, unsigned collectors, unsigned latency_every, char *err,
	size_t errlen)
{
	struct rt_msg_monitor m = {.collectors = collectors, .latency_every = latency_every};
	int ret;

	if (collectors & ~(unsigned)RT_COLLECT_ALL)
		return rt_fail(-EINVAL, err, errlen, "there is no such collector");
	m.collectors &= ~unknown(mon);
	rt_msg_init(&m.h, RT_MSG_MONITOR, sizeof(m));
	ret = rt_msg_send(mon->conn->fd, &m.h, NULL, 0);
	if (ret)
		return rt_fail(ret == -EPIPE ? -ECONNRESET : ret, err, errlen,
			"cannot talk to the probe: %s", strerror(-ret));
	mon->requested = m.collectors;
	/* After a timeout, the answers to earlier requests come first. */
	for (mon->owed++; mon->owed && !ret; mon->owed -= !ret)
		ret = receive(mon, err, errlen);
	if (!ret)
		mon->collectors = m.collectors;
	return ret;
}

static int take_options(const struct ringtap_monitor_options *opts,
	struct ringtap_monitor_options *o, char *err, size_t errlen)
{
	int ret = rt_options_in(o, sizeof(*o),
		RT_END_OF(struct ringtap_monitor_options, timeout_ms), opts, err, errlen);

	if (!ret && o->timeout_ms < 0) {
		snprintf(err, errlen, "the timeout is negative");
		ret = -EINVAL;
	}
	return ret;
}

static int start(struct ringtap_monitor *mon, const char *dir,
	const struct ringtap_monitor_options *opts, char *err, size_t errlen)
{
	struct ringtap_conn_options co = {.size = sizeof(co)};
	struct ringtap_monitor_options o;
	unsigned late;
	int ret;

	ret = take_options(opts, &o, err, errlen);
	co.timeout_ms = o.timeout_ms;
	co.awake_only = o.awake_only;
	if (!ret)
		ret = ringtap_conn_open(&mon->conn, dir, &co, err, errlen);
	if (!ret)
		ret = ask(mon, o.collectors, o.latency_every, err, errlen);
	/* Only the statistics show whether the probe knows these. */
	late = o.collectors & (RINGTAP_INTERVALS | RINGTAP_XSTATS | RINGTAP_DEVICES) &
	       ~unknown(mon);
	if (!ret && late & RINGTAP_INTERVALS)
		rt_intervals_skip(mon);
	if (!ret && late)
		ret = ask(mon, o.collectors, o.latency_every, err, errlen);
	if (ret)
		return ret;
	if (rt_clock_wait(mon->stats.clock, &mon->line))
		return rt_fail(-EBADMSG, err, errlen, "the probe's clock is not readable");
	rt_clock_sample_mono(&mon->open_tsc, &mon->open_mono_ns);
	return 0;
}

EXPORT int ringtap_monitor_open(struct ringtap_monitor **out, const char *dir,
	const struct ringtap_monitor_options *opts, char *err, size_t errlen)
{
	struct ringtap_monitor *mon = calloc(1, sizeof(*mon));
	char unused[RT_TEXT_LEN];
	int ret;

	*out = NULL;
	rt_default_text(&err, &errlen, unused, sizeof(unused));
	if (!mon)
		return rt_fail(-ENOMEM, err, errlen, "not enough memory");
	ret = start(mon, dir, opts, err, errlen);
	if (ret) {
		ringtap_monitor_close(mon);
		return ret;
	}
	*out = mon;
	return 0;
}

EXPORT void ringtap_monitor_close(struct ringtap_monitor *mon)
{
	if (!mon)
		return;
	ringtap_conn_close(mon->conn);
	rt_stats_unmap(&mon->stats);
	free(mon->log_entries);
	free(mon);
}

EXPORT int ringtap_monitor_switch(struct ringtap_monitor *mon,
	const struct ringtap_monitor_options *opts, char *err, size_t errlen)
{
	struct ringtap_monitor_options o;
	char unused[RT_TEXT_LEN];
	int ret;

	rt_default_text(&err, &errlen, unused, sizeof(unused));
	ret = take_options(opts, &o, err, errlen);
	if (ret)
		return ret;
	if (mon->dead)
		return rt_fail(-ECONNRESET, err, errlen, "the application went away");
	if (o.timeout_ms)
		mon->conn->timeout_ms = o.timeout_ms;
	ret = ask(mon, o.collectors, o.latency_every, err, errlen);
	mon->dead |= ret == -ECONNRESET;
	return ret;
}

EXPORT int ringtap_monitor_app(const struct ringtap_monitor *mon, struct ringtap_app_info *out)
{
	return ringtap_conn_app(mon->conn, out);
}

EXPORT int ringtap_monitor_fd(const struct ringtap_monitor *mon)
{
	return mon->conn->fd;
}

/* Without a request, only the end of the connection can arrive. */
static void look(struct ringtap_monitor *mon)
{
	int len;

	if (mon->dead)
		return;
	len = rt_msg_recv(mon->conn->fd, &mon->conn->msg, sizeof(mon->conn->msg), NULL, 0, NULL, 0);
	if (len > 0 && mon->owed && mon->conn->msg.h.type == RT_MSG_MONITORING) {
		/* A late answer to an earlier request. */
		if (!--mon->owed)
			mon->collectors = mon->requested;
		return;
	}
	mon->dead = len != -ETIMEDOUT && len != -EAGAIN && len != -EINTR;
}

EXPORT int ringtap_monitor_read(struct ringtap_monitor *mon, struct ringtap_snapshot **out)
{
	struct rt_snapshot *snap;
	int ret;

	look(mon);
	ret = rt_snapshot_take(mon, &snap);
	*out = ret ? NULL : &snap->pub;
	return ret ? ret : mon->dead ? -EPIPE : 0;
}
