/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_PROBE_TEST_PROGRAM_H
#define RINGTAP_PROBE_TEST_PROGRAM_H

#include "common/proto.h"

#define TEST_PROGRAM_LEN 60u

/* A random program of classic BPF, valid. libpcap's scratch memory is not initialized: the program
 * fills it first. */
void test_program(struct rt_insn prog[TEST_PROGRAM_LEN]);

#endif
