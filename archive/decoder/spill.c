/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "identity.h"
#include "spill.h"

#define RUN_BUFFER (64u << 10) /* bytes that are read of a run at a time */

struct spill {
	FILE *file;
	uint32_t count;
	uint64_t end[FLOW_RUNS]; /* end of each run in the file */
};

/* Sorted flows in the file: each a struct flow_sum, the number of its buckets, and these. */
struct run {
	uint64_t at, end; /* what was not read yet */
	uint8_t *buf;     /* RUN_BUFFER bytes; those from first to last are not used yet */
	size_t first, last;
	struct flow flow; /* the next one */
	bool more;        /* there is one */
};

struct key {
	int64_t id;
	uint32_t number;
};

struct flow_reader {
	struct flows *t;
	/* In memory. */
	struct key *keys;
	uint32_t next;
	/* In the file. */
	struct run *runs;
	uint32_t count;
	struct flow merged;
};

/* ---- order ---- */

/* The two ends, the lower one first. */
static void sort_ends(const struct ends *e, uint8_t out[37])
{
	bool turned = ends_turned(e);

	memcpy(out, turned ? e->dst : e->src, 16);
	memcpy(out + 16, turned ? e->src : e->dst, 16);
	memcpy(out + 32, turned ? &e->dst_port : &e->src_port, 2);
	memcpy(out + 34, turned ? &e->src_port : &e->dst_port, 2);
	out[36] = e->protocol;
}

static int compare(const struct flow_sum *a, const struct flow_sum *b)
{
	uint8_t x[37], y[37];

	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	sort_ends(&a->ends, x);
	sort_ends(&b->ends, y);
	return memcmp(x, y, sizeof(x));
}

static int compare_keys(const void *a, const void *b, void *ctx)
{
	const struct key *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return compare(&flows_at(ctx, x->number)->sum, &flows_at(ctx, y->number)->sum);
}

static struct key *sort(struct flows *t)
{
	struct key *keys = malloc((t->count + 1u) * sizeof(*keys));

	if (!keys)
		return NULL;
	for (uint32_t i = 0; i < t->count; i++)
		keys[i] = (struct key){flows_at(t, i)->sum.id, i};
	qsort_r(keys, t->count, sizeof(*keys), compare_keys, t);
	return keys;
}

/* Adds the states of TCP to the sums. */
static void settle(struct flow *f)
{
	if (!f->tcp)
		return;
	f->sum.retransmissions = f->tcp->retransmissions;
	f->sum.rtt_ns = f->tcp->rtt_ns;
}

/* ---- writing ---- */

static int write_flow(FILE *file, const struct flow *f)
{
	uint32_t count;
	const uint64_t *buckets = sketch_buckets(f->latency, &count);

	fwrite(&f->sum, sizeof(f->sum), 1, file);
	fwrite(&count, sizeof(count), 1, file);
	fwrite(buckets ? buckets : (const uint64_t *)&count, sizeof(*buckets), count, file);
	return ferror(file) ? -(errno ? errno : EIO) : 0;
}

/* In the folder TMPDIR: there may be many flows. */
static FILE *temporary(void)
{
	const char *folder = secure_getenv("TMPDIR");
	int fd = open(folder && *folder ? folder : P_tmpdir,
		O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w+");

	if (fd >= 0 && !file)
		close(fd);
	/* Some file systems have no files without a name. */
	return fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR) ? tmpfile() : file;
}

static int begin_file(struct flows *t)
{
	if (t->spill)
		return t->spill->count < FLOW_RUNS ? 0 : -EFBIG;
	t->spill = calloc(1, sizeof(*t->spill));
	if (!t->spill)
		return -ENOMEM;
	t->spill->file = temporary();
	if (!t->spill->file) {
		int ret = -errno;

		free(t->spill);
		t->spill = NULL;
		return ret;
	}
	return 0;
}

int spill_flows(struct flows *t)
{
	struct key *keys;
	int ret = begin_file(t);

	if (ret)
		return ret;
	keys = sort(t);
	if (!keys)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->count && !ret; i++) {
		struct flow *f = flows_at(t, keys[i].number);

		settle(f);
		ret = write_flow(t->spill->file, f);
	}
	free(keys);
	if (!ret && fflush(t->spill->file))
		ret = -errno;
	t->spill->end[t->spill->count++] = (uint64_t)ftello(t->spill->file);
	flows_empty(t);
	return ret;
}

void spill_close(struct spill *s)
{
	if (s && s->file)
		fclose(s->file);
	free(s);
}

/* ---- reading ---- */

