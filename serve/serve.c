/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "serve.h"
#include "common/threads.h"

#define SILENCE_S     5
#define REQUEST_BYTES 8192
#define VANISHED_MS   20000

int serve_add_host(struct serve_options *o, const char *name)
{
	if (!*name)
		return message_fail(-EINVAL,
			"%s: --host '': no name; give one by which clients reach this host",
			o->command);
	if (o->host_count == SERVE_HOSTS_MAX)
		return message_fail(-EINVAL, "%s: --host %s: more than %d names; give fewer",
			o->command, name, SERVE_HOSTS_MAX);
	o->hosts[o->host_count++] = name;
	return 0;
}

/* ---- answers */

enum MHD_Result serve_answer(struct MHD_Connection *c, unsigned status, const char *type,
	const char *const *headers, struct MHD_Response *r)
{
	enum MHD_Result ret;

	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	for (; headers && *headers; headers += 2)
		MHD_add_response_header(r, headers[0], headers[1]);
	ret = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return ret;
}

enum MHD_Result serve_text(
	struct MHD_Connection *c, unsigned status, const char *text, const char *const *headers)
{
	return serve_answer(c, status, "text/plain; charset=utf-8", headers,
		MHD_create_response_from_buffer(
			strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT));
}

const char *serve_header(struct MHD_Connection *c, const char *name)
{
	return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* ---- requests */

static bool is_method(const char *method, const char *name)
{
	return !strcmp(method, name);
}

static enum MHD_Result answer(
	struct serve *s, struct MHD_Connection *c, const char *url, const char *method)
{
	static serve_headers get = {MHD_HTTP_HEADER_ALLOW, "GET, HEAD", NULL};
	const struct serve_options *o = s->options;

	if (!clients_is_host(serve_header(c, MHD_HTTP_HEADER_HOST), o->hosts, o->host_count))
		return serve_text(c, MHD_HTTP_FORBIDDEN,
			"the header Host is not an address or name of this host; see --host\n",
			NULL);
	if (!is_method(method, MHD_HTTP_METHOD_GET) && !is_method(method, MHD_HTTP_METHOD_HEAD) &&
		!(o->posts && is_method(method, MHD_HTTP_METHOD_POST)))
		return serve_text(
			c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are supported\n", get);
	return o->answer(o->ctx, c, url, method);
}

/* An answer before the request is read to its end would cost the connection. *state counts the
 * bytes of the body, and one. */
static enum MHD_Result handle(void *arg, struct MHD_Connection *c, const char *url,
	const char *method, const char *version, const char *data, size_t *size, void **state)
{
	if (!*state) {
		*state = (void *)(uintptr_t)1;
		return MHD_YES;
	}
	if (*size) {
		*state = (void *)((uintptr_t)*state + *size);
		*size = 0;
		return (uintptr_t)*state > SERVE_BODY_BYTES ? MHD_NO : MHD_YES;
	}
	return answer(arg, c, url, method);
}

/* Mistakes of clients are not printed. */
static void quiet(void *arg, const char *format, va_list ap)
{
}

static void completed(
	void *arg, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode code)
{
	struct serve *s = arg;

	clients_completed(&s->clients, c, state, code);
	if (s->options->ended)
		s->options->ended(s->options->ctx, c);
}

int serve_listen(struct serve *s, struct serve_options *o, char *url, size_t size)
{
	int fd = address_listen(o->command, o->listen, CLIENTS_MAX);

	*s = (struct serve){.options = o};
	if (fd < 0)
		return fd;
	address_host(o->listen, s->host);
	if (*s->host)
		o->hosts[o->host_count++] = s->host;
	s->port = address_url(fd, url, size);
	pthread_mutex_init(&s->clients.lock, NULL);
	rt_cond_init(&s->clients.changed);
	s->clients.vanished_ms = VANISHED_MS;
	return fd;
}

/* By poll(): with edges of epoll libmicrohttpd 0.9.75 misses the end of a client whose answer waits
 * for room, and keeps it as long as one that is silent. */
int serve_start(struct serve *s, int fd)
{
	s->daemon = MHD_start_daemon(
		MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME, 0,
		NULL, NULL, handle, s, MHD_OPTION_EXTERNAL_LOGGER, quiet, NULL,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, CLIENTS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT,
		s->options->silence_s ? s->options->silence_s : SILENCE_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES,
		MHD_OPTION_NOTIFY_CONNECTION, clients_notify, &s->clients,
		MHD_OPTION_NOTIFY_COMPLETED, completed, s, MHD_OPTION_END);
	if (s->daemon)
		return 0;
	message_print(
		"%s: the HTTP server does not start: %s", s->options->command, strerror(errno));
	close(fd);
	return -EIO;
}

/* While libmicrohttpd 0.9.75 stops, a request that it refuses itself ends the process: it has no
 * response then, and takes it for one. So it has no connection when it stops. */
void serve_stop(struct serve *s)
{
	int fd;

	if (!s->daemon)
		return;
	fd = MHD_quiesce_daemon(s->daemon);
	clients_end(&s->clients);
	MHD_stop_daemon(s->daemon);
	if (fd >= 0)
		close(fd);
	s->daemon = NULL;
}
