/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages. */
#ifndef RINGTAP_BASE_HTML_H
#define RINGTAP_BASE_HTML_H

#include <stdio.h>

/* Text of any origin, such as names that an application chose, as a part of a page: nothing of it
 * is markup. */
void html_text(FILE *f, const char *text);

#endif
