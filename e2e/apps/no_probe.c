/* SPDX-License-Identifier: BSD-3-Clause */
/* Instead of the probe, for a ringtap-fwd that is linked without it. */
#include <errno.h>
#include <stdbool.h>

#include "ringtap/probe.h"

int ringtap_probe_start(void)
{
	return -ENOSYS;
}

void ringtap_probe_stop(void)
{
}

int ringtap_probe_port_name(uint16_t port, const char *name)
{
	return -ENOSYS;
}

int ringtap_probe_port_missed(uint16_t port, uint64_t packets)
{
	return -ENOSYS;
}

int ringtap_probe_port_stamped(uint16_t port)
{
	return -ENOSYS;
}

int ringtap_probe_port_source(uint16_t port, const struct ringtap_probe_source *source)
{
	return -ENOSYS;
}

int ringtap_probe_port_count(uint16_t port, const struct ringtap_probe_counts *more)
{
	return -ENOSYS;
}

void ringtap_probe_received_until(uint64_t ns)
{
}
