/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket of a recorder, in its application's runtime folder: every connection gets one JSON
 * document, see status.c. Only the recorder's user and root can connect. */
#ifndef RINGTAP_RECORDER_ASK_H
#define RINGTAP_RECORDER_ASK_H

#include <stdbool.h>

#include <jansson.h>

#define ASK_CONDITIONS_MAX 33 /* conditions in a document */

/* ---- the recorder's end */

/* A socket in the folder of an application (its address: "#1" and the like are cut off). The
 * descriptor, or -errno. Removes sockets that recorders have left there that were killed. */
int ask_listen(const char *dir);
/* Answers all that have connected; does not wait for them. document: JSON text. 0, or -errno: one
 * that has connected cannot be answered now. */
int ask_answer(int fd, const char *document);
/* Are there any? */
int ask_is_waiting(int fd);
void ask_close(int fd, const char *dir);

/* ---- the other end */

/* Adds the documents of the recorders of an application to a list. app: its name, by which
 * recorders of other applications in the same folder are left out, and so is what a recorder of
 * root, this user or the folder's owner does not answer. All of them together get timeout_ms.
 * False: some did not answer within. */
bool ask_recorders(json_t *list, const char *dir, const char *app, int timeout_ms);

#endif
