/* SPDX-License-Identifier: BSD-3-Clause */
/* Other commands run as processes of their own: a report is written also where they crash or hang.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "ask.h"
#include "base/child.h"
#include "base/util.h"

#define WORDS_MAX   80
#define PATIENCE_NS (60 * NS_PER_S) /* applications that do not answer cost some seconds each */

/* The doctor ends with STATUS_FAULT where it has found something. */
static bool is_whole(const struct child *c)
{
	return WIFEXITED(c->status) &&
	       (WEXITSTATUS(c->status) == STATUS_OK || WEXITSTATUS(c->status) == STATUS_FAULT);
}

static void explain(const struct child *c, bool ended, const char *word, char problem[ASK_PROBLEM])
{
	char end[CHILD_END_LEN];

	if (!ended)
		snprintf(problem, ASK_PROBLEM, "%s: no end after %d s", word,
			(int)(PATIENCE_NS / NS_PER_S));
	else if (!is_whole(c))
		snprintf(problem, ASK_PROBLEM, "%s: %s: %s", word, child_end(c, end),
			c->text[1].data ? c->text[1].data : "no message");
}

char *bug_report_ask(const char *const words[], char problem[ASK_PROBLEM])
{
	const char *argv[WORDS_MAX + 2] = {"/proc/self/exe"};
	uint64_t now = now_ns(CLOCK_MONOTONIC), until = now + PATIENCE_NS;
	struct child c;
	char *text;
	int ret;

	*problem = '\0';
	for (unsigned i = 0; i < WORDS_MAX && words[i]; i++)
		argv[i + 1] = words[i];
	ret = child_start(
		&c, argv, &(struct child_config){.flags = CHILD_READ_OUT | CHILD_READ_ERR});
	for (; !ret && !c.ended && now < until; now = now_ns(CLOCK_MONOTONIC))
		child_watch(&c, -1, -1, until - now);
	if (ret)
		snprintf(problem, ASK_PROBLEM, "%s: cannot start: %s", words[0], start_error(ret));
	else
		explain(&c, c.ended, words[0], problem);
	text = c.text[0].data;
	c.text[0].data = NULL;
	child_free(&c);
	return text;
}
