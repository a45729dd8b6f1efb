/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that keeps the packets: nothing that takes long may hold it up. */
#include <errno.h>
#include <unistd.h>

#include "common/atomics.h"
#include "flight.h"
#include "keeper.h"

static void *keep(void *arg)
{
	struct flight *f = arg;
	const uint64_t one = 1;
	int ret;

	do {
		ret = ringtap_capture_keep(f->cap, -1);
	} while (!ret && !rt_load(&f->stop_keeper));
	f->keeper_error = ret;
	/* Pairs with the acquire in record(): keeper_error. */
	rt_store_release(&f->keeper_ended, 1);
	(void)!write(f->wake_fd, &one, sizeof(one));
	return NULL;
}

int keeper_start(struct flight *f)
{
	/* Here once, so that windows can be made from now on. */
	int ret = ringtap_capture_keep(f->cap, 0);

	return ret && ret != -EPIPE ? ret : -pthread_create(&f->keeper, NULL, keep, f);
}

void keeper_stop(struct flight *f)
{
	rt_store(&f->stop_keeper, 1);
	ringtap_capture_break(f->cap);
	pthread_join(f->keeper, NULL);
}
