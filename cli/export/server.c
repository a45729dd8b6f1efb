/* SPDX-License-Identifier: BSD-3-Clause */
/* The endpoint. Prometheus selects the format by the Accept header. */
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clients.h"
#include "server.h"
#include "base/util.h"

#define SILENCE_S     5
#define REQUEST_BYTES 8192
#define BODY_BYTES    65536 /* body of a POST, which is not read: alert managers send their alert */

#define TYPE_PLAIN       "text/plain; version=0.0.4; charset=utf-8"
#define TYPE_OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"

struct export_server {
	struct MHD_Daemon *daemon;
	struct watch *watch;
	struct export_config *config;
	struct export_recorders *recorders;
	struct clients clients;
	char host[256]; /* address of --listen */
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

static enum MHD_Result answer(struct MHD_Connection *c, unsigned status, const char *type,
	const char *name, const char *value, struct MHD_Response *r)
{
	enum MHD_Result ret = MHD_NO;

	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (name)
		MHD_add_response_header(r, name, value);
	ret = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return ret;
}

static enum MHD_Result answer_text(struct MHD_Connection *c, unsigned status, const char *text,
	const char *name, const char *value)
{
	return answer(c, status, "text/plain; charset=utf-8", name, value,
		MHD_create_response_from_buffer(
			strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT));
}

static enum MHD_Result answer_metrics(struct export_server *s, struct MHD_Connection *c)
{
	const char *accept =
		MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	double open = weight(accept, "application/openmetrics-text");
	struct export_text t = {.openmetrics = open > 0 && open >= weight(accept, "text/plain")};

	watch_lock(s->watch);
	watch_step(s->watch);
	export_all(&t, s->watch, &s->config->limits, s->recorders);
	watch_unlock(s->watch);
	if (t.failed || !t.data) {
		free(t.data);
		return answer_text(
			c, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n", NULL, NULL);
	}
	return answer(c, MHD_HTTP_OK, t.openmetrics ? TYPE_OPENMETRICS : TYPE_PLAIN,
		MHD_HTTP_HEADER_VARY, "Accept",
		MHD_create_response_from_buffer(t.len, t.data, MHD_RESPMEM_MUST_FREE));
}

/* *state counts the bytes of the body, and one. */
static enum MHD_Result answer_post(struct export_server *s, struct MHD_Connection *c,
	const char *url, size_t *size, void **state)
{
	const char *text;
	unsigned status;

	if (!*state) {
		*state = (void *)(uintptr_t)1;
		return MHD_YES;
	}
	if (*size) {
		*state = (void *)((uintptr_t)*state + *size);
		*size = 0;
		return (uintptr_t)*state > BODY_BYTES ? MHD_NO : MHD_YES;
	}
	status = export_trigger(&s->config->triggers, c, url, &text);
	return answer_text(c, status, text, NULL, NULL);
}

/* When all of it is read, as an answer before would cost the connection. */
static enum MHD_Result refuse_host(struct MHD_Connection *c, size_t *size, void **state)
{
	bool ended = *state && !*size;

	*state = c;
	*size = 0;
	return ended ? answer_text(c, MHD_HTTP_FORBIDDEN,
			       "the header Host is not an address or name of this host; see "
			       "--host\n",
			       NULL, NULL)
		     : MHD_YES;
}

static enum MHD_Result handle(void *arg, struct MHD_Connection *c, const char *url,
	const char *method, const char *version, const char *data, size_t *size, void **state)
{
	struct export_server *s = arg;

	if (!clients_is_host(MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST),
		    s->config->hosts, s->config->host_count))
		return refuse_host(c, size, state);
	if (s->config->triggers.count && !strcmp(method, MHD_HTTP_METHOD_POST))
		return answer_post(s, c, url, size, state);
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return answer_text(c, MHD_HTTP_METHOD_NOT_ALLOWED,
			"only GET and HEAD are supported\n", MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	/* An answer before the request is read to its end would cost the connection. */
	if (!*state) {
		*state = s;
		return MHD_YES;
	}
	if (!strcmp(url, "/metrics"))
		return answer_metrics(s, c);
	if (!strcmp(url, "/"))
		return answer_text(c, MHD_HTTP_OK, "ringtap: see /metrics\n", NULL, NULL);
	return answer_text(
		c, MHD_HTTP_NOT_FOUND, "not found; the metrics are at /metrics\n", NULL, NULL);
}

/* Mistakes of clients are not printed. */
static void quiet(void *arg, const char *format, va_list ap)
{
}

static int split(const char *listen, char *host, size_t size, const char **port)
{
	const char *colon = strrchr(listen, ':');
	size_t len;

	if (!colon) {
		*port = listen;
		return snprintf(host, size, "127.0.0.1") < 0 ? -EINVAL : 0;
	}
	*port = colon + 1;
	len = (size_t)(colon - listen);
	if (len && listen[0] == '[' && listen[len - 1] == ']') {
		listen++;
		len -= 2;
	}
	if (len >= size)
		return -EINVAL;
	memcpy(host, listen, len);
	host[len] = '\0';
	return 0;
}

static int open_socket(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, CLIENTS_MAX))
		return fd;
	one = errno;
	close(fd);
	return -one;
}

