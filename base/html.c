/* SPDX-License-Identifier: BSD-3-Clause */
#include "html.h"

void html_text(FILE *f, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '<': fputs("&lt;", f); break;
		case '>': fputs("&gt;", f); break;
		case '&': fputs("&amp;", f); break;
		case '"': fputs("&quot;", f); break;
		default: fputc(*text, f);
		}
	}
}
