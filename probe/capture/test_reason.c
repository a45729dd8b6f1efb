/* SPDX-License-Identifier: BSD-3-Clause */
#include "ringtap/reason.h"
#include "test_reason.h"

#ifdef TEST_LIES
/* Notes that lead out of the memory of the object, to themselves, and to an odd address; and
 * TEST_BROKEN: that are longer than the segment. */
__asm__(".pushsection .note.ringtap,\"a\",\"note\"\n"
	".4byte 8, 8, 1\n.asciz \"ringtap\"\n.8byte 0x7ffffffffff0\n"
	".4byte 8, 8, 1\n.asciz \"ringtap\"\n.8byte 0\n"
	".4byte 8, 8, 1\n.asciz \"ringtap\"\n.8byte ringtap_reason_here + 4 - .\n"
	".4byte 8, 4, 1\n.asciz \"ringtap\"\n.4byte 0\n"
	".4byte 8, 8, 2\n.asciz \"ringtap\"\n.8byte 0\n"
#ifdef TEST_BROKEN
	".4byte 0xfffffff0, 0xfffffff0, 1\n"
#endif
	".popsection\n");
#endif

void test_give(struct rte_mbuf *m, const char *reason)
{
	ringtap_reason(m, reason);
}

int test_wanted(void)
{
	return ringtap_reason_wanted();
}
