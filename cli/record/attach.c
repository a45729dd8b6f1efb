/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/which_app.h"
#include "record.h"
#include "base/util.h"

static int attach(struct recorder *r, const struct target *t)
{
	int ret = ringtap_capture_attach(r->cap, t->dir, t->ports, t->port_count, &r->cfg->capture);

	if (ret)
		print_not_attached(r->cfg->command, t->name, ret, ringtap_capture_error(r->cap));
	return ret;
}

int recorder_attach(struct recorder *r)
{
	int ret = 0;

	for (unsigned i = 0; i < r->targets.count && !ret; i++)
		ret = attach(r, &r->targets.list[i]);
	return ret;
}

const struct iface_config *recorder_iface(
	const struct recorder *r, const struct ringtap_interface *i)
{
	/* The library checks the probe's numbers; the bounds of this array are checked here. */
	if (i->app < r->targets.count && i->target < r->targets.list[i->app].port_count)
		return r->targets.list[i->app].ifaces[i->target];
	return &r->cfg->defaults;
}
