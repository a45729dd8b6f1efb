/* SPDX-License-Identifier: BSD-3-Clause */
/* On its own, as term.h makes macros of words like columns. */
#include <unistd.h>

#include "cli/top/top.h"

#include <curses.h>
#include <term.h>

bool top_can_draw(void)
{
	int error;
	const char *move;

	if (setupterm(NULL, STDOUT_FILENO, &error) == ERR)
		return true; /* an unknown terminal: top_screen() reports it */
	move = tigetstr("cup");
	return move && move != (const char *)-1;
}
