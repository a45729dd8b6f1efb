/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>

#include "common/clock.h"
#include "compat.h"
#include "control.h"
#include "hook.h"
#include "nic_time.h"
#include "plugin.h"
#include "socket.h"
#include "teardown.h"
#include "trace.h"
#include "trace_load.h"

#define CONNS_MAX   32
#define LINGER_MS   2000 /* the reader connects within that time of waking us */
#define TICK_MS     50   /* clock, ports, tails */
#define EVENT_MS    100  /* that the application waits for us at most when a port comes or goes */
#define COUNTERS_MS 500  /* NIC counters */
#define BUSY_MS     1    /* while a session begins or ends */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t gone;
	bool running, leaving, stay, quit;
	bool shut; /* stopped by the application: only it starts us again */
	int wake_fd;
	struct rt_listener listener;
	struct rt_conn *conns;
	struct rt_monitor lease;               /* rt_control_query() */
	uint64_t lease_ms[RT_INSTR_COUNT + 1]; /* when each instrument's ends; the last: any */
	uint64_t life;                         /* counts the threads that have ended */
	pid_t pid;                             /* of the process that has the thread */
	uint64_t active_ms, tick_ms, counters_ms;
	struct rt_clock clock;
	struct rt_clock_point early;
} ctl = {.lock = PTHREAD_MUTEX_INITIALIZER, .gone = PTHREAD_COND_INITIALIZER};

void rt_control_early(void)
{
	rt_clock_take(&ctl.early);
}

static void start_clock(void)
{
	struct rt_clock_point now;

	rt_clock_take(&now);
	rt_clock_begin(&ctl.clock, &ctl.early, &now, rte_get_tsc_hz());
	rt_hook_set_clock(&ctl.clock.line);
}

static void tick_clock(void)
{
	struct rt_clock before = ctl.clock;
	struct rt_clock_point now;

	rt_clock_take(&now);
	rt_clock_follow(&ctl.clock, &now);
	if (!rt_hook_set_clock(&ctl.clock.line)) {
		ctl.clock = before; /* the next line goes on from what hooks and readers use */
		return;
	}
	for (struct rt_session *s = rt_sessions; s; s = s->next) {
		if (s->shm.clock)
			rt_clock_publish(s->shm.clock, &ctl.clock.line);
		for (uint32_t i = 0; i < s->if_count; i++) {
			struct rt_session_if *f = &s->ifs[i];

			if (f->nic_clock && !f->gone)
				rt_nic_clock_update(f->nic_clock, f->port.port_id,
					rt_clock_ns(&ctl.clock.line, rt_tsc()));
		}
	}
}

/* In the application's thread that adds or removes a port: when it goes on, no packet of the new
 * holder of a port id can be taken for one of the old. */
static void ports_changed(void)
{
	struct timespec until;

	/* The control thread may be busy, even with a lock that this thread holds: the next tick
	 * will do it then. */
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += EVENT_MS * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	if (pthread_mutex_timedlock(&ctl.lock, &until))
		return;
	for (struct rt_session *s = rt_sessions; s; s = s->next) {
		if (s->state <= RT_SESSION_ARMED)
			rt_session_rescan(s);
	}
	rt_figures_rescan();
	pthread_mutex_unlock(&ctl.lock);
}

static bool peer_allowed(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return false;
	return cred.uid == 0 || cred.uid == geteuid();
}

