/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_PROCID_H
#define SB_BASE_PROCID_H

#include <stdint.h>
#include <sys/types.h>

/*
 * A process named so that nobody else can be meant later: its number, when it began, and the boot
 * of the machine that both belong to.
 */

/* When it began, in clock ticks since boot. 0: it is not there, or has ended and is not reaped. */
int64_t sb_procid_start(pid_t pid);

#define SB_PROCID_BOOT_SIZE 40
/* Names the boot of this machine; "" where the kernel does not tell. Returns `out`. */
const char *sb_procid_boot(char out[SB_PROCID_BOOT_SIZE]);

#endif
