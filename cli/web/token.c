/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "serve/serve.h"
#include "token.h"

#define BEARER "Bearer "

static int make_random(struct token *t)
{
	unsigned char bytes[24];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(t->text + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/* Characters that need no escape in a URL and in a cookie. */
static bool is_token(const char *text)
{
	size_t len = strlen(text);

	return len >= TOKEN_MIN && len <= TOKEN_MAX &&
	       text[strspn(text,
		       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")] == '\0';
}

static int write_file(struct token *t, const char *file)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int ret = fd < 0 ? -errno : make_random(t);

	if (!ret && dprintf(fd, "%s\n", t->text) < 0)
		ret = -errno;
	if (fd >= 0)
		close(fd);
	if (fd >= 0 && ret)
		unlink(file); /* the next start would refuse a part of it */
	return ret;
}

/* Others must not have it: -EACCES; -EPERM: another user has made it. */
static int read_file(struct token *t, int fd)
{
	char text[TOKEN_MAX + 2] = "";
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_mode & 077 || !S_ISREG(st.st_mode))
		return -EACCES;
	if (st.st_uid && st.st_uid != geteuid())
		return -EPERM;
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	text[strcspn(text, "\n")] = '\0';
	if (!is_token(text))
		return -EINVAL;
	memcpy(t->text, text, strlen(text) + 1);
	return 0;
}

static int token_of_file(struct token *t, const char *file)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK), ret;

	if (fd < 0 && errno == ENOENT)
		return write_file(t, file);
	ret = fd < 0 ? -errno : read_file(t, fd);
	if (fd >= 0)
		close(fd);
	return ret;
}

int token_make(struct token *t, const char *file)
{
	int ret = file ? token_of_file(t, file) : make_random(t);

	if (!ret)
		return 0;
	if (!file)
		message_print("web: the system gives no random bytes: %s", strerror(-ret));
	else if (ret == -EACCES)
		message_print("web: --token-file %s: it is not a file that only its owner can "
			      "read; make it so by chmod 600",
			file);
	else if (ret == -EPERM)
		message_print("web: --token-file %s: it belongs to another user, which knows the "
			      "token; give a file of this user",
			file);
	else if (ret == -EINVAL)
		message_print("web: --token-file %s: its first line is not %d to %d letters, "
			      "digits, - and _; remove the file, and a token is made",
			file, TOKEN_MIN, TOKEN_MAX);
	else
		message_print("web: --token-file %s: %s; give a file that can be read or made",
			file, strerror(-ret));
	return ret;
}

void token_set_port(struct token *t, unsigned port)
{
	snprintf(t->cookie, sizeof(t->cookie), "ringtap-%u", port);
}

void token_header(const struct token *t, char *text, size_t size)
{
	snprintf(text, size, "%s=%s; HttpOnly; SameSite=Strict; Path=/", t->cookie, t->text);
}

/* In a time that does not depend on where they differ. */
bool token_is(const struct token *t, const char *text)
{
	size_t len = strlen(t->text), given = text ? strlen(text) : 0;
	unsigned char differs = len != given || !len;

	for (size_t i = 0; i < len && given; i++)
		differs |= (unsigned char)(t->text[i] ^ text[i % given]);
	return !differs;
}

bool token_in_url(const struct token *t, struct MHD_Connection *c)
{
	return token_is(t, MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "token"));
}

bool token_shown(const struct token *t, struct MHD_Connection *c)
{
	const char *bearer = serve_header(c, MHD_HTTP_HEADER_AUTHORIZATION);

	if (bearer && !strncasecmp(bearer, BEARER, strlen(BEARER)))
		return token_is(t, bearer + strlen(BEARER));
	return token_is(t, MHD_lookup_connection_value(c, MHD_COOKIE_KIND, t->cookie));
}

bool token_same_origin(const char *origin, const char *host, bool cookie)
{
	/* https: of a proxy, which passes the header Host on. */
	static const char *const schemes[] = {"http://", "https://"};

	if (!origin)
		return !cookie; /* browsers send it with each POST */
	for (size_t i = 0; host && i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		size_t len = strlen(schemes[i]);

		if (!strncmp(origin, schemes[i], len) && !strcasecmp(origin + len, host))
			return true;
	}
	return false;
}
