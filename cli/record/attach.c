/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "cli/probe_path.h"
#include "record.h"
#include "base/util.h"

static const char *advice(int error)
{
	switch (error) {
	case -ENODEV: return "see 'ringtap list'";
	case -EACCES: return "run ringtap as the application's user or as root";
	case -ENOMEM: return "try a smaller --ring-size";
	case -EPROTOTYPE: return "use the ringtap that the probe came with";
	default: return "see 'ringtap list'";
	}
}

static int attach(struct recorder *r, const struct target *t)
{
	const char *text;
	int ret = ringtap_capture_attach(r->cap, t->dir, t->wants, t->want_count, &r->cfg->capture);

	if (!ret)
		return 0;
	text = ringtap_capture_error(r->cap);
	if (ret == -EPROTONOSUPPORT)
		say("record: application '%s': it runs without the probe; restart it with -d %s",
			t->name, probe_path());
	else
		say("record: application '%s': %s; %s", t->name,
			text && *text ? text : strerror(-ret), advice(ret));
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
	/* The library checks what the probe says, but our array is ours to guard. */
	if (i->app < r->targets.count && i->target < r->targets.list[i->app].want_count)
		return r->targets.list[i->app].ifaces[i->target];
	return &r->cfg->defaults;
}
