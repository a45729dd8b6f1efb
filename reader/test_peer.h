/* SPDX-License-Identifier: BSD-3-Clause */
/* An application that is none: listens on the sockets of a runtime folder of its own and answers
 * whatever a test wants, out of a thread. */
#ifndef RINGTAP_READER_TEST_PEER_H
#define RINGTAP_READER_TEST_PEER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/proto.h"
#include "test_session.h"

struct test_peer;

/* What the peer does with a message of this type. False: hang up. */
typedef bool (*test_answer_fn)(struct test_peer *p, int sock, uint16_t type);

struct test_peer {
	char dir[64];
	test_answer_fn answer;         /* NULL: test_peer_answer() */
	struct test_session *session;  /* moves into the memory of each RT_MSG_MEMORY */
	int stats_fd;                  /* given out for RT_MSG_MONITOR */
	struct rt_msg_monitor request; /* the last RT_MSG_MONITOR */
	const char *telemetry;         /* answer of the telemetry socket; NULL: no such socket */
	bool telemetry_wakes;          /* the probe's socket appears when telemetry is asked */
	const char *socket;            /* name of the probe's; NULL: RT_SOCKET_NAME */
	bool telemetry_silent;         /* it greets, and that is all */
	int listener, telemetry_listener, quit[2];
	int fds[RT_FD_COUNT]; /* came with the message that is being answered */
	unsigned fd_count;
	uint32_t requests; /* connections of the telemetry socket; atomic */
	pthread_t thread;
};

/* Starts it with what its first fields say. awake: the probe's socket is there. Aborts on errors
 * of the machine. */
void test_peer_start(struct test_peer *p, bool awake);
void test_peer_stop(struct test_peer *p);
/* The two halves of stopping: like a killed application it leaves its folder behind at first. */
void test_peer_die(struct test_peer *p);
void test_peer_bury(struct test_peer *p);

/* An honest probe's answer. */
bool test_peer_answer(struct test_peer *p, int sock, uint16_t type);
/* A message without a body, or with len bytes behind its header, with these descriptors. */
void test_peer_send(int sock, uint16_t type, const int *fds, unsigned fd_count);

#endif
