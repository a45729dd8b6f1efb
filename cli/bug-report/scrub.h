/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes names and addresses out of a text that is to be published. */
#ifndef RINGTAP_CLI_BUG_REPORT_SCRUB_H
#define RINGTAP_CLI_BUG_REPORT_SCRUB_H

#include <jansson.h>
#include <regex.h>
#include <stdbool.h>

struct scrub {
	json_t *homes, *names; /* what stands for each */
	regex_t users, addresses;
};

/* 0 or -ENOMEM. Free with scrub_free() in any case. */
int scrub_init(struct scrub *s);
void scrub_free(struct scrub *s);
/* From here on, other stands for this name, wherever it is a whole word. */
void scrub_name(struct scrub *s, const char *name, const char *other);
/* From here on, HOME stands for this folder, which may be a link. Folders below one that is called
 * home need no call: they have the names of users. */
void scrub_home(struct scrub *s, const char *folder);
/* The text without these names and folders, and with ADDRESS for Ethernet, IP and memory addresses.
 * NULL: null. */
json_t *scrub_text(const struct scrub *s, const char *text);

#endif
