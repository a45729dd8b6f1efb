/* SPDX-License-Identifier: BSD-3-Clause */
/* Attaching, starting, stopping. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fail.h"
#include "common/ipc.h"
#include "capture.h"
#include "grow.h"
#include "retain.h"
#include "window.h"
#include "reader/find/connect.h"
#include "reader/export.h"
#include "reader/tunables.h"

EXPORT int ringtap_capture_create(
	struct ringtap_capture **out, const struct ringtap_capture_create_options *opts)
{
	struct ringtap_capture_create_options o;
	struct ringtap_capture *cap;
	char unused[RT_TEXT_LEN];
	int ret =
		rt_options_in(&o, sizeof(o), RT_END_OF(struct ringtap_capture_create_options, size),
			opts, unused, sizeof(unused));

	*out = NULL;
	if (ret)
		return ret;
	cap = calloc(1, sizeof(*cap));
	if (!cap)
		return -ENOMEM;
	cap->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (cap->wake_fd < 0) {
		ret = -errno;
		free(cap);
		return ret;
	}
	rt_capture_pace(cap);
	*out = cap;
	return 0;
}

EXPORT const char *ringtap_capture_error(const struct ringtap_capture *cap)
{
	return cap->error;
}

int rt_capture_fail(struct ringtap_capture *cap, int code, const char *text)
{
	snprintf(cap->error, sizeof(cap->error), "%s", text);
	return code;
}

/* ---- attaching ---- */

/* By the folder itself: each process in a container has a path of its own to it. */
static void find_folder(struct rt_source *s, const char *app)
{
	char err[RT_TEXT_LEN];
	struct rt_address a;
	struct rt_folder f;
	struct stat st;

	if (rt_address_open(app, &a, &f, err, sizeof(err)))
		return;
	if (!fstat(f.fd, &st)) {
		s->dev = st.st_dev;
		s->ino = st.st_ino;
		s->secondary = a.secondary;
		s->instance = a.instance;
	}
	rt_folder_close(&f);
}

/* Whether packets may pass from one to the other: a primary process and a secondary, or two
 * secondaries. */
static bool are_related(const struct rt_source *x, const struct rt_source *y)
{
	return x->ino && x->ino == y->ino && x->dev == y->dev && (x->secondary || y->secondary) &&
	       (x->secondary || !x->instance) && (y->secondary || !y->instance);
}

static uint32_t number_of(const struct ringtap_capture *cap, const struct rt_source *s)
{
	for (uint32_t i = 0; i < cap->source_count; i++)
		if (are_related(&cap->sources[i], s))
			return cap->sources[i].number;
	return cap->source_count;
}

static int make_room_for_rings(struct ringtap_capture *cap, uint32_t source)
{
	const struct rt_segment *seg = &cap->sources[source].seg;
	struct rt_in *ins = realloc(cap->ins, (cap->in_room + seg->h.ring_count) * sizeof(*ins));

	if (!ins)
		return rt_capture_fail(cap, -ENOMEM, "not enough memory");
	cap->ins = ins;
	cap->in_room += seg->h.ring_count;
	return 0;
}

/* Makes the memory that the probe requests and passes it. */
static int make_memory(struct ringtap_capture *cap, struct rt_source *s, uint64_t buffer_size)
{
	struct {
		struct rt_msg_layout layout;
		struct rt_msg_fates fates;
	} m;
	struct rt_msg_header h;
	bool fates;
	int ret = rt_conn_expect(s->conn, RT_MSG_LAYOUT, NULL, 0, NULL, rt_reader_limits.open_ms,
		cap->error, sizeof(cap->error));

	if (ret < 0)
		return ret;
	fates = ret == sizeof(m);
	if (ret != sizeof(m.layout) && !fates)
		return rt_capture_fail(cap, -EPROTO, "the probe sent an invalid answer");
	memcpy(&m, &s->conn->msg, (size_t)ret);
	ret = rt_memory_make(&s->memory, &m.layout, fates ? &m.fates : NULL, buffer_size,
		cap->error, sizeof(cap->error));
	if (ret)
		return ret;
	rt_msg_init(&h, RT_MSG_MEMORY, sizeof(h));
	ret = rt_msg_send(s->conn->fd, &h, s->memory.fd, RT_FD_COUNT);
	return ret ? rt_capture_fail(cap, ret, "cannot pass memory to the probe") : 0;
}