static void describe(int fd, char *url, size_t size)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);
	char host[64], port[16];

	if (getsockname(fd, (struct sockaddr *)&a, &len) ||
		getnameinfo((struct sockaddr *)&a, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV)) {
		snprintf(url, size, "?");
		return;
	}
	snprintf(url, size,
		a.ss_family == AF_INET6 ? "http://[%s]:%s/metrics" : "http://%s:%s/metrics", host,
		port);
}

static const char accepted[] = "give PORT, ADDRESS:PORT, [IPV6]:PORT or :PORT";

/* 0, or -EINVAL after a message. The caller frees *found with freeaddrinfo(). */
static int find_address(const char *listen, struct addrinfo **found)
{
	const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM};
	const char *port;
	uint64_t number;
	char host[256];
	int ret;

	if (split(listen, host, sizeof(host), &port)) {
		message_print("export: --listen %s: the address is too long; %s", listen, accepted);
		return -EINVAL;
	}
	/* getaddrinfo() takes the lower 16 bits of any number. */
	if (parse_number(port, 65535, &number)) {
		message_print("export: --listen %s: '%s' is not a port number from 0 to 65535; %s",
			listen, port, accepted);
		return -EINVAL;
	}
	ret = getaddrinfo(*host ? host : NULL, port, &hints, found);
	if (ret)
		message_print("export: --listen %s: cannot resolve '%s': %s; %s", listen, host,
			gai_strerror(ret), accepted);
	return ret ? -EINVAL : 0;
}

static int listen_at(const char *listen)
{
	struct addrinfo *found = NULL;
	int ret = find_address(listen, &found);

	if (ret)
		return ret;
	ret = open_socket(found);
	if (ret < 0)
		message_print("export: --listen %s: %s; choose another address or port", listen,
			strerror(-ret));
	freeaddrinfo(found);
	return ret;
}

static struct MHD_Daemon *start(struct export_server *s, int fd)
{
	return MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO | MHD_USE_ERROR_LOG,
		0, NULL, NULL, handle, s, MHD_OPTION_EXTERNAL_LOGGER, quiet, NULL,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, CLIENTS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, SILENCE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)REQUEST_BYTES, MHD_OPTION_NOTIFY_CONNECTION, clients_notify, &s->clients,
		MHD_OPTION_NOTIFY_COMPLETED, clients_completed, &s->clients, MHD_OPTION_END);
}

int export_serve(struct export_server **out, struct watch *w, struct export_config *config,
	char *url, size_t url_size)
{
	struct export_server *s = calloc(1, sizeof(*s));
	int fd = s ? listen_at(config->listen) : -ENOMEM, ret;
	const char *port;

	*out = NULL;
	if (fd < 0) {
		free(s);
		return fd;
	}
	s->watch = w;
	s->config = config;
	if (!split(config->listen, s->host, sizeof(s->host), &port) && *s->host)
		config->hosts[config->host_count++] = s->host;
	pthread_mutex_init(&s->clients.lock, NULL);
	describe(fd, url, url_size);
	ret = export_recorders_start(&s->recorders, w);
	s->daemon = ret ? NULL : start(s, fd);
	if (!s->daemon) {
		message_print(
			"export: the HTTP server does not start: %s", strerror(ret ? -ret : errno));
		export_recorders_stop(s->recorders);
		close(fd);
		free(s);
		return -EIO;
	}
	*out = s;
	return 0;
}

void export_expire(struct export_server *s)
{
	clients_expire(&s->clients, now_ns(CLOCK_MONOTONIC));
}

void export_stop(struct export_server *s)
{
	if (!s)
		return;
	MHD_stop_daemon(s->daemon);
	export_recorders_stop(s->recorders);
	free(s);
}
