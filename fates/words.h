/* SPDX-License-Identifier: BSD-3-Clause */
/* Explanations of the words that head tables of fates. */
#ifndef RINGTAP_FATES_WORDS_H
#define RINGTAP_FATES_WORDS_H

/* A deep copy has no id: those of Open vSwitch for kernel ports, and of packets that it floods. */
#define FATES_NOT_OFFERED "not offered: freed or kept without being sent (a copy may have been)"
#define FATES_WORDS                                                       \
	"offered: passed to a TX function; " FATES_NOT_OFFERED "; open: " \
	"neither sent nor freed yet; unknown: ringtap cannot tell"

#endif