static int open_session(struct ringtap_capture *cap, struct rt_source *s, uint64_t buffer_size)
{
	int ret = make_memory(cap, s, buffer_size);

	if (!ret)
		ret = rt_conn_expect(s->conn, RT_MSG_OPENED, NULL, 0, NULL,
			rt_reader_limits.open_ms, cap->error, sizeof(cap->error));
	if (ret >= 0)
		ret = rt_source_map(cap, s);
	rt_memory_close(&s->memory);
	return ret;
}

static bool is_unknown_option(const struct ringtap_capture *cap, int error)
{
	return error == -EINVAL && strstr(cap->error, "unknown option");
}

/* A probe from before RT_OPEN_GROWS refuses it, and the connection is over. */
static int connect_and_open(struct ringtap_capture *cap, struct rt_source *s, const char *dir,
	const struct ringtap_target *targets, size_t count, const struct ringtap_capture_options *o)
{
	const struct ringtap_conn_options co = {.size = sizeof(co), .timeout_ms = o->timeout_ms};
	/* Once: what is available changes. */
	const uint64_t most = rt_memory_most();
	int ret = -EINVAL;

	for (int grows = 1; grows >= 0; grows--) {
		ringtap_conn_close(s->conn);
		s->conn = NULL;
		ret = ringtap_conn_open(&s->conn, dir, &co, cap->error, sizeof(cap->error));
		if (ret)
			return ret;
		ret = rt_capture_request(cap, s, targets, count, o, most, grows);
		if (!ret)
			ret = open_session(cap, s, o->buffer_size ?: most);
		if (!is_unknown_option(cap, ret))
			break;
	}
	return ret;
}

static int open_source(struct ringtap_capture *cap, struct rt_source *s, const char *dir,
	const struct ringtap_target *targets, size_t count, const struct ringtap_capture_options *o)
{
	int ret;

	find_folder(s, dir);
	s->number = number_of(cap, s);
	s->sample = o->sample > 1 ? o->sample : 1;
	s->first = o->first;
	s->first_packets = o->first_packets;
	s->flows = o->first_flows ? o->first_flows : 1u << RT_FIRST_BITS_MAX;
	s->inner = o->first_inner;
	s->if_ids = calloc(RT_MAX_IFS, sizeof(*s->if_ids));
	if (!s->if_ids)
		return rt_capture_fail(cap, -ENOMEM, "not enough memory");
	s->target_count = (uint32_t)count;
	ret = connect_and_open(cap, s, dir, targets, count, o);
	if (ret == -EPROTO && (o->ids || o->fates) && s->conn &&
		s->conn->msg.h.type == RT_MSG_ERROR)
		ret = rt_capture_fail(cap, -ENOTSUP,
			"its probe is older than packet ids: restart the application with the "
			"installed probe, or capture without ids");
	if (!ret && s->seg.h.fate_bits && o->fate_ids != !s->seg.h.fate_snap)
		ret = rt_capture_fail(cap, -EBADMSG, "the probe sent an invalid answer");
	if (is_unknown_option(cap, ret) && o->fate_ids)
		ret = rt_capture_fail(cap, -ENOTSUP,
			"its probe is older than fates in files: restart the application with the "
			"installed probe, or capture without fates");
	if (is_unknown_option(cap, ret) && o->first)
		ret = rt_capture_fail(cap, -ENOTSUP,
			"its probe is older than limits of flows: restart the application with the "
			"installed probe, or capture whole flows");
	if (is_unknown_option(cap, ret) && (o->mbufs || o->lengths))
		ret = rt_capture_fail(cap, -ENOTSUP,
			o->mbufs
				? "its probe is older than metadata of mbufs and lengths by packet: "
				  "restart the application with the installed probe, or capture "
				  "without both"
				: "its probe is older than lengths by packet: restart the "
				  "application with the installed probe, or capture without");
	if (is_unknown_option(cap, ret) && o->sample > 1)
		ret = rt_capture_fail(cap, -ENOTSUP,
			"its probe is older than sampling: restart the application with the "
			"installed probe, or capture all packets");
	if (!ret && o->fates && !s->seg.h.fate_bits)
		ret = rt_capture_fail(cap, -ENOTSUP,
			"its probe is older than fates of packets: restart the application with the "
			"installed probe");
	if (!ret && rt_clock_wait(s->seg.clock, &s->line))
		ret = rt_capture_fail(cap, -EBADMSG, "the probe's clock is not readable");
	return ret;
}

