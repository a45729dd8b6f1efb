/* SPDX-License-Identifier: BSD-3-Clause */
/* One reader's connection: messages in, answers out. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_version.h>

#include "probe/above.h"
#include "common/ipc.h"
#include "control.h"
#include "probe/capture/filter_job.h"
#include "probe/dpdk/prefix.h"
#include "probe/capture/request.h"
#include "probe/dpdk/secondary.h"

/* Programs that contain the probe are not linked again for each commit. */
__attribute__((weak)) const char *rt_probe_version(void)
{
	return RINGTAP_VERSION;
}

static bool fail(struct rt_conn *c, int code, const char *text)
{
	struct rt_msg_error m = {.code = code};

	rt_msg_init(&m.h, RT_MSG_ERROR, sizeof(m));
	rt_str_set(m.text, sizeof(m.text), text);
	(void)rt_msg_send(c->fd, &m.h, NULL, 0);
	return false;
}

static bool reply(struct rt_conn *c, uint16_t type)
{
	struct rt_msg_header h;

	rt_msg_init(&h, type, sizeof(h));
	return rt_msg_send(c->fd, &h, NULL, 0) == 0;
}

static bool on_hello(struct rt_conn *c, const void *msg, size_t len)
{
	struct rt_msg_hello hello;
	struct rt_msg_welcome w = {.pid = (uint32_t)getpid()};
	int ret;

	if (len != sizeof(hello))
		return fail(c, -EPROTO, "malformed greeting");
	ret = rt_control_follow();
	if (ret)
		return fail(c, ret, "the probe cannot follow the ports");
	memcpy(&hello, msg, sizeof(hello));
	hello.program[sizeof(hello.program) - 1] = 0;
	rt_str_set(c->program, sizeof(c->program), hello.program);
	c->pid = hello.pid;
	c->greeted = true;
	rt_msg_init(&w.h, RT_MSG_WELCOME, sizeof(w));
	rt_prefix(w.prefix);
	rt_str_set(w.program, sizeof(w.program), program_invocation_short_name);
	rt_str_set(w.dpdk, sizeof(w.dpdk), rte_version());
	rt_str_set(w.probe, sizeof(w.probe), rt_probe_version());
	return rt_msg_send(c->fd, &w.h, NULL, 0) == 0;
}

static bool send_ports(struct rt_conn *c)
{
	struct {
		struct rt_msg_header h;
		struct rt_msg_port port[RT_MAX_PORTS];
	} *m = calloc(1, sizeof(*m));
	uint32_t n = 0;
	bool ok;

	if (!m)
		return false;
	for (uint16_t p = rt_port_next(0); p < RT_MAX_PORTS; p = rt_port_next(p + 1))
		n += rt_port_describe(p, &m->port[n]) == 0;
	rt_msg_init(&m->h, RT_MSG_PORTS,
		(uint32_t)(offsetof(__typeof__(*m), port) + n * sizeof(m->port[0])));
	ok = rt_msg_send(c->fd, &m->h, NULL, 0) == 0;
	free(m);
	return ok;
}

static bool send_sessions(struct rt_conn *c)
{
	struct {
		struct rt_msg_header h;
		uint32_t reserved;
		struct rt_msg_session session[64];
	} m;
	uint32_t n = 0;

	memset(&m, 0, sizeof(m));
	for (struct rt_session *s = rt_sessions; s && n < 64; s = s->next, n++) {
		m.session[n] = (struct rt_msg_session){.id = s->id,
			.reader_pid = s->reader_pid,
			.rings = rt_thread_set_count(&s->chunks.used),
			.taps = rt_session_linked(s),
			.buffer_size = s->shm.there,
			.start_ns = s->start_ns};
		memcpy(m.session[n].reader, s->reader, sizeof(s->reader));
	}
	rt_msg_init(&m.h, RT_MSG_SESSIONS,
		(uint32_t)(offsetof(__typeof__(m), session) + n * sizeof(m.session[0])));
	return rt_msg_send(c->fd, &m.h, NULL, 0) == 0;
}

/* The request is answered once its filters are compiled; no message is read before. */
static int begin_job(struct rt_conn *c, struct rt_request *req, bool opens)
{
	c->job = rt_filter_job_new(req, opens);
	return c->job ? 0 : -ENOMEM;
}

bool rt_conn_work(struct rt_conn *c)
{
	if (c->job && !c->job->done)
		rt_filter_job_step(c->job);
	return c->job;
}

void rt_conn_cancel(struct rt_conn *c)
{
	rt_filter_job_free(c->job);
	c->job = NULL;
}

