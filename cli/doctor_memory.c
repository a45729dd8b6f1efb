/* SPDX-License-Identifier: BSD-3-Clause */
/* The rule about where received packets lie. */
#include "doctor.h"
#include "doctor_limits.h"

void rule_scattered(const struct examination *e, struct diagnosis *d)
{
}