static void close_source(struct rt_source *s)
{
	rt_growth_end(s);
	rt_segment_unmap(&s->seg);
	rt_memory_free(&s->memory);
	ringtap_conn_close(s->conn);
	free(s->if_ids);
}

bool rt_capture_first(const struct ringtap_capture *cap, unsigned i, char *text, size_t size)
{
	const struct rt_source *s = &cap->sources[cap->ifs[i].source];

	*text = '\0';
	if (s->first)
		snprintf(text, size, "first: %s=%u flows=%u%s",
			s->first_packets ? "packets" : "bytes", s->first, s->flows,
			s->inner ? " inner" : "");
	return s->first;
}

uint32_t rt_capture_applications(const struct ringtap_capture *cap)
{
	return cap->source_count;
}

void rt_capture_learn_all_ifs(struct ringtap_capture *cap, uint32_t source)
{
	uint32_t n = rt_segment_if_count(&cap->sources[source].seg);

	if (n)
		rt_capture_learn_if(cap, source, n - 1);
}

static int take_options(struct ringtap_capture *cap, const struct ringtap_capture_options *opts,
	struct ringtap_capture_options *o)
{
	int ret =
		rt_options_in(o, sizeof(*o), RT_END_OF(struct ringtap_capture_options, timeout_ms),
			opts, cap->error, sizeof(cap->error));

	if (ret)
		return ret;
	if (o->on_full != RINGTAP_DROP && o->on_full != RINGTAP_WAIT)
		return rt_capture_fail(cap, -EINVAL, "on_full has an unknown value");
	if (o->timestamp != RINGTAP_TSC && o->timestamp != RINGTAP_NIC)
		return rt_capture_fail(cap, -EINVAL, "timestamp has an unknown value");
	if (o->ids != RINGTAP_NO_IDS && o->ids != RINGTAP_IDS && o->ids != RINGTAP_IDS_INFERRED)
		return rt_capture_fail(cap, -EINVAL, "ids has an unknown value");
	if (o->fates && o->on_full != RINGTAP_DROP)
		return rt_capture_fail(cap, -EINVAL, "fates do not wait for the reader");
	if (o->sample > RT_SAMPLE_MAX || (o->sample && o->sample & (o->sample - 1)))
		return rt_capture_fail(cap, -EINVAL, "sample is not a power of two up to 16777216");
	if (o->sample > 1 && o->fates)
		return rt_capture_fail(
			cap, -EINVAL, "fates cover all packets: leave out the sample");
	if ((o->mbufs || o->lengths) && o->fates)
		return rt_capture_fail(
			cap, -EINVAL, "fates have no mbufs and lengths: leave these out");
	if (o->first > RT_FIRST_MAX)
		return rt_capture_fail(cap, -EINVAL, "first is above 2147483648");
	if (o->first_flows & (o->first_flows - 1) ||
		(o->first_flows && (o->first_flows < 1u << RT_FIRST_BITS_MIN ||
					   o->first_flows > 1u << RT_FIRST_BITS_MAX)))
		return rt_capture_fail(
			cap, -EINVAL, "first_flows is not a power of two from 256 to 16384");
	if (o->first && o->fates)
		return rt_capture_fail(
			cap, -EINVAL, "fates cover all packets: leave out the limit of flows");
	if (o->fate_ids && !o->fates)
		return rt_capture_fail(cap, -EINVAL, "fate_ids is given without fates");
	return 0;
}

static int check_targets(struct ringtap_capture *cap, const struct ringtap_target *targets,
	size_t count, const struct ringtap_capture_options *o)
{
	for (size_t i = 0; i < count; i++) {
		unsigned d = targets[i].directions;

		if (!d || d & ~(unsigned)(RINGTAP_RX | RINGTAP_TX))
			return rt_capture_fail(cap, -EINVAL,
				"directions of a target are not RINGTAP_RX, RINGTAP_TX or both");
		if (o->fates && d != (RINGTAP_RX | RINGTAP_TX))
			return rt_capture_fail(
				cap, -EINVAL, "fates need targets of both directions");
		if (o->fates && !o->fate_ids && targets[i].filter)
			return rt_capture_fail(cap, -EINVAL, "fates need targets without a filter");
	}
	return 0;
}