static bool on_open(struct rt_conn *c, const void *msg, size_t len)
{
	char err[RT_TEXT_LEN] = "not enough memory";
	struct rt_request req;
	int ret;

	if (c->session || c->monitor.attached)
		return fail(c, -EBUSY, "this connection has a session already");
	ret = rt_request_parse(&req, msg, len, err);
	/* Fates need the lists of mempools all the time, see secondary.h. */
	if (!ret && req.open.ids & RT_IDS_FATES && rt_is_secondary()) {
		snprintf(err, sizeof(err), "secondary processes have no fates; name the primary");
		ret = -ENOTSUP;
	}
	if (!ret) {
		req.reader_pid = c->pid;
		memcpy(req.reader, c->program, sizeof(req.reader));
		ret = begin_job(c, &req, true);
	}
	if (!ret)
		return true;
	rt_request_free(&req);
	return fail(c, ret, err);
}

static bool open_session(struct rt_conn *c)
{
	char err[RT_TEXT_LEN] = "not enough memory";
	int ret = rt_session_open(&c->session, &c->job->req, err);

	if (ret)
		return fail(c, ret, err);
	c->session->next = rt_sessions;
	rt_sessions = c->session;
	rt_stat_look_again(); /* start tracing now if this is the first monitor */
	return true;          /* answered once the threads are known */
}

static bool on_start(struct rt_conn *c, const struct rt_clock_line *clock)
{
	if (!c->session || c->session->state != RT_SESSION_READY)
		return fail(c, -EINVAL, "there is no session to start");
	rt_session_arm(c->session, clock);
	return reply(c, RT_MSG_STARTED);
}

static bool on_stop(struct rt_conn *c)
{
	if (!c->session)
		return fail(c, -EINVAL, "there is no session to stop");
	if (c->session->state < RT_SESSION_STOPPING)
		rt_session_stop(c->session);
	return true; /* answered once no producer is left */
}

static bool on_monitor(
	struct rt_conn *c, const void *msg, size_t len, const struct rt_clock_line *clock)
{
	bool first = !c->monitor.attached;
	struct rt_msg_header h;
	struct rt_msg_monitor m;
	char err[RT_TEXT_LEN];
	int ret;

	if (len != sizeof(m))
		return fail(c, -EPROTO, "malformed request to monitor");
	if (c->session)
		return fail(c, -EBUSY, "this connection has a session already");
	memcpy(&m, msg, sizeof(m));
	ret = rt_stats_attach(&c->monitor, m.collectors, m.latency_every, clock, err);
	if (ret)
		return fail(c, ret, err);
	rt_msg_init(&h, RT_MSG_MONITORING, sizeof(h));
	return rt_msg_send(c->fd, &h, &rt_stat_current->fd, first ? 1 : 0) == 0;
}

static bool filtered(struct rt_conn *c, int code, const char *text)
{
	struct rt_msg_filtered m = {.code = code};

	rt_msg_init(&m.h, RT_MSG_FILTERED, sizeof(m));
	rt_str_set(m.text, sizeof(m.text), text);
	return rt_msg_send(c->fd, &m.h, NULL, 0) == 0;
}

static bool on_filter(struct rt_conn *c, const void *msg, size_t len)
{
	char err[RT_TEXT_LEN] = "not enough memory";
	struct rt_request req;
	struct rt_insn *insns;
	uint32_t count;
	int ret;

	if (!c->session ||
		(c->session->state != RT_SESSION_READY && c->session->state != RT_SESSION_ARMED))
		return fail(c, -EINVAL, "there is no session to filter");
	ret = rt_request_filter(msg, len, &insns, &count, err);
	if (ret)
		return fail(c, ret, err);
	ret = rt_session_filter_request(c->session, &req, insns, count, err);
	if (!ret)
		ret = begin_job(c, &req, false);
	if (!ret)
		return true;
	rt_request_free(&req);
	return filtered(c, ret, err);
}

/* The filters are compiled, or refused. */
static bool end_job(struct rt_conn *c)
{
	struct rt_filter_job *j = c->job;
	bool ok = true;

	if (j->opens)
		ok = j->ret ? fail(c, j->ret, j->err) : open_session(c);
	else if (j->ret)
		ok = filtered(c, j->ret, j->err);
	else /* answered once no thread uses the old ones */
		rt_session_set_filter(c->session, &j->req);
	rt_conn_cancel(c);
	return ok;
}

static bool on_memory(
	struct rt_conn *c, const int *fds, unsigned fd_count, const struct rt_clock_line *clock)
{
	char err[RT_TEXT_LEN];
	int ret;

	if (!c->session || c->session->state != RT_SESSION_LAID_OUT)
		return fail(c, -EINVAL, "there is no session that waits for memory");
	if (fd_count != RT_FD_COUNT)
		return fail(c, -EBADF,
			"the memory did not arrive; the application may be at its limit of open "
			"files");
	ret = rt_session_ready(c->session, fds, clock, err);
	return ret ? fail(c, ret, err) : reply(c, RT_MSG_OPENED);
}

