/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/atomics.h"
#include "common/fail.h"
#include "common/ipc.h"
#include "conn.h"
#include "reader/export.h"
#include "reader/find/halt.h"
#include "reader/find/secondary.h"
#include "reader/find/telemetry.h"
#include "reader/wait.h"
#include "reader/tunables.h"

#define ATTEMPTS 3

EXPORT const char *ringtap_version(void)
{
	return RINGTAP_VERSION;
}

static int peer_error(const struct ringtap_conn *c, int len, char *err, size_t errlen)
{
	struct rt_msg_error e;

	if (len != sizeof(e))
		return rt_fail(-EPROTO, err, errlen, "the probe sent an invalid answer");
	memcpy(&e, &c->msg, sizeof(e));
	rt_terminate(e.text, sizeof(e.text));
	return rt_fail(e.code < 0 && e.code > -4096 ? e.code : -EPROTO, err, errlen, "%s",
		e.text[0] ? e.text : "the probe refuses without a reason");
}

/* Notes an answer. False: it is none, or nothing was asked. */
static bool take_grown(struct ringtap_conn *c, int len)
{
	struct rt_msg_grown m;

	/* Pairs with the release in pass(). */
	if (len != sizeof(m) || c->msg.h.type != RT_MSG_GROWN ||
		c->grow.answered == rt_load_acquire(&c->grow.sent))
		return false;
	memcpy(&m, &c->msg, sizeof(m));
	c->grow.answered++;
	c->grow.taken += !m.code && !c->grow.code;
	if (m.code && !c->grow.code) {
		c->grow.code = m.code;
		rt_copy_text(c->grow.text, m.text, sizeof(c->grow.text));
	}
	return true;
}

int rt_conn_expect(struct ringtap_conn *c, uint16_t type, int *fds, unsigned fd_max,
	unsigned *fd_count, int timeout_ms, char *err, size_t errlen)
{
	int len;

	do {
		/* Without a timeout nothing is waited for. */
		len = timeout_ms ? rt_wait_readable(c->fd, timeout_ms) : 0;
		if (!len)
			len = rt_msg_recv(c->fd, &c->msg, sizeof(c->msg), fds, fd_max, fd_count, 0);
	} while (len > 0 && take_grown(c, len));
	if (len > 0 && c->msg.h.type == type)
		return len;
	for (unsigned i = 0; len > 0 && fd_count && i < *fd_count; i++)
		close(fds[i]);
	if (len > 0 && c->msg.h.type == RT_MSG_ERROR)
		return peer_error(c, len, err, errlen);
	if (len == 0 || len == -ECONNRESET)
		len = -ECONNRESET;
	else if (len > 0)
		len = -EPROTO;
	if (len == -ETIMEDOUT && timeout_ms && rt_peer_halted(c->fd, err, errlen))
		return len;
	return rt_fail(len, err, errlen, "%s",
		len == -ECONNRESET   ? "the application went away"
		: len == -ECANCELED  ? RT_INTERRUPTED
		: len == -ETIMEDOUT  ? "the probe does not answer"
		: len == -EPROTOTYPE ? "probe and reader are of different versions of ringtap"
				     : "the probe sent an invalid answer");
}

static int greet(struct ringtap_conn *c, char *err, size_t errlen)
{
	struct rt_msg_hello hello = {.pid = (uint32_t)getpid()};
	int ret;

	rt_msg_init(&hello.h, RT_MSG_HELLO, sizeof(hello));
	rt_str_set(hello.program, sizeof(hello.program), program_invocation_short_name);
	ret = rt_msg_send(c->fd, &hello.h, NULL, 0);
	/* A probe that closed the connection may have sent the reason before. */
	if (ret && ret != -EPIPE)
		return rt_fail(ret, err, errlen, "cannot talk to the probe: %s", strerror(-ret));
	ret = rt_conn_expect(c, RT_MSG_WELCOME, NULL, 0, NULL, rt_conn_timeout_ms(c), err, errlen);
	if (ret == -ETIMEDOUT && rt_peer_halted(c->fd, err, errlen))
		return -EHOSTDOWN;
	if (ret < 0)
		return ret;
	if (ret != sizeof(c->app))
		return rt_fail(-EPROTO, err, errlen, "the probe sent an invalid answer");
	memcpy(&c->app, &c->msg, sizeof(c->app));
	rt_terminate(c->app.prefix, sizeof(c->app.prefix));
	rt_terminate(c->app.program, sizeof(c->app.program));
	rt_terminate(c->app.dpdk, sizeof(c->app.dpdk));
	rt_terminate(c->app.probe, sizeof(c->app.probe));
	return 0;
}

