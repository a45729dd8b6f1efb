/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "controls.h"

static FILE *terminal;
static bool closed;

void controls_replace(struct controls *c, char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char b = (unsigned char)text[i];
		bool inside = c->more && (b & 0xc0) == 0x80;
		bool c1 = b >= 0x80 && b < 0xa0 && (!inside || c->last == 0xc2);

		c->more = inside ? c->more - 1 : b >= 0xf0 ? 3 : b >= 0xe0 ? 2 : b >= 0xc0 ? 1 : 0;
		c->last = b;
		if (c1 && inside && i)
			text[i - 1] = '?';
		if (c1 || (b < ' ' && b != '\n' && b != '\t') || b == 0x7f)
			text[i] = '?';
	}
}

/* Returns how much was written; less than len is an error to stdio. */
static ssize_t put(void *cookie, const char *data, size_t len)
{
	static struct controls state;
	char text[4096];
	size_t done = 0;
	ssize_t n;

	for (; done < len; done += (size_t)n) {
		size_t part = len - done < sizeof(text) ? len - done : sizeof(text);
		struct controls before = state;

		memcpy(text, data + done, part);
		controls_replace(&state, text, part);
		n = write(STDOUT_FILENO, text, part);
		if (n == (ssize_t)part)
			continue;
		state = before;
		closed = closed || (n < 0 && errno == EPIPE);
		if (n < 0)
			break;
		controls_replace(&state, memcpy(text, data + done, (size_t)n), (size_t)n);
	}
	return (ssize_t)done;
}

void controls_guard_stdout(void)
{
	FILE *f = fopencookie(NULL, "w", (cookie_io_functions_t){.write = put});

	if (!f)
		return;
	signal(SIGPIPE, SIG_IGN);
	setvbuf(f, NULL, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, BUFSIZ);
	terminal = stdout;
	stdout = f;
}

bool controls_closed(void)
{
	return closed;
}

FILE *controls_terminal(void)
{
	return terminal ? terminal : stdout;
}
