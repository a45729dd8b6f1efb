/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_mbuf_dyn.h>

#include "common/atomics.h"
#include "common/mbuf_history.h"
#include "common/proto.h"
#include "mbuf_field.h"
#include "secondary.h"

static int refuse(const char *what, int code, char *err)
{
	if (rt_is_secondary() && (code == EPERM || code == ENOENT)) {
		snprintf(err, RT_TEXT_LEN,
			"%s needs 8 bytes and a flag in mbufs, which only the primary process can "
			"take: request it there first",
			what);
		return -ENOTSUP;
	}
	snprintf(err, RT_TEXT_LEN, "%s needs 8 bytes and a flag in the application's mbufs: %s",
		what, code == ENOENT || code == ENOSPC ? "all are taken" : strerror(code));
	return code ? -code : -EIO;
}

int rt_mbuf_field_register(
	struct rt_mbuf_field *f, const char *field, const char *flag, const char *what, char *err)
{
	struct rte_mbuf_dynfield bytes = {.size = sizeof(uint64_t), .align = sizeof(uint64_t)};
	struct rte_mbuf_dynflag one = {0};
	int offset, bit;

	if (f->flag)
		return 0;
	snprintf(bytes.name, sizeof(bytes.name), "%s", field);
	snprintf(one.name, sizeof(one.name), "%s", flag);
	offset = rte_mbuf_dynfield_register(&bytes);
	if (offset < 0)
		return refuse(what, rte_errno, err);
	bit = rte_mbuf_dynflag_register(&one);
	if (bit < 0)
		return refuse(what, rte_errno, err);
	rt_store(&f->offset, offset);
	rt_store(&f->flag, 1ull << bit);
	return 0;
}

uint32_t rt_mbuf_history_offset(void)
{
	struct rte_mbuf_dynfield field = {.size = 0};
	int offset = rte_mbuf_dynfield_lookup(RT_HISTORY_FIELD, &field);

	if (offset < 0 || field.size != sizeof(uint64_t) || offset % (int)sizeof(uint64_t))
		return 0;
	return (uint32_t)offset;
}