/* The same name as in ringtap_apps_find(). */
static void add_suffix(struct ringtap_conn *c, const char *dir)
{
	char name[sizeof(c->app.prefix) + 48];
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);
	struct rt_address a;
	int len = snprintf(name, sizeof(name), "%s", c->app.prefix);

	if (!rt_address_split(dir, &a))
		len += rt_address_suffix(&a, name + len, sizeof(name) - (size_t)len);
	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		peer = (struct ucred){0};
	c->host_pid = (uint32_t)peer.pid;
	if (peer.uid && peer.uid != geteuid())
		snprintf(name + len, sizeof(name) - (size_t)len, "@%u", (unsigned)peer.uid);
	rt_str_set(c->app.prefix, sizeof(c->app.prefix), name);
}

static int cannot_connect(int error, const char *dir, char *err, size_t errlen)
{
	if (error == -ECANCELED)
		return rt_fail(error, err, errlen, RT_INTERRUPTED);
	return rt_connect_failed(dir, RT_SOCKET_NAME, error, err, errlen);
}

/* The probe of a secondary process, which has no telemetry, does not answer. error: of connecting.
 */
static int missing(int error, const char *dir, char *err, size_t errlen)
{
	int ret = rt_secondary_alive(dir, err, errlen);

	if (!ret && error == -EAGAIN)
		return rt_fail(-ETIMEDOUT, err, errlen,
			"its probe accepts no connection; the process may be stopped");
	if (!ret && !err[0])
		snprintf(err, errlen,
			"the process runs without the ringtap probe, or it is detached; 'ringtap "
			"attach' loads it, or EAL option -d libringtap-probe.so at its start");
	if (ret == -ENOENT)
		snprintf(err, errlen, "no secondary process has the address %s", dir);
	return ret ? ret : -EPROTONOSUPPORT;
}

/* The socket exists while the probe is awake; otherwise wake it by telemetry. */
static int reach(const char *dir, bool awake_only, char *err, size_t errlen)
{
	int fd = rt_connect_why(dir, RT_SOCKET_NAME, err, errlen), ret;
	char name[RT_SOCKET_NAME_MAX];

	if (fd >= 0)
		return fd;
	if (fd != -ENOENT && fd != -ECONNREFUSED && fd != -EAGAIN)
		return cannot_connect(fd, dir, err, errlen);
	if (rt_address_is_secondary(dir))
		return missing(fd, dir, err, errlen);
	if (awake_only)
		return rt_fail(-EPROTONOSUPPORT, err, errlen, "its probe sleeps, or it has none");
	ret = rt_telemetry_wake(dir, name, err, errlen);
	if (ret)
		return ret;
	fd = name[0] ? rt_connect_name(dir, name, err, errlen)
		     : rt_connect_why(dir, RT_SOCKET_NAME, err, errlen);
	return fd < 0 ? cannot_connect(fd, dir, err, errlen) : fd;
}

/* A probe without readers goes to sleep: a connection that came just then ends unanswered. The
 * next attempt wakes it. If that reaches nobody, the first reason counts; that the probe was
 * detached just then is a better one. */
