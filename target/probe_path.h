/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_TARGET_PROBE_PATH_H
#define RINGTAP_TARGET_PROBE_PATH_H

/* Where ringtap's libraries are: in the build folder that the command runs from, else where they
 * are installed, be they there or not. Static. */

/* The plugin that matches this command. */
const char *probe_path(void);
/* The libpcap drop-in. */
const char *pcap_path(void);
/* The folder where a library called as libpcap leads to it. */
const char *pcap_shim_dir(void);
/* The program that `ringtap host` starts. */
const char *host_path(void);
/* The folder of the programs for bpftrace. */
const char *trace_dir(void);
/* The decoder of ringtap-archive. */
const char *archive_decoder_path(void);
/* The page that ringtap-archive puts its documents into. */
const char *archive_page_path(void);
/* ringtap-archive in the source tree of this build; NULL: it is not there. */
const char *archive_program_path(void);

#endif
