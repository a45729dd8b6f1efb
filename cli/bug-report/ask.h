/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_CLI_BUG_REPORT_ASK_H
#define RINGTAP_CLI_BUG_REPORT_ASK_H

#define ASK_PROBLEM 16384 /* a name that is cut off could not be recognized */

/* Output of this program with these words, NULL at the end. The caller frees it; NULL: nothing.
 * problem: why the output is missing or not whole; "": it is whole. */
char *bug_report_ask(const char *const words[], char problem[ASK_PROBLEM]);

#endif
