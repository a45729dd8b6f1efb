/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "page.h"
#include "web/web_page.h"

/* In JSON '<' is in strings only. Escaped there, no name can end the script that the document is
 * in. */
static int put(const char *text, size_t len, void *f)
{
	const char *end = text + len, *next;

	for (; (next = memchr(text, '<', (size_t)(end - text))); text = next + 1) {
		fwrite(text, 1, (size_t)(next - text), f);
		fputs("\\u003c", f);
	}
	fwrite(text, 1, (size_t)(end - text), f);
	return ferror(f) ? -1 : 0;
}

int web_page_write(json_t *document, FILE *f)
{
	int ret;

	errno = 0;
	fwrite(page_before, 1, sizeof(page_before), f);
	ret = document ? json_dump_callback(document, put, f, JSON_COMPACT | JSON_REAL_PRECISION(9))
		       : -1;
	fwrite(page_after, 1, sizeof(page_after), f);
	json_decref(document);
	return ret || fflush(f) || ferror(f) ? -(errno ? errno : EIO) : 0;
}

int web_page_write_live(FILE *f)
{
	errno = 0;
	fwrite(page_before, 1, PAGE_POLICY_END, f);
	fputs("; connect-src 'self'", f);
	fwrite(page_before + PAGE_POLICY_END, 1, sizeof(page_before) - PAGE_POLICY_END, f);
	fprintf(f, "{\"view\":%d,\"live\":\"events\"}", VIEW_VERSION);
	fwrite(page_after, 1, sizeof(page_after), f);
	return fflush(f) || ferror(f) ? -(errno ? errno : EIO) : 0;
}
