/* SPDX-License-Identifier: BSD-3-Clause */
/* The accessors of the headers as symbols: their bodies, compiled once more, are what programs call
 * that cannot include them. */
#include "export.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the headers have only the bodies */
#define RINGTAP_INLINE EXPORT
#include "ringtap/fates.h"
#include "ringtap/monitor.h"
