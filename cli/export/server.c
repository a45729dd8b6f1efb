/* SPDX-License-Identifier: BSD-3-Clause */
/* The endpoint. Prometheus selects the format by the Accept header. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server.h"
#include "base/util.h"

#define TYPE_PLAIN        "text/plain; version=0.0.4; charset=utf-8"
#define FLOWS_INTERVAL_NS (10 * NS_PER_S)
#define TYPE_OPENMETRICS  "application/openmetrics-text; version=1.0.0; charset=utf-8"

struct export_server {
	struct serve serve;
	struct watch *watch;
	struct export_config *config;
	struct recorder_answers *recorders;
	struct flows_live *flows;
};

/* The weight that a list of media types gives to one; 0: it is not in it. */
static double weight(const char *accept, const char *type)
{
	const char *at = accept ? strcasestr(accept, type) : NULL;
	const char *q;

	if (!at)
		return 0;
	at += strlen(type);
	q = strstr(at, "q=");
	if (!q || q > at + strcspn(at, ","))
		return 1;
	/* No program sets LC_NUMERIC: the decimal point is that of C. */
	return q[2] == '1' ? 1 : q[2] == '0' && q[3] == '.' ? atof(q + 2) : 0;
}

static enum MHD_Result answer_metrics(struct export_server *s, struct MHD_Connection *c)
{
	static serve_headers vary = {MHD_HTTP_HEADER_VARY, "Accept", NULL};
	const char *accept = serve_header(c, MHD_HTTP_HEADER_ACCEPT);
	double open = weight(accept, "application/openmetrics-text");
	struct export_text t = {.openmetrics = open > 0 && open >= weight(accept, "text/plain")};

	watch_lock(s->watch);
	watch_step(s->watch);
	export_all(&t, s->watch, &s->config->limits, s->recorders, s->flows);
	watch_unlock(s->watch);
	if (t.failed || !t.data) {
		free(t.data);
		return serve_text(c, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n", NULL);
	}
	return serve_answer(c, MHD_HTTP_OK, t.openmetrics ? TYPE_OPENMETRICS : TYPE_PLAIN, vary,
		MHD_create_response_from_buffer(t.len, t.data, MHD_RESPMEM_MUST_FREE));
}

static const char page[] =
	"<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\"><title>ringtap export</title>"
	"<meta name=\"viewport\" content=\"width=device-width\"><h1>ringtap export</h1>"
	"<p>This server has the statistics of the DPDK applications of this host for Prometheus, at "
	"<a href=\"/metrics\">/metrics</a>, and never packets.</p>"
	"<p>For a page that draws them, run <code>ringtap web</code> on this host.</p></html>\n";

static enum MHD_Result answer_page(struct MHD_Connection *c)
{
	static serve_headers policy = {"Content-Security-Policy", "default-src 'none'", NULL};

	return serve_answer(c, MHD_HTTP_OK, "text/html; charset=utf-8", policy,
		MHD_create_response_from_buffer(
			sizeof(page) - 1, (void *)(uintptr_t)page, MHD_RESPMEM_PERSISTENT));
}

static enum MHD_Result answer(
	void *ctx, struct MHD_Connection *c, const char *url, const char *method)
{
	struct export_server *s = ctx;
	const char *text;
	unsigned status;

	if (!strcmp(method, MHD_HTTP_METHOD_POST)) {
		status = export_trigger(&s->config->triggers, c, url, &text);
		return serve_text(c, status, text, NULL);
	}
	if (!strcmp(url, "/metrics"))
		return answer_metrics(s, c);
	if (!strcmp(url, "/"))
		return answer_page(c);
	return serve_text(c, MHD_HTTP_NOT_FOUND, "not found; the metrics are at /metrics\n", NULL);
}

int export_serve(struct export_server **out, struct watch *w, struct export_config *config,
	char *url, size_t url_size)
{
	struct export_server *s = calloc(1, sizeof(*s));
	int fd, ret;

	*out = NULL;
	if (!s)
		return -ENOMEM;
	config->serve.command = "export";
	config->serve.answer = answer;
	config->serve.ctx = s;
	/* Alert managers send their alert. */
	config->serve.posts = config->triggers.count;
	fd = serve_listen(&s->serve, &config->serve, url, url_size);
	if (fd < 0) {
		free(s);
		return fd;
	}
	s->watch = w;
	s->config = config;
	ret = recorder_answers_start(&s->recorders, w, NULL);
	if (!ret && config->top_flows)
		ret = flows_live_start(&s->flows, &(struct flows_live_options){.command = "export",
							  .watch = w,
							  .top = config->top_flows,
							  .interval_ns = FLOWS_INTERVAL_NS});
	if (ret) {
		message_print("export: cannot start a thread: %s", start_error(ret));
		close(fd);
	} else {
		ret = serve_start(&s->serve, fd);
	}
	if (ret) {
		flows_live_stop(s->flows);
		recorder_answers_stop(s->recorders);
		free(s);
		return ret;
	}
	*out = s;
	return 0;
}

void export_expire(struct export_server *s)
{
	clients_expire(&s->serve.clients, now_ns(CLOCK_MONOTONIC));
}

void export_stop(struct export_server *s)
{
	if (!s)
		return;
	serve_stop(&s->serve);
	flows_live_stop(s->flows);
	recorder_answers_stop(s->recorders);
	free(s);
}
