/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "streams.h"

#define BLOCK_BYTES 32768

struct text {
	unsigned users;
	size_t len;
	char *data;
};

struct stream_page {
	struct stream_page *next;
	struct place place;
	unsigned clients;
	struct text *document, *update; /* NULL: not made in this round */
};

struct stream {
	struct streams *all;
	struct MHD_Connection *connection;
	struct stream_page *page;
	struct text *text; /* that is being sent; NULL: none */
	size_t sent;
	uint64_t round; /* in which the last text was made */
	bool started, suspended;
};

/* ---- texts */

static void text_release(struct text *t)
{
	if (!t || --t->users)
		return;
	free(t->data);
	free(t);
}

static struct text *text_make(struct streams *s, const struct place *p, bool newest)
{
	json_t *j = s->make(s->ctx, p, newest);
	char *dump = j ? json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(7)) : NULL;
	struct text *t = dump ? calloc(1, sizeof(*t)) : NULL;
	int n = -1;

	json_decref(j);
	if (t)
		n = asprintf(
			&t->data, "event: %s\ndata: %s\n\n", newest ? "update" : "document", dump);
	free(dump);
	if (n < 0) {
		free(t);
		return NULL;
	}
	t->len = (size_t)n;
	t->users = 1;
	s->made++;
	return t;
}

/* Next message for a client; NULL: none yet. */
static struct text *next_text(struct stream *c)
{
	struct streams *s = c->all;
	bool newest = c->started && c->round + 1 == s->round;
	struct text **from = newest ? &c->page->update : &c->page->document;

	if (c->started && c->round == s->round)
		return NULL;
	if (!*from)
		*from = text_make(s, &c->page->place, newest);
	if (!*from)
		return NULL;
	c->started = true;
	c->round = s->round;
	(*from)->users++;
	return *from;
}

/* ---- pages */

static struct stream_page *page_of(struct streams *s, const struct place *p)
{
	struct stream_page *page;

	for (page = s->pages; page; page = page->next)
		if (!strcmp(page->place.app, p->app) && !strcmp(page->place.port, p->port) &&
			!strcmp(page->place.thread, p->thread))
			return page;
	page = calloc(1, sizeof(*page));
	if (!page)
		return NULL;
	page->place = *p;
	page->next = s->pages;
	s->pages = page;
	return page;
}

static void page_clear(struct stream_page *page)
{
	text_release(page->document);
	text_release(page->update);
	page->document = page->update = NULL;
}

static void page_leave(struct streams *s, struct stream_page *page)
{
	if (!page || --page->clients)
		return;
	for (struct stream_page **at = &s->pages; *at; at = &(*at)->next)
		if (*at == page) {
			*at = page->next;
			break;
		}
	page_clear(page);
	free(page);
}

/* ---- clients */

static ssize_t read_stream(void *arg, uint64_t pos, char *buf, size_t max)
{
	struct stream *c = arg;
	struct streams *s = c->all;
	ssize_t n = 0;

	pthread_mutex_lock(&s->lock);
	if (!c->text && !s->ending) {
		c->text = next_text(c);
		c->sent = 0;
	}
	if (s->ending) {
		n = MHD_CONTENT_READER_END_OF_STREAM;
	} else if (c->text) {
		n = (ssize_t)(c->text->len - c->sent < max ? c->text->len - c->sent : max);
		memcpy(buf, c->text->data + c->sent, (size_t)n);
		c->sent += (size_t)n;
		if (c->sent == c->text->len) {
			text_release(c->text);
			c->text = NULL;
		}
	} else {
		c->suspended = true;
		MHD_suspend_connection(c->connection);
	}
	pthread_mutex_unlock(&s->lock);
	return n;
}

static void close_stream(void *arg)
{
	struct stream *c = arg;
	struct streams *s = c->all;

	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; i < s->count; i++)
		if (s->list[i] == c) {
			s->list[i] = s->list[--s->count];
			break;
		}
	if (!s->count)
		s->empty_ns = now_ns(CLOCK_MONOTONIC);
	text_release(c->text);
	page_leave(s, c->page);
	pthread_mutex_unlock(&s->lock);
	free(c);
}

void streams_init(struct streams *s)
{
	pthread_mutex_init(&s->lock, NULL);
}

struct MHD_Response *streams_open(
	struct streams *s, struct MHD_Connection *c, const struct place *p, bool *many)
{
	struct stream *new = calloc(1, sizeof(*new));
	struct MHD_Response *r = NULL;

	if (!new)
		return NULL;
	pthread_mutex_lock(&s->lock);
	*many = s->count == STREAMS_MAX;
	*new = (struct stream){.all = s, .connection = c};
	if (!*many)
		new->page = page_of(s, p);
	if (new->page) {
		new->page->clients++;
		s->list[s->count++] = new;
	}
	pthread_mutex_unlock(&s->lock);
	if (!new->page) {
		free(new);
		return NULL;
	}
	r = MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_stream, new, close_stream);
	if (!r)
		close_stream(new);
	return r;
}

unsigned streams_count(struct streams *s)
{
	unsigned n;

	pthread_mutex_lock(&s->lock);
	n = s->count;
	pthread_mutex_unlock(&s->lock);
	return n;
}

static void wake(struct streams *s)
{
	for (unsigned i = 0; i < s->count; i++) {
		struct stream *c = s->list[i];

		if (!c->suspended)
			continue;
		c->suspended = false;
		MHD_resume_connection(c->connection);
	}
}

void streams_restart(struct streams *s)
{
	for (unsigned i = 0; i < s->count; i++)
		s->list[i]->started = false;
}

void streams_update(struct streams *s)
{
	s->round++;
	for (struct stream_page *page = s->pages; page; page = page->next)
		page_clear(page);
	wake(s);
}

void streams_end(struct streams *s)
{
	pthread_mutex_lock(&s->lock);
	s->ending = true;
	wake(s);
	pthread_mutex_unlock(&s->lock);
}