static int attach(struct ringtap_capture *cap, const char *dir, const struct ringtap_target *wants,
	size_t count, const struct ringtap_capture_options *opts)
{
	struct ringtap_capture_options o;
	struct rt_source *more, *s;
	int ret;

	cap->error[0] = 0;
	ret = take_options(cap, opts, &o);
	if (!ret)
		ret = check_targets(cap, wants, count, &o);
	if (ret)
		return ret;
	if (cap->detached)
		return rt_capture_fail(cap, -EINVAL, "the capture is detached");
	if (cap->retention || cap->window)
		return rt_capture_fail(cap, -EINVAL, "the capture keeps packets already");
	if (cap->source_count == RT_MAX_SOURCES)
		return rt_capture_fail(cap, -E2BIG, "too many applications");
	more = realloc(cap->sources, (cap->source_count + 1) * sizeof(*more));
	if (!more)
		return rt_capture_fail(cap, -ENOMEM, "not enough memory");
	cap->sources = more;
	s = &more[cap->source_count];
	*s = (struct rt_source){.memory = RT_MEMORY_NONE};
	ret = open_source(cap, s, dir, wants, count, &o);
	if (!ret)
		ret = make_room_for_rings(cap, cap->source_count);
	if (ret) {
		close_source(s);
		return ret;
	}
	rt_capture_learn_all_ifs(cap, cap->source_count++);
	rt_capture_pace(cap);
	rt_rings_follow(cap);
	return 0;
}

EXPORT int ringtap_capture_attach_sized(struct ringtap_capture *cap, const char *dir,
	const struct ringtap_target *targets, size_t size, size_t count,
	const struct ringtap_capture_options *opts)
{
	struct ringtap_target *own;
	int ret = 0;

	if (!count || count > RT_MAX_TARGETS)
		return rt_capture_fail(cap, -E2BIG, "no targets, or too many");
	if (size == sizeof(*own))
		return attach(cap, dir, targets, count, opts);
	own = calloc(count, sizeof(*own));
	if (!own)
		return rt_capture_fail(cap, -ENOMEM, "not enough memory");
	for (size_t i = 0; i < count && !ret; i++)
		ret = rt_copy_in(&own[i], sizeof(*own),
			RT_END_OF(struct ringtap_target, filter_len),
			(const char *)targets + i * size, size);
	if (ret)
		rt_capture_fail(cap, ret, "the targets are not of this version of libringtap");
	else
		ret = attach(cap, dir, own, count, opts);
	free(own);
	return ret;
}

bool rt_capture_learn_if(struct ringtap_capture *cap, uint32_t source, uint32_t local)
{
	struct rt_source *s = &cap->sources[source];
	uint32_t n = rt_segment_if_count(&s->seg);
	char device[RT_NAME_LEN];

	if (cap->window)
		return rt_window_learn_if(cap, source, local);
	if (local >= n)
		return false;
	for (; s->if_known < n; s->if_known++) {
		struct rt_if_ref *more = realloc(cap->ifs, (cap->if_count + 1) * sizeof(*more));

		if (!more)
			return false;
		cap->ifs = more;
		more[cap->if_count] = (struct rt_if_ref){.source = source, .local = s->if_known};
		rt_copy_text(device, s->seg.ifs[s->if_known].name, sizeof(device));
		if (!rt_switch_name(s->conn, rt_load(&s->seg.ifs[s->if_known].port_id), device,
			    more[cap->if_count].name))
			more[cap->if_count].name[0] = 0;
		s->if_ids[s->if_known] = cap->if_count++;
	}
	return true;
}

void rt_capture_corrupt(struct ringtap_capture *cap, const struct rt_in *in, const char *why)
{
	if (cap->corrupt) /* report the first one only */
		return;
	cap->corrupt = -EBADMSG;
	snprintf(cap->error, sizeof(cap->error), "ring %u of %s is corrupt at byte %llu: %s",
		in->index, cap->sources[in->source].conn->app.prefix, (unsigned long long)in->pos,
		why);
}

/* Sends a request to one application that is answered at once. */
static int request(struct rt_source *s, uint16_t type, uint16_t answer, char *err)
{
	struct rt_msg_header h;
	int ret;

	rt_msg_init(&h, type, sizeof(h));
	ret = rt_msg_send(s->conn->fd, &h, NULL, 0);
	if (ret)
		return rt_fail(ret == -EPIPE ? -ECONNRESET : ret, err, RT_TEXT_LEN,
			"cannot talk to the probe: %s", strerror(-ret));
	ret = rt_conn_expect(
		s->conn, answer, NULL, 0, NULL, rt_conn_timeout_ms(s->conn), err, RT_TEXT_LEN);
	return ret < 0 ? ret : 0;
}

