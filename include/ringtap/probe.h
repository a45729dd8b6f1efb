/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libringtap-probe, link-in use: for static builds and applications started with
 * --no-telemetry. Applications that load the probe with EAL's -d need none of this.
 */
#ifndef RINGTAP_PROBE_H
#define RINGTAP_PROBE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Opens the control socket `ringtap.sock` in the DPDK runtime folder and starts the control
 * thread. Call it after rte_eal_init(), from any thread. Nothing is hooked until a reader
 * attaches. Returns 0, or -errno: -EALREADY (running), -ENOTSUP (no runtime folder, or a
 * secondary process), … */
int ringtap_probe_start(void);

/* Ends every session, removes all hooks, stops the control thread and removes the socket.
 * Returns when done. No-op if it was not started. */
void ringtap_probe_stop(void);

#ifdef __cplusplus
}
#endif

#endif
