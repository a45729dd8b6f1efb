/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>

#include "probe/above.h"
#include "accept.h"
#include "common/clock.h"
#include "probe/capture/reason.h"
#include "probe/dpdk/compat.h"
#include "conns.h"
#include "control.h"
#include "probe/hook/hook.h"
#include "plugin.h"
#include "probe/capture/readable.h"
#include "probe/dpdk/secondary.h"
#include "sessions.h"
#include "socket.h"
#include "probe/dpdk/teardown.h"
#include "probe/trace/trace.h"
#include "probe/trace/load.h"
#include "probe/tunables.h"

#define LINGER_MS   2000 /* the reader connects within this time after its telemetry query */
#define TICK_MS     50   /* clock, ports, tails */
#define COUNTERS_MS 500  /* NIC counters */
#define BUSY_MS     1    /* while a session begins or ends */
#define WATCH_MS    5    /* for ports that start, which have no hooks until then */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t gone;
	bool running, leaving, stay, quit;
	bool shut;     /* stopped by the application: only the application starts it again */
	bool detached; /* by a reader, until rt_control_wake() or the application starts it */
	bool awake;    /* clock and ports are followed: always, but in an idle secondary process */
	int wake_fd, reserve_fd;
	uint64_t rest_ms; /* no connection is accepted before this time */
	uint32_t ports;   /* for rt_ports_changed() */
	struct rt_listener listener;
	struct rt_monitor lease; /* rt_control_query() */
	uint64_t lease_ms[RT_COLLECT_COUNT +
			  1]; /* when the lease of each collector ends; the last entry: of any */
	uint64_t generation;  /* counts the control threads that have ended */
	pid_t pid;            /* process that last took the lock to start the thread */
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

static int wake_up(void)
{
	int ret;

	start_clock();
	ret = rt_ports_watch(rt_hook_cut);
	ctl.awake = !ret;
	if (rt_vhost_is_on()) /* its ports appear when threads poll them */
		ctl.rest_ms = rt_now_ms() + RT_VHOST_SETTLE_MS;
	return ret;
}

int rt_control_follow(void)
{
	return ctl.awake ? 0 : wake_up();
}

static void doze(void)
{
	if (ctl.awake) {
		rt_hook_remove_unused(true);
		rt_ports_unwatch();
	}
	ctl.awake = false;
}

static void tick_clock(void)
{
	struct rt_clock_point now;

	rt_clock_take(&now);
	rt_clock_follow(&ctl.clock, &now);
	rt_hook_set_clock(&ctl.clock.line);
	rt_sessions_set_clock(&ctl.clock.line);
}

static void accept_one(void)
{
	int fd = rt_accept(ctl.listener.fd, &ctl.reserve_fd);

	if (fd >= 0)
		rt_conns_add(fd, rt_now_ms());
	else if (fd != -EAGAIN)
		ctl.rest_ms = rt_now_ms() + RT_ACCEPT_REST_MS;
}