/* A queue has a limited number of captures. Queues without an entry in the table are refused, too:
 * where it is full, some of its queues may be captured. */
static int check_queues(const struct rt_source *s, char *err)
{
	const struct rt_segment *seg = &s->seg;
	uint32_t taps = rt_segment_tap_count(seg);

	if (!taps || taps == seg->h.tap_capacity || rt_load(&seg->live->taps_refused) < taps)
		return 0;
	return rt_fail(-EBUSY, err, RT_TEXT_LEN,
		"there are too many captures of its queues already: end one");
}

EXPORT int ringtap_capture_start(struct ringtap_capture *cap)
{
	if (!cap->looked_ns && !cap->waker)
		cap->looked_ns = rt_mono_ns(); /* a pause may begin before the first look */
	for (uint32_t i = 0; i < cap->source_count; i++) {
		struct rt_source *s = &cap->sources[i];
		int ret;

		if (s->started)
			continue;
		ret = request(s, RT_MSG_START, RT_MSG_STARTED, cap->error);
		s->dead |= ret == -ECONNRESET;
		s->started = !ret || s->dead;
		s->conn->names.live = s->started;
		if (!ret)
			ret = check_queues(s, cap->error);
		if (ret)
			return ret;
		rt_growth_begin(s);
		rt_capture_learn_all_ifs(cap, i);
	}
	return 0;
}

bool rt_capture_started(const struct ringtap_capture *cap)
{
	for (uint32_t i = 0; i < cap->source_count; i++) {
		if (!cap->sources[i].started)
			return false;
	}
	return true;
}

/* ---- the end ---- */

/* The longest answer timeout of all applications. */
static uint64_t stop_timeout_ns(const struct ringtap_capture *cap)
{
	int ms = cap->source_count ? 0 : rt_reader_limits.answer_ms;

	for (uint32_t i = 0; i < cap->source_count; i++) {
		if (rt_conn_timeout_ms(cap->sources[i].conn) > ms)
			ms = rt_conn_timeout_ms(cap->sources[i].conn);
	}
	return (uint64_t)ms * 1000000;
}

EXPORT int ringtap_capture_stop(struct ringtap_capture *cap)
{
	int result = 0;

	if (cap->stop_until_ns)
		return 0; /* requested already */
	if (cap->window)
		return -EINVAL; /* the connections are not its own */
	for (uint32_t i = 0; i < cap->source_count; i++) {
		struct rt_source *s = &cap->sources[i];
		struct rt_msg_header h;
		int ret;

		if (s->dead || s->stopped)
			continue;
		s->started = true; /* ringtap_capture_next() must not start it */
		rt_growth_quit(s);
		rt_msg_init(&h, RT_MSG_STOP, sizeof(h));
		ret = rt_msg_send(s->conn->fd, &h, NULL, 0);
		if (ret == -EPIPE)
			s->dead = true;
		else if (ret)
			result = rt_capture_fail(cap, ret, "cannot talk to the probe");
	}
	cap->stop_until_ns = rt_mono_ns() + stop_timeout_ns(cap);
	rt_waker_await_stop(cap->waker);
	return result;
}

/* Rings and tails stay mapped: in a child process they are the parent's, so neither next() nor
 * release() may use them any more. */
EXPORT void ringtap_capture_detach(struct ringtap_capture *cap)
{
	if (cap->detached || cap->window)
		return;
	cap->detached = true;
	rt_waker_free(cap->waker); /* it polls the connections */
	cap->waker = NULL;
	for (uint32_t i = 0; i < cap->source_count; i++) {
		struct rt_source *s = &cap->sources[i];

		rt_growth_end(s); /* it sends */
		rt_conn_hang_up(s->conn);
		s->started = s->stopped = true; /* nothing is sent or awaited any more */
	}
	close(cap->wake_fd);
	cap->wake_fd = -1;
}

EXPORT void ringtap_capture_close(struct ringtap_capture *cap)
{
	if (!cap)
		return;
	if (cap->window) {
		rt_window_close(cap);
		return;
	}
	ringtap_capture_detach(cap); /* first: the waker looks at the rings */
	for (uint32_t i = 0; i < cap->source_count; i++)
		close_source(&cap->sources[i]);
	rt_retain_end(cap);
	free(cap->sources);
	free(cap->ins);
	free(cap->ifs);
	free(cap);
}
