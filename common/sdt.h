/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RT_USDT(event, arguments...): a place that perf, bpftrace and debuggers find by its name,
 * provider ringtap. It costs a nop and what it takes to have the arguments in registers, memory or
 * the instruction; an ELF note has its address. Pass values that exist anyway. With
 * _SDT_HAS_SEMAPHORES defined before, each event of the file needs an RT_USDT_SEMAPHORE(), a
 * counter of attached tracers: for arguments that cost anything.
 */
#ifndef RINGTAP_COMMON_SDT_H
#define RINGTAP_COMMON_SDT_H

#ifdef RINGTAP_USDT
#define SDT_USE_VARIADIC
#include <sys/sdt.h>

#define RT_USDT(event, ...) STAP_PROBEV(ringtap, event, __VA_ARGS__)
/* Tools search for this name and this section. */
#define RT_USDT_SEMAPHORE(event) \
	unsigned short ringtap_##event##_semaphore __attribute__((section(".probes")))
#define RT_USDT_LISTENED(event) rt_unlikely(rt_load(&ringtap_##event##_semaphore))
#else
#define RT_USDT(event, ...)      ((void)0)
#define RT_USDT_SEMAPHORE(event) extern unsigned short ringtap_##event##_semaphore
#define RT_USDT_LISTENED(event)  false
#endif

#endif