static void accept_one(void)
{
	int fd = accept4(ctl.listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct rt_conn *c;
	unsigned n = 0;

	if (fd < 0)
		return;
	for (c = ctl.conns; c; c = c->next)
		n++;
	c = n < CONNS_MAX && peer_allowed(fd) ? calloc(1, sizeof(*c)) : NULL;
	if (!c) {
		close(fd);
		return;
	}
	c->fd = fd;
	c->next = ctl.conns;
	ctl.conns = c;
}

static void abandon(struct rt_conn *c)
{
	struct rt_session *s = c->session;

	close(c->fd);
	rt_figures_detach(&c->monitor, &ctl.clock.line);
	free(c);
	if (!s)
		return;
	s->abandoned = true;
	if (s->state < RT_SESSION_STOPPING)
		rt_session_stop(s);
}

static uint32_t leased(uint64_t now_ms)
{
	uint32_t on = 0;

	for (unsigned i = 0; i < RT_INSTR_COUNT; i++) {
		if (ctl.lease_ms[i] > now_ms)
			on |= 1u << i;
	}
	return on;
}

static void expire_lease(uint64_t now_ms)
{
	char err[RT_TEXT_LEN];

	if (!ctl.lease.attached)
		return;
	if (ctl.lease_ms[RT_INSTR_COUNT] <= now_ms)
		rt_figures_detach(&ctl.lease, &ctl.clock.line);
	else if (leased(now_ms) != ctl.lease.instruments)
		rt_figures_attach(&ctl.lease, leased(now_ms), 1, &ctl.clock.line, err);
}

static void free_abandoned(void)
{
	for (struct rt_session **p = &rt_sessions; *p;) {
		struct rt_session *s = *p;

		if (s->abandoned && rt_session_stopped(s)) {
			*p = s->next;
			rt_session_free(s);
		} else {
			p = &s->next;
		}
	}
}

/* Which sessions want to be looked at soon. */
static bool in_motion(void)
{
	for (struct rt_session *s = rt_sessions; s; s = s->next) {
		if (s->state == RT_SESSION_OBSERVING || s->state == RT_SESSION_STOPPING ||
			s->old_filters)
			return true;
	}
	return false;
}

static void serve(const struct pollfd *fds, const struct rt_conn *const *order, unsigned n)
{
	uint64_t now = rt_now_ms();

	for (struct rt_conn **p = &ctl.conns; *p;) {
		struct rt_conn *c = *p;
		bool ok = true;

		for (unsigned i = 0; i < n; i++) {
			if (order[i] == c && fds[i].revents)
				ok = rt_conn_serve(c, &ctl.clock.line);
		}
		if (ok && rt_conn_advance(c, now, &ctl.clock.line)) {
			p = &c->next;
			continue;
		}
		*p = c->next;
		abandon(c);
	}
}

static void tick(void)
{
	uint64_t now = rt_now_ms();

	if (now - ctl.tick_ms < TICK_MS)
		return;
	ctl.tick_ms = now;
	tick_clock();
	for (struct rt_session *s = rt_sessions; s; s = s->next) {
		if (s->state > RT_SESSION_ARMED)
			continue;
		rt_session_rescan(s);
		if (s->state == RT_SESSION_ARMED && now - ctl.counters_ms >= COUNTERS_MS)
			rt_session_refresh(s, COUNTERS_MS - TICK_MS);
	}
	expire_lease(now);
	rt_figures_tick(now, &ctl.clock.line);
	if (now - ctl.counters_ms >= COUNTERS_MS) {
		ctl.counters_ms = now;
		rt_hook_retry_removals();
	}
}

static bool idle(void)
{
	if (ctl.conns || rt_sessions || rt_fig_current) {
		ctl.active_ms = rt_now_ms();
		return false;
	}
	return !ctl.stay && !rt_trace_holds_buffer() && rt_now_ms() - ctl.active_ms >= LINGER_MS;
}

/* Threads that poll leave a hook within microseconds: try that before sleeping. */
static void settle(void)
{
	for (int i = 0; i < 100; i++) {
		bool sets = rt_hook_reclaim(), moving = !rt_figures_reclaim();

		for (struct rt_session *s = rt_sessions; s; s = s->next) {
			moving |= s->state == RT_SESSION_STOPPING && !rt_grace_over(&s->grace);
			moving |= s->old_filters && !rt_grace_over(&s->filter_grace);
		}
		if (sets && !moving)
			return;
		sched_yield();
	}
}

static int timeout_ms(void)
{
	return in_motion() ? BUSY_MS : rt_sessions || rt_fig_current ? TICK_MS : LINGER_MS / 4;
}

static unsigned fill(struct pollfd *fds, const struct rt_conn **order, int *timeout)
{
	unsigned n = 0;

	pthread_mutex_lock(&ctl.lock);
	for (struct rt_conn *c = ctl.conns; c && n < CONNS_MAX; c = c->next, n++) {
		fds[n] = (struct pollfd){.fd = c->fd, .events = POLLIN};
		order[n] = c;
	}
	fds[n] = (struct pollfd){.fd = ctl.listener.fd, .events = POLLIN};
	fds[n + 1] = (struct pollfd){.fd = ctl.wake_fd, .events = POLLIN};
	*timeout = timeout_ms();
	pthread_mutex_unlock(&ctl.lock);
	return n;
}

static bool step(void)
{
	struct pollfd fds[CONNS_MAX + 2];
	const struct rt_conn *order[CONNS_MAX];
	int timeout;
	unsigned n = fill(fds, order, &timeout);
	bool more;

	if (poll(fds, n + 2, timeout) < 0)
		for (unsigned i = 0; i < n + 2; i++)
			fds[i].revents = 0;
	pthread_mutex_lock(&ctl.lock);
	serve(fds, order, n);
	if (fds[n].revents)
		accept_one();
	tick();
	settle();
	serve(fds, order, 0); /* what has settled just now is answered at once */
	free_abandoned();
	more = !ctl.quit && !idle();
	ctl.leaving = !more;
	pthread_mutex_unlock(&ctl.lock);
	return more;
}

static void end_all(void)
{
	while (ctl.conns) {
		struct rt_conn *c = ctl.conns;

		ctl.conns = c->next;
		abandon(c);
	}
	rt_figures_detach(&ctl.lease, &ctl.clock.line);
	while ((rt_sessions || !rt_figures_reclaim()) && !rt_teardown_late()) {
		settle();
		free_abandoned();
	}
}

static uint32_t run(void *arg)
{
	sigset_t all;

	/* The application's signals are its own threads' business. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	rt_trace_control_thread();
	while (step())
		;
	/* Not under the lock: an event that is being delivered waits for it. */
	rt_ports_unwatch();
	pthread_mutex_lock(&ctl.lock);
	end_all();
	rt_listener_close(&ctl.listener);
	close(ctl.wake_fd);
	ctl.running = ctl.leaving = ctl.quit = ctl.stay = false;
	ctl.life++;
	pthread_cond_broadcast(&ctl.gone);
	pthread_mutex_unlock(&ctl.lock);
	return 0;
}

static int listen_on(void)
{
	const char *dir = rte_eal_get_runtime_dir();

	/* A secondary process shares the folder: it would take the socket from its primary. */
	if (!dir || !dir[0] || rte_eal_process_type() != RTE_PROC_PRIMARY)
		return -ENOTSUP;
	return rt_listener_open(&ctl.listener, dir);
}

static int start_thread(void)
{
	int ret = listen_on();

	if (ret)
		return ret;
	ctl.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ctl.tick_ms = ctl.counters_ms = 0;
	rt_store(&ctl.pid, getpid());
	start_clock();
	ret = ctl.wake_fd < 0 ? -errno : rt_ports_watch(ports_changed);
	if (!ret) {
		ret = rt_compat_control_thread("ringtap-ctl", run);
		if (!ret)
			return 0;
		rt_ports_unwatch();
	}
	if (ctl.wake_fd >= 0)
		close(ctl.wake_fd);
	rt_listener_close(&ctl.listener);
	return ret;
}

int rt_control_start(bool stay)
{
	int ret = 0;

	/* Not under the lock: it waits for who loads a library, whose constructors may wait for us.
	 */
	rt_trace_find_lttng();
	pthread_mutex_lock(&ctl.lock);
	while (ctl.leaving)
		pthread_cond_wait(&ctl.gone, &ctl.lock);
	ctl.active_ms = rt_now_ms();
	ctl.shut = ctl.shut && !stay;
	if (ctl.shut || rt_teardown_begun()) {
		ret = -ESHUTDOWN;
	} else if (!ctl.running) {
		ret = rt_probe_init();
		if (!ret)
			ret = start_thread();
		ctl.running = !ret;
	}
	if (!ret && stay)
		ret = ctl.stay ? -EALREADY : 0;
	ctl.stay |= stay;
	pthread_mutex_unlock(&ctl.lock);
	return ret;
}

void rt_control_socket(char name[RT_SOCKET_NAME_MAX])
{
	pthread_mutex_lock(&ctl.lock);
	memcpy(name, ctl.listener.name, RT_SOCKET_NAME_MAX);
	pthread_mutex_unlock(&ctl.lock);
}

/* Lock held. until: of CLOCK_MONOTONIC; NULL: for ever. */
static void stop(const struct timespec *until)
{
	uint64_t one = 1, life = ctl.life;
	int ret = 0;

	ctl.shut = true;
	if (!ctl.running)
		return;
	ctl.quit = true;
	(void)!write(ctl.wake_fd, &one, sizeof(one));
	while (ctl.life == life && !ret)
		ret = until ? pthread_cond_clockwait(&ctl.gone, &ctl.lock, CLOCK_MONOTONIC, until)
			    : pthread_cond_wait(&ctl.gone, &ctl.lock);
}

void rt_control_stop(void)
{
	pthread_mutex_lock(&ctl.lock);
	stop(NULL);
	pthread_mutex_unlock(&ctl.lock);
}

void rt_control_end(uint64_t until_ms)
{
	struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};

	/* Without a thread there may be another's lock, which nothing would ever release. */
	if (rt_load(&ctl.pid) != getpid())
		return;
	while (pthread_mutex_trylock(&ctl.lock)) {
		if (rt_now_ms() >= until_ms)
			return;
		usleep(1000);
	}
	stop(&until);
	pthread_mutex_unlock(&ctl.lock);
}

