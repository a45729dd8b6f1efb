/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_CLI_VERSION_H
#define RINGTAP_CLI_VERSION_H

/* Prints what 'ringtap --version' does: the version and the commit, the ABIs of DPDK that the
 * probe has an object for, the libraries, and the tracers that are installed. */
void version_print(void);

#endif
