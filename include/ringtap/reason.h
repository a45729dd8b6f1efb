/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why an application drops a packet, for C11 and C++. This header is all that it needs: no library,
 * and no probe at build time.
 *
 *   ringtap_reason(m, "acl");
 *   rte_pktmbuf_free(m);
 *
 * `ringtap drops`, `flows`, `explain` and incidents show the text as the reason of a packet that is
 * not sent. Tracers have it as the USDT event ringtap:reason, with the mbuf and the text. Until a
 * reader of fates or a tracer listens, a call costs a load and a branch that is not taken.
 */
#ifndef RINGTAP_REASON_H
#define RINGTAP_REASON_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rte_mbuf;

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))

/* One for each program and shared object. The probe finds it by an ELF note. */
struct ringtap_reason_site {
	union {
		uint32_t on; /* not 0: a reader or a tracer listens */
		struct {
			uint16_t tracers; /* USDT semaphore: the kernel counts */
			uint16_t probe;
		} by;
	} listens;
	uint32_t reserved;
	void (*note)(struct rte_mbuf *m, const char *reason); /* the probe's; stays mapped */
};

extern struct ringtap_reason_site ringtap_reason_here __attribute__((visibility("hidden")));
/* Tracers write to .probes of the file's mapping. */
__attribute__((weak, used, section(".probes"))) struct ringtap_reason_site ringtap_reason_here = {
	{0}, 0, 0};

/* The notes are there once for each file that calls ringtap_reason(). The first one is allocated:
 * its description is the distance to the site, so that it needs no relocation. */
__attribute__((noinline, cold, unused)) static void ringtap_reason_report(
	struct rte_mbuf *m, const char *reason)
{
	void (*note)(struct rte_mbuf *, const char *) =
		__atomic_load_n(&ringtap_reason_here.note, __ATOMIC_ACQUIRE);

	__asm__ __volatile__(".pushsection .note.ringtap,\"a\",\"note\"\n"
			     "	.balign 4\n"
			     "	.4byte 8, 8, 1\n"
			     "	.asciz \"ringtap\"\n"
			     "	.8byte ringtap_reason_here - .\n"
			     "	.popsection\n"
			     "990:	nop\n"
			     "	.pushsection .note.stapsdt,\"\",\"note\"\n"
			     "	.balign 4\n"
			     "	.4byte 992f-991f, 994f-993f, 3\n"
			     "991:	.asciz \"stapsdt\"\n"
			     "992:	.balign 4\n"
			     "993:	.8byte 990b, _.stapsdt.base, ringtap_reason_here\n"
			     "	.asciz \"ringtap\"\n"
			     "	.asciz \"reason\"\n"
			     "	.asciz \"8@%[m] 8@%[reason]\"\n"
			     "994:	.balign 4\n"
			     "	.popsection\n"
			     "	.ifndef _.stapsdt.base\n"
			     "	.pushsection "
			     ".stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
			     "	.weak _.stapsdt.base\n"
			     "	.hidden _.stapsdt.base\n"
			     "_.stapsdt.base: .space 1\n"
			     "	.size _.stapsdt.base, 1\n"
			     "	.popsection\n"
			     "	.endif\n"
			     :
			     : [m] "r"(m), [reason] "r"(reason));
	if (note)
		note(m, reason);
}

/* False: no reader or tracer listens, and ringtap_reason() does nothing; for loops over many
 * packets. */
static inline int ringtap_reason_wanted(void)
{
	return __builtin_expect(
		__atomic_load_n(&ringtap_reason_here.listens.on, __ATOMIC_RELAXED) != 0, 0);
}

/* The application drops the packet of this mbuf, and frees it next. reason: a short text of ASCII
 * (the first 63 characters are shown), NULL: none. Of several reasons the last one counts. The
 * first 254 texts of a session are distinguished. */
static inline void ringtap_reason(struct rte_mbuf *m, const char *reason)
{
	if (ringtap_reason_wanted())
		ringtap_reason_report(m, reason);
}

#else

static inline int ringtap_reason_wanted(void)
{
	return 0;
}

static inline void ringtap_reason(struct rte_mbuf *m, const char *reason)
{
	(void)m;
	(void)reason;
}

#endif

#ifdef __cplusplus
}
#endif

#endif