static int fill(struct run *r, int fd)
{
	size_t have = r->last - r->first, want;

	memmove(r->buf, r->buf + r->first, have);
	r->first = 0;
	r->last = have;
	want = RUN_BUFFER - have < r->end - r->at ? RUN_BUFFER - have : (size_t)(r->end - r->at);
	while (want) {
		ssize_t n = pread(fd, r->buf + r->last, want, (off_t)r->at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		r->last += (size_t)n;
		r->at += (uint64_t)n;
		want -= (size_t)n;
	}
	return 0;
}

/* The next n bytes of the run. */
static int take(struct run *r, int fd, void *dst, size_t n)
{
	int ret = r->last - r->first < n ? fill(r, fd) : 0;

	if (ret)
		return ret;
	if (r->last - r->first < n)
		return -EIO;
	memcpy(dst, r->buf + r->first, n);
	r->first += n;
	return 0;
}

static int add_bucket(struct sketch **s, uint64_t word)
{
	uint64_t bytes = 0;

	return sketch_add_bucket(s, word, &bytes);
}

static int next_of_run(struct run *r, int fd)
{
	uint32_t count;
	int ret;

	r->flow.latency = NULL;
	r->more = r->at < r->end || r->first < r->last;
	if (!r->more)
		return 0;
	ret = take(r, fd, &r->flow.sum, sizeof(r->flow.sum));
	ret = ret ? ret : take(r, fd, &count, sizeof(count));
	while (!ret && count--) {
		uint64_t word;

		ret = take(r, fd, &word, sizeof(word));
		ret = ret ? ret : add_bucket(&r->flow.latency, word);
	}
	return ret;
}

static int open_runs(struct flow_reader *r)
{
	struct spill *s = r->t->spill;
	int ret = r->t->count ? spill_flows(r->t) : 0;

	if (ret)
		return ret;
	r->runs = calloc(s->count, sizeof(*r->runs));
	if (!r->runs)
		return -ENOMEM;
	r->count = s->count;
	for (uint32_t i = 0; i < s->count && !ret; i++) {
		struct run *run = &r->runs[i];

		run->at = i ? s->end[i - 1] : 0;
		run->end = s->end[i];
		run->buf = malloc(RUN_BUFFER);
		ret = run->buf ? next_of_run(run, fileno(s->file)) : -ENOMEM;
	}
	return ret;
}

int flow_reader_open(struct flow_reader **out, struct flows *t)
{
	struct flow_reader *r = calloc(1, sizeof(*r));

	*out = r;
	if (!r)
		return -ENOMEM;
	r->t = t;
	if (t->spill)
		return open_runs(r);
	r->keys = sort(t);
	return r->keys ? 0 : -ENOMEM;
}

void flow_reader_close(struct flow_reader *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->count; i++) {
		free(r->runs[i].buf);
		sketch_free(r->runs[i].flow.latency);
	}
	sketch_free(r->merged.latency);
	free(r->runs);
	free(r->keys);
	free(r);
}

/* ---- merging ---- */

static void add_sums(struct flow_sum *a, const struct flow_sum *b)
{
	/* The runs are in the order of time: b may have begun from the other end. */
	unsigned turned =
		memcmp(a->ends.src, b->ends.src, 16) || a->ends.src_port != b->ends.src_port;

	for (unsigned i = 0; i < 2; i++) {
		a->packets[i] += b->packets[i ^ turned];
		a->bytes[i] += b->bytes[i ^ turned];
	}
	if (b->first_ns < a->first_ns)
		a->first_ns = b->first_ns;
	if (b->last_ns > a->last_ns)
		a->last_ns = b->last_ns;
	if (a->rtt_ns < 0)
		a->rtt_ns = b->rtt_ns;
	a->retransmissions += b->retransmissions;
	a->received += b->received;
	a->without_id += b->without_id;
	a->sent += b->sent;
	a->not_offered += b->not_offered;
	a->open += b->open;
	a->unknown += b->unknown;
	a->let_go += b->let_go;
	a->unseen += b->unseen;
	a->stopped += b->stopped;
	a->tcp_flags |= b->tcp_flags;
}

static int add_latency(struct sketch **to, const struct sketch *from)
{
	uint32_t count;
	const uint64_t *word = sketch_buckets(from, &count);
	int ret = 0;

	for (uint32_t i = 0; i < count && !ret; i++)
		ret = add_bucket(to, word[i]);
	return ret;
}

/* The least of all runs; of equal ones the first. */
static struct run *least(struct flow_reader *r)
{
	struct run *best = NULL;

	for (uint32_t i = 0; i < r->count; i++)
		if (r->runs[i].more &&
			(!best || compare(&r->runs[i].flow.sum, &best->flow.sum) < 0))
			best = &r->runs[i];
	return best;
}

static int merge(struct flow_reader *r)
{
	int fd = fileno(r->t->spill->file), ret;
	struct run *run = least(r);

	sketch_free(r->merged.latency);
	r->merged.latency = NULL;
	if (!run)
		return 0;
	r->merged = run->flow;
	ret = next_of_run(run, fd);
	for (uint32_t i = 0; i < r->count && !ret; i++) {
		struct run *o = &r->runs[i];

		if (!o->more || compare(&o->flow.sum, &r->merged.sum))
			continue;
		add_sums(&r->merged.sum, &o->flow.sum);
		ret = add_latency(&r->merged.latency, o->flow.latency);
		sketch_free(o->flow.latency);
		o->flow.latency = NULL;
		ret = ret ? ret : next_of_run(o, fd);
	}
	return ret ? ret : 1;
}

int flow_reader_next(struct flow_reader *r, const struct flow **f)
{
	struct flow *own;

	if (r->runs) {
		*f = &r->merged;
		return merge(r);
	}
	if (r->next == r->t->count)
		return 0;
	own = flows_at(r->t, r->keys[r->next++].number);
	settle(own);
	*f = own;
	return 1;
}
