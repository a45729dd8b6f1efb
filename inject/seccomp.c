/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "process.h"
#include "seccomp.h"

int rt_judge_seccomp(pid_t pid, char *err, size_t errlen)
{
	char mode[16];

	rt_process_status(pid, "Seccomp", mode, sizeof(mode));
	if (atoi(mode) != 1)
		return 0;
	snprintf(err, errlen, "it runs in strict seccomp mode; start it with -d");
	return -EPERM;
}