/* A session that ends needs no more, and its reader may not know yet that it does. */
static bool on_grow(struct rt_conn *c, const int *fds, unsigned fd_count)
{
	struct rt_msg_grown m = {.code = -ECANCELED};
	char err[RT_TEXT_LEN] = "the session ends";
	enum rt_session_state state = c->session ? c->session->state : RT_SESSION_OBSERVING;

	if (state < RT_SESSION_READY)
		return fail(c, -EINVAL, "there is no session that needs memory");
	if (fd_count != 1) {
		m.code = -EBADF;
		snprintf(err, sizeof(err), "the memory did not arrive");
	} else if (state <= RT_SESSION_ARMED) {
		m.code = rt_session_grow(c->session, fds[0], err);
	}
	rt_msg_init(&m.h, RT_MSG_GROWN, sizeof(m));
	rt_str_set(m.text, sizeof(m.text), m.code ? err : "");
	return rt_msg_send(c->fd, &m.h, NULL, 0) == 0;
}

static bool take(struct rt_conn *c, const void *buf, size_t len, const struct rt_clock_line *clock)
{
	const struct rt_msg_header *h = buf;

	switch (h->type) {
	case RT_MSG_HELLO: return on_hello(c, buf, len);
	case RT_MSG_LIST: return send_ports(c) && send_sessions(c);
	case RT_MSG_OPEN:
	case RT_MSG_OPEN_IDS: return on_open(c, buf, len);
	case RT_MSG_START: return on_start(c, clock);
	case RT_MSG_STOP: return on_stop(c);
	case RT_MSG_MONITOR: return on_monitor(c, buf, len, clock);
	case RT_MSG_FILTER: return on_filter(c, buf, len);
	case RT_MSG_DETACH: rt_control_detach(); return true;
	default: return fail(c, -EPROTO, "unknown message");
	}
}

bool rt_conn_serve(struct rt_conn *c, const struct rt_clock_line *clock)
{
	static uint64_t buf[RT_MSG_MAX / sizeof(uint64_t)]; /* control lock held */
	const struct rt_msg_header *h = (const void *)buf;
	int fds[RT_FD_COUNT], len;
	unsigned fd_count;
	bool ok;

	if (c->job) /* not polled for messages: the peer is gone */
		return false;
	len = rt_msg_recv(c->fd, buf, sizeof(buf), fds, RT_FD_COUNT, &fd_count, 0);
	if (len == -ETIMEDOUT || len == -EAGAIN)
		return true;
	if (len == -EPROTOTYPE)
		return fail(c, len, "probe and reader are of different versions of ringtap");
	if (len <= 0)
		return false;
	if (!c->greeted && h->type != RT_MSG_HELLO)
		ok = fail(c, -EPROTO, "no greeting");
	else if (h->type == RT_MSG_MEMORY)
		ok = on_memory(c, fds, fd_count, clock);
	else if (h->type == RT_MSG_GROW)
		ok = on_grow(c, fds, fd_count);
	else
		ok = take(c, buf, (size_t)len, clock);
	while (fd_count)
		close(fds[--fd_count]);
	return ok;
}

static bool send_layout(struct rt_conn *c)
{
	struct {
		struct rt_msg_layout layout;
		struct rt_msg_fates fates;
	} m;

	rt_session_lay_out(c->session, &m.layout, &m.fates);
	rt_msg_init(&m.layout.h, RT_MSG_LAYOUT,
		m.fates.bytes ? (uint32_t)(offsetof(__typeof__(m), fates) + sizeof(m.fates))
			      : sizeof(m.layout));
	return rt_msg_send(c->fd, &m.layout.h, NULL, 0) == 0;
}

bool rt_conn_advance(struct rt_conn *c, uint64_t now_ms, const struct rt_clock_line *clock)
{
	struct rt_session *s;

	if (c->job && c->job->done && !end_job(c))
		return false;
	s = c->session;
	if (!s)
		return true;
	if (rt_session_filter_settled(s) && !filtered(c, 0, ""))
		return false;
	switch (s->state) {
	case RT_SESSION_OBSERVING: return !rt_session_observed(s, now_ms) || send_layout(c);
	case RT_SESSION_LAID_OUT:
	case RT_SESSION_READY: return true;
	case RT_SESSION_ARMED:
		return rt_session_sane(s) ||
		       fail(c, -EBADMSG, "the reader has written an impossible tail");
	case RT_SESSION_CLOSING:
	case RT_SESSION_STOPPING: return !rt_session_stopped(s) || reply(c, RT_MSG_STOPPED);
	case RT_SESSION_STOPPED: return true;
	}
	return false;
}
