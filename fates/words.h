/* SPDX-License-Identifier: BSD-3-Clause */
/* Explanations of the words that head tables of fates. */
#ifndef RINGTAP_FATES_WORDS_H
#define RINGTAP_FATES_WORDS_H

#define FATES_WORDS                                                                               \
	"offered: passed to a TX function; not offered: freed or kept without being sent; open: " \
	"neither sent nor freed yet; unknown: ringtap cannot tell"

#endif