static int meet(struct ringtap_conn *c, const char *dir, char *err, size_t errlen)
{
	char later[RT_TEXT_LEN];
	int ret = c->fd = reach(dir, c->awake_only, err, errlen);

	for (int attempt = 1; c->fd >= 0; attempt++) {
		ret = greet(c, err, errlen);
		if (ret != -ECONNRESET || attempt == ATTEMPTS)
			break;
		rt_conn_hang_up(c);
		c->fd = reach(dir, c->awake_only, later, sizeof(later));
		if (c->fd == -EUNATCH)
			ret = rt_fail(c->fd, err, errlen, "%s", later);
	}
	return ret;
}

static int open_conn(struct ringtap_conn *c, const char *dir, char *err, size_t errlen)
{
	int telemetry_ms = rt_reader_limits.telemetry_ms, ret;

	/* Connecting and waking read the timeout from thread-local variables. */
	if (c->timeout_ms)
		rt_reader_limits.telemetry_ms = c->timeout_ms;
	ret = meet(c, dir, err, errlen);
	rt_reader_limits.telemetry_ms = telemetry_ms;
	if (ret >= 0)
		add_suffix(c, dir);
	return ret;
}

EXPORT int ringtap_conn_open(struct ringtap_conn **out, const char *dir,
	const struct ringtap_conn_options *opts, char *err, size_t errlen)
{
	struct ringtap_conn_options o;
	char unused[RT_TEXT_LEN];
	struct ringtap_conn *c;
	int ret;

	*out = NULL;
	rt_default_text(&err, &errlen, unused, sizeof(unused));
	ret = rt_options_in(&o, sizeof(o), RT_END_OF(struct ringtap_conn_options, timeout_ms), opts,
		err, errlen);
	if (!ret && o.timeout_ms < 0) {
		snprintf(err, errlen, "the timeout is negative");
		ret = -EINVAL;
	}
	if (ret)
		return ret;
	c = calloc(1, sizeof(*c));
	if (!c)
		return rt_fail(-ENOMEM, err, errlen, "not enough memory");
	c->timeout_ms = o.timeout_ms;
	c->awake_only = o.awake_only;
	ret = open_conn(c, dir, err, errlen);
	if (ret < 0) {
		ringtap_conn_close(c);
		return ret == -ECONNREFUSED ? -ENOENT : ret;
	}
	*out = c;
	return 0;
}