static uint32_t leased(uint64_t now_ms)
{
	uint32_t on = 0;

	for (unsigned i = 0; i < RT_COLLECT_COUNT; i++) {
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
	if (ctl.lease_ms[RT_COLLECT_COUNT] <= now_ms)
		rt_stats_detach(&ctl.lease, &ctl.clock.line);
	else if (leased(now_ms) != ctl.lease.collectors)
		rt_stats_attach(&ctl.lease, leased(now_ms), 1, &ctl.clock.line, err);
}

static void tick(void)
{
	uint64_t now = rt_now_ms();

	if (!ctl.awake || rt_teardown_begun() ||
		(!rt_sessions_watch() && now - ctl.tick_ms < TICK_MS))
		return;
	ctl.tick_ms = now;
	tick_clock();
	for (struct rt_session *s = rt_sessions; s; s = s->next) {
		if (s->state <= RT_SESSION_ARMED)
			rt_session_rescan(s);
		if (s->state == RT_SESSION_ARMED || s->state == RT_SESSION_CLOSING)
			rt_session_tick(s, now);
		if (s->state == RT_SESSION_ARMED && now - ctl.counters_ms >= COUNTERS_MS)
			rt_session_refresh(s, COUNTERS_MS - TICK_MS);
	}
	expire_lease(now);
	rt_stats_tick(now, &ctl.clock.line);
	if (now - ctl.counters_ms >= COUNTERS_MS) {
		ctl.counters_ms = now;
		rt_hook_remove_unused(false);
		rt_threads_return();
		rt_vhost_tick();
		rt_reason_tick();
	}
}

static bool idle(void)
{
	if (rt_conns_greeted() || rt_sessions || rt_stat_current)
		ctl.active_ms = rt_now_ms();
	return !rt_conns && !rt_trace_holds_buffer() && rt_now_ms() - ctl.active_ms >= LINGER_MS;
}

/* Whether the thread ends. Nothing but an attach would start it again in a secondary process. */
static bool done(void)
{
	if (ctl.quit)
		return true;
	if (!idle())
		return false;
	if (rt_is_secondary())
		doze();
	return !ctl.stay && !rt_is_secondary();
}

static int timeout_ms(void)
{
	if (!ctl.awake)
		return rt_now_ms() < ctl.rest_ms ? TICK_MS : rt_conns ? LINGER_MS / 4 : -1;
	if (rt_sessions_in_motion())
		return BUSY_MS;
	if (rt_now_ms() < ctl.rest_ms)
		return RT_VHOST_SETTLE_MS;
	if (!rt_sessions && !rt_stat_current)
		return LINGER_MS / 4;
	return rt_sessions_restless() ? WATCH_MS : TICK_MS;
}

/* Connections belong to the control thread: compile without the lock, which the application's
 * threads may need. */
static bool work(void)
{
	bool pending = false;

	for (struct rt_conn *c = rt_conns; c && !rt_teardown_begun(); c = c->next)
		pending |= rt_conn_work(c);
	return pending;
}

/* The ports of a secondary process that starts are not complete yet. Awake, only the acceptance of
 * connections rests. */
static bool waits_for_ports(void)
{
	return !ctl.awake && rt_now_ms() < ctl.rest_ms;
}

static unsigned fill(struct pollfd *fds, const struct rt_conn **order, int *timeout)
{
	unsigned n = 0;

	pthread_mutex_lock(&ctl.lock);
	for (struct rt_conn *c = rt_conns; c && n < RT_CONNS_MAX; c = c->next, n++) {
		/* Watch for a hang-up only: messages wait until the last one is answered. */
		fds[n] = (struct pollfd){
			.fd = waits_for_ports() ? -1 : c->fd, .events = c->job ? 0 : POLLIN};
		order[n] = c;
	}
	fds[n] = (struct pollfd){
		.fd = rt_now_ms() < ctl.rest_ms ? -1 : ctl.listener.fd, .events = POLLIN};
	fds[n + 1] = (struct pollfd){.fd = ctl.wake_fd, .events = POLLIN};
	*timeout = timeout_ms();
	pthread_mutex_unlock(&ctl.lock);
	return n;
}

/* Returns after timeout_ms at the latest; -1: no limit. A descriptor that stays ready must not make
 * it return at once again and again: the thread would stay on the CPU. */
static void wait_for(struct pollfd *fds, unsigned n, int timeout_ms)
{
	struct timespec pause = {.tv_nsec = (timeout_ms < 0 ? TICK_MS : timeout_ms) * 1000000L};
	uint64_t count;

	if (poll(fds, n, timeout_ms) < 0) {
		for (unsigned i = 0; i < n; i++)
			fds[i].revents = 0;
		/* -EINVAL: RLIMIT_NOFILE is below n now. */
		if (errno != EINTR)
			clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	/* The application may have closed the descriptor and may use its number for another
	 * file. */
	if (fds[n - 1].revents && read(ctl.wake_fd, &count, sizeof(count)) != sizeof(count))
		ctl.wake_fd = -1;
}

/* Lock held. False: the thread ends. */
static bool turn(const struct pollfd *fds, const struct rt_conn *const *order, unsigned n)
{
	/* The end of DPDK may have stopped waiting for the lock: then only this check ends the
	 * thread. */
	if (rt_teardown_begun())
		return false;
	if (!ctl.awake && rt_ports_changed(&ctl.ports))
		ctl.rest_ms = rt_now_ms() + RT_PORTS_SETTLE_MS;
	if (!waits_for_ports()) {
		rt_conns_serve(fds, order, n, &ctl.clock.line);
		if (fds[n].revents)
			accept_one();
	}
	tick();
	rt_sessions_settle();
	rt_conns_serve(fds, order, 0, &ctl.clock.line); /* answer now what has settled just now */
	rt_sessions_free_abandoned();
	return !done();
}

static bool step(void)
{
	struct pollfd fds[RT_CONNS_MAX + 2];
	const struct rt_conn *order[RT_CONNS_MAX];
	bool pending = work();
	int timeout;
	unsigned n = fill(fds, order, &timeout);
	bool more;

	wait_for(fds, n + 2, pending ? 0 : timeout);
	/* Not under the lock, as it reads /proc. Sessions come and go only in this thread. */
	if (rt_sessions)
		rt_readable_look(rt_now_ms());
	else
		rt_readable_forget();
	pthread_mutex_lock(&ctl.lock);
	more = turn(fds, order, n);
	ctl.leaving = !more;
	pthread_mutex_unlock(&ctl.lock);
	return more;
}

/* Sessions that threads still use stay in rt_sessions; the next control thread frees them. */
static void end_all(void)
{
	uint64_t until_ms = rt_now_ms() + rt_probe_limits.patience_ms;

	rt_conns_abandon(false, &ctl.clock.line);
	if (!rt_teardown_late())
		rt_sessions_stop(until_ms);
	rt_conns_abandon(true, &ctl.clock.line);
	/* The rest of a session needs DPDK, which may be gone. */
	for (struct rt_conn *c = rt_conns; c; c = c->next)
		close(c->fd);
	if (!rt_teardown_late())
		rt_stats_detach(&ctl.lease, &ctl.clock.line);
	while (!rt_teardown_late() && rt_now_ms() < until_ms &&
		(rt_sessions || !rt_stats_reclaim())) {
		rt_sessions_settle();
		rt_sessions_free_abandoned();
	}
}

static uint32_t run(void *arg)
{
	sigset_t all;

	/* Leave the application's signals to its own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	rt_trace_control_thread();
	while (step())
		;
	pthread_mutex_lock(&ctl.lock);
	end_all();
	/* After the last call of a driver. Waits until a port event under delivery is over; the
	 * event needs neither the control lock nor its holder. */
	if (!rt_teardown_late())
		doze();
	rt_listener_close(&ctl.listener);
	close(ctl.wake_fd);
	if (ctl.reserve_fd >= 0)
		close(ctl.reserve_fd);
	ctl.running = ctl.leaving = ctl.quit = ctl.stay = false;
	ctl.generation++;
	pthread_cond_broadcast(&ctl.gone);
	pthread_mutex_unlock(&ctl.lock);
	return 0;
}

static int listen_on(void)
{
	const char *dir = rte_eal_get_runtime_dir();

	/* A container's file system may be read-only. */
	if (rt_is_secondary() && (!dir || !dir[0]))
		return -ENOTSUP;
	return rt_listener_open(&ctl.listener, dir ? dir : "", rt_is_secondary() ? getpid() : 0);
}

static int start_thread(void)
{
	int ret = listen_on();

	if (ret)
		return ret;
	ctl.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ctl.reserve_fd = rt_accept_reserve();
	ctl.rest_ms = ctl.tick_ms = ctl.counters_ms = 0;
	(void)rt_ports_changed(&ctl.ports);
	if (rt_is_secondary() && rt_process_is_new())
		ctl.rest_ms = rt_now_ms() + RT_PORTS_SETTLE_MS;
	ret = ctl.wake_fd < 0 ? -errno : rt_is_secondary() ? 0 : wake_up();
	if (!ret) {
		ret = rt_compat_control_thread("ringtap-ctl", run);
		if (!ret)
			return 0;
		doze();
	}
	if (ctl.wake_fd >= 0)
		close(ctl.wake_fd);
	if (ctl.reserve_fd >= 0)
		close(ctl.reserve_fd);
	rt_listener_close(&ctl.listener);
	return ret;
}

int rt_control_start(bool stay)
{
	int ret = 0;

	/* Not under the lock: this waits for the dynamic loader's lock, and its holder may run a
	 * constructor that waits for the control lock. */
	rt_trace_find_lttng();
	pthread_mutex_lock(&ctl.lock);
	while (ctl.leaving)
		pthread_cond_wait(&ctl.gone, &ctl.lock);
	ctl.active_ms = rt_now_ms();
	ctl.shut = ctl.shut && !stay;
	ctl.detached = ctl.detached && !stay;
	/* Before the check: either this thread sees that the end has begun, or the end waits for
	 * the lock. */
	__atomic_exchange_n(&ctl.pid, getpid(), __ATOMIC_SEQ_CST);
	if (ctl.shut || rt_teardown_begun()) {
		ret = -ESHUTDOWN;
	} else if (ctl.detached) {
		ret = -EUNATCH;
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

void rt_control_detach(void)
{
	ctl.detached = ctl.quit = true;
}

void rt_control_wake(void)
{
	pthread_mutex_lock(&ctl.lock);
	ctl.detached = false;
	pthread_mutex_unlock(&ctl.lock);
}

void rt_control_socket(char name[RT_SOCKET_NAME_MAX])
{
	pthread_mutex_lock(&ctl.lock);
	memcpy(name, ctl.listener.name, RT_SOCKET_NAME_MAX);
	pthread_mutex_unlock(&ctl.lock);
}

/* Lock held. until: on CLOCK_MONOTONIC; NULL: no limit. */
static void stop(const struct timespec *until)
{
	uint64_t one = 1, generation = ctl.generation;
	int ret = 0;

	ctl.shut = true;
	if (!ctl.running)
		return;
	ctl.quit = true;
	(void)!write(ctl.wake_fd, &one, sizeof(one));
	while (ctl.generation == generation && !ret)
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

	/* After a fork() there is no control thread, and another thread may have held the lock:
	 * nothing in this process would release it. */
	if (__atomic_load_n(&ctl.pid, __ATOMIC_SEQ_CST) != getpid())
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
		rt_stat_look_again();
	pthread_mutex_unlock(&ctl.lock);
}

static int query(uint32_t collectors,
	void (*show)(struct rt_stats *f, uint64_t collecting_ms, void *arg), void *arg)
{
	uint64_t now = rt_now_ms(), now_ns = rt_clock_ns(&ctl.clock.line, rt_tsc()), since = 0;
	char err[RT_TEXT_LEN];
	int ret;

	if (!ctl.running || ctl.leaving || rt_teardown_begun())
		return -EAGAIN;
	for (unsigned i = 0; i <= RT_COLLECT_COUNT; i++) {
		if (collectors & 1u << i || i == RT_COLLECT_COUNT)
			ctl.lease_ms[i] = now + RT_LEASE_MS;
	}
	ret = rt_stats_attach(&ctl.lease, leased(now), 1, &ctl.clock.line, err);
	if (ret)
		return ret;
	since = rt_stat_current->begun_ns;
	for (unsigned i = 0; i < RT_COLLECT_COUNT; i++) {
		if (collectors & 1u << i && rt_stat_current->on_ns[i] > since)
			since = rt_stat_current->on_ns[i];
	}
	show(rt_stat_current, now_ns > since ? (now_ns - since) / 1000000 : 0, arg);
	return 0;
}

int rt_control_query(uint32_t collectors,
	void (*show)(struct rt_stats *f, uint64_t collecting_ms, void *arg), void *arg)
{
	int ret = rt_control_start(false);

	if (ret)
		return ret;
	pthread_mutex_lock(&ctl.lock);
	ret = query(collectors, show, arg);
	pthread_mutex_unlock(&ctl.lock);
	return ret;
}