void rt_control_follow_tracers(void)
{
	pthread_mutex_lock(&ctl.lock);
	if (ctl.running && !ctl.leaving)
		rt_fig_look_again();
	pthread_mutex_unlock(&ctl.lock);
}

static int query(uint32_t instruments,
	void (*show)(struct rt_figures *f, uint64_t since_ms, void *arg), void *arg)
{
	uint64_t now = rt_now_ms(), now_ns = rt_clock_ns(&ctl.clock.line, rt_tsc()), since = 0;
	char err[RT_TEXT_LEN];
	int ret;

	if (!ctl.running || ctl.leaving)
		return -EAGAIN;
	for (unsigned i = 0; i <= RT_INSTR_COUNT; i++) {
		if (instruments & 1u << i || i == RT_INSTR_COUNT)
			ctl.lease_ms[i] = now + RT_LEASE_MS;
	}
	ret = rt_figures_attach(&ctl.lease, leased(now), 1, &ctl.clock.line, err);
	if (ret)
		return ret;
	since = rt_fig_current->begun_ns;
	for (unsigned i = 0; i < RT_INSTR_COUNT; i++) {
		if (instruments & 1u << i && rt_fig_current->on_ns[i] > since)
			since = rt_fig_current->on_ns[i];
	}
	show(rt_fig_current, now_ns > since ? (now_ns - since) / 1000000 : 0, arg);
	return 0;
}

int rt_control_query(uint32_t instruments,
	void (*show)(struct rt_figures *f, uint64_t since_ms, void *arg), void *arg)
{
	int ret = rt_control_start(false);

	if (ret)
		return ret;
	pthread_mutex_lock(&ctl.lock);
	ret = query(instruments, show, arg);
	pthread_mutex_unlock(&ctl.lock);
	return ret;
}