void rt_conn_hang_up(struct ringtap_conn *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

EXPORT void ringtap_conn_close(struct ringtap_conn *c)
{
	if (!c)
		return;
	rt_conn_hang_up(c);
	rt_names_free(&c->names);
	free(c);
}

EXPORT int ringtap_conn_detach(struct ringtap_conn *c, char *err, size_t errlen)
{
	char unused[RT_TEXT_LEN];
	struct rt_msg_header h;
	int ret;

	rt_default_text(&err, &errlen, unused, sizeof(unused));
	rt_msg_init(&h, RT_MSG_DETACH, sizeof(h));
	ret = rt_msg_send(c->fd, &h, NULL, 0);
	/* The answer is the end of the connection. */
	if (!ret || ret == -EPIPE)
		ret = rt_conn_expect(
			c, RT_MSG_NONE, NULL, 0, NULL, rt_conn_timeout_ms(c), err, errlen);
	if (ret == -ECONNRESET)
		ret = *err = 0;
	rt_conn_hang_up(c);
	return ret > 0 ? -EPROTO : ret;
}

EXPORT int ringtap_conn_app(const struct ringtap_conn *c, struct ringtap_app_info *out)
{
	struct ringtap_app_info i = {.pid = c->app.pid, .host_pid = c->host_pid};

	memcpy(i.prefix, c->app.prefix, sizeof(i.prefix));
	memcpy(i.program, c->app.program, sizeof(i.program));
	memcpy(i.dpdk, c->app.dpdk, sizeof(i.dpdk));
	memcpy(i.probe, c->app.probe, sizeof(i.probe));
	return rt_copy_out(out, &i, sizeof(i));
}

static int take_ports(struct ringtap_conn *c, int len, struct ringtap_list *list)
{
	const char *at = (const char *)&c->msg + sizeof(struct rt_msg_header);
	size_t n = ((size_t)len - sizeof(struct rt_msg_header)) / sizeof(struct rt_msg_port);
	struct ringtap_port_info *ports = calloc(n ? n : 1, sizeof(*ports));

	list->ports = (struct ringtap_array){ports, sizeof(*ports)};
	if (!ports)
		return -ENOMEM;
	list->port_count = n;
	for (size_t i = 0; i < n; i++) {
		struct ringtap_port_info *o = &ports[i];
		struct rt_msg_port p;

		memcpy(&p, at + i * sizeof(p), sizeof(p));
		*o = (struct ringtap_port_info){.port_id = p.port_id,
			.link_mbps = p.link_mbps,
			.mtu = p.mtu,
			.link_up = p.link_up,
			.stamps = p.stamps,
			.linktype = p.linktype ? p.linktype : RT_LINKTYPE_ETHERNET,
			.rx_queues = p.nb_rx_queues,
			.tx_queues = p.nb_tx_queues};
		rt_str_set(o->device, sizeof(o->device),
			(rt_terminate(p.name, sizeof(p.name)), p.name));
		rt_switch_name(c, p.port_id, o->device, o->name);
		rt_switch_link(c, p.port_id, o->device, &o->link_up, &o->link_mbps);
		rt_str_set(o->driver, sizeof(o->driver),
			(rt_terminate(p.driver, sizeof(p.driver)), p.driver));
		memcpy(o->mac, p.mac, sizeof(o->mac));
	}
	return 0;
}

static int take_sessions(struct ringtap_conn *c, int len, struct ringtap_list *list)
{
	const size_t head = sizeof(struct rt_msg_header) + sizeof(uint32_t);
	const char *at = (const char *)&c->msg + head;
	size_t n = (size_t)len < head ? 0 : ((size_t)len - head) / sizeof(struct rt_msg_session);
	struct ringtap_session_info *sessions = calloc(n ? n : 1, sizeof(*sessions));

	list->sessions = (struct ringtap_array){sessions, sizeof(*sessions)};
	if (!sessions)
		return -ENOMEM;
	list->session_count = n;
	for (size_t i = 0; i < n; i++) {
		struct ringtap_session_info *o = &sessions[i];
		struct rt_msg_session s;

		memcpy(&s, at + i * sizeof(s), sizeof(s));
		*o = (struct ringtap_session_info){.id = s.id,
			.reader_pid = s.reader_pid,
			.rings = s.rings,
			.taps = s.taps,
			.buffer_size = s.buffer_size,
			.start_ns = s.start_ns};
		rt_terminate(s.reader, sizeof(s.reader));
		rt_str_set(o->reader, sizeof(o->reader), s.reader);
	}
	return 0;
}

static int read_list(struct ringtap_conn *c, struct ringtap_list *list)
{
	struct rt_msg_header h;
	char err[RT_TEXT_LEN];
	int ret;

	rt_msg_init(&h, RT_MSG_LIST, sizeof(h));
	ret = rt_msg_send(c->fd, &h, NULL, 0);
	if (ret)
		return ret;
	ret = rt_conn_expect(
		c, RT_MSG_PORTS, NULL, 0, NULL, rt_conn_timeout_ms(c), err, sizeof(err));
	if (ret >= 0)
		ret = take_ports(c, ret, list);
	if (ret < 0)
		return ret;
	ret = rt_conn_expect(
		c, RT_MSG_SESSIONS, NULL, 0, NULL, rt_conn_timeout_ms(c), err, sizeof(err));
	return ret < 0 ? ret : take_sessions(c, ret, list);
}

EXPORT int ringtap_conn_list(struct ringtap_conn *c, struct ringtap_list **out)
{
	struct ringtap_list *list = calloc(1, sizeof(*list));
	int ret = list ? read_list(c, list) : -ENOMEM;

	*out = list;
	if (ret) {
		ringtap_list_free(list);
		*out = NULL;
	}
	return ret;
}

EXPORT void ringtap_list_free(struct ringtap_list *list)
{
	if (!list)
		return;
	free(list->ports.first);
	free(list->sessions.first);
	free(list);
}
