/* SPDX-License-Identifier: BSD-3-Clause */
/* A simulated application: a thread listens on the sockets of a runtime folder of its own, and
 * sends the answers that a test defines. */
#ifndef RINGTAP_READER_TEST_PEER_H
#define RINGTAP_READER_TEST_PEER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/proto.h"
#include "ringtap/reader.h"
#include "test_session.h"

struct test_peer;

/* Answers a message of this type. False: close the connection. */
typedef bool (*test_answer_fn)(struct test_peer *p, int sock, uint16_t type);

struct test_peer {
	char dir[64];
	test_answer_fn answer;         /* NULL: test_peer_answer() */
	struct test_session *session;  /* copied to the memory of each RT_MSG_MEMORY */
	int stats_fd;                  /* sent for RT_MSG_MONITOR */
	struct rt_msg_monitor request; /* the last RT_MSG_MONITOR */
	struct rt_msg_open open;       /* the last request of a session */
	struct rt_msg_sample sample;   /* its sample, if it has one */
	struct rt_msg_first first_of;  /* its limit of flows, if it has one */
	uint32_t unknown;              /* RT_OPEN_…: it does not know them */
	uint64_t first; /* bytes of chunks that it requests first; 0: it knows no RT_OPEN_GROWS */
	const char *telemetry;   /* answer of the telemetry socket; NULL: no such socket */
	bool telemetry_wakes;    /* the probe's socket appears with the first telemetry request */
	const char *socket;      /* name of the probe's socket; NULL: RT_SOCKET_NAME */
	bool telemetry_late;     /* it sends the greeting after 20 ms */
	bool telemetry_silent;   /* it sends the greeting only */
	uint32_t left_early;     /* clients that left before the greeting; atomic */
	uint32_t telemetry_busy; /* number of connections that are closed first, without a greeting
				  */
	int listener, telemetry_listener, quit[2];
	int fds[RT_FD_COUNT]; /* received with the current message */
	unsigned fd_count;
	uint32_t requests; /* connections of the telemetry socket; atomic */
	pthread_t thread;
};

/* Starts the peer as the first fields define. awake: the probe's socket exists from the start.
 * Aborts on system errors. */
void test_peer_start(struct test_peer *p, bool awake);
void test_peer_stop(struct test_peer *p);
/* Two steps of stopping: as after a kill, the folder remains after the first. */
void test_peer_die(struct test_peer *p);
void test_peer_bury(struct test_peer *p);

/* A session in a started peer, and a capture that is not attached. attach: attached to all ports,
 * and started. 0 or -errno, for cmocka's set_up. Undo with test_capture_close(). */
int test_capture_open(struct test_session *session, struct test_peer *peer,
	struct ringtap_capture **cap, uint32_t rings, bool attach);
int test_capture_close(
	struct test_session *session, struct test_peer *peer, struct ringtap_capture *cap);

/* Takes a memory of chunks, or refuses it with this text. */
void test_peer_grown(int sock, int code, const char *text);
/* The answer of a correct probe. */
bool test_peer_answer(struct test_peer *p, int sock, uint16_t type);
/* Sends a message without a body, or with len bytes after its header, with these descriptors. */
void test_peer_send(int sock, uint16_t type, const int *fds, unsigned fd_count);

#endif
