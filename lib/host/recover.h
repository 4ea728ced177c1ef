/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_RECOVER_H
#define SB_HOST_RECOVER_H

#include <sb/host.h>

/*
 * Brings back the sessions of the last run and finishes what it left half done. Once, before the
 * host is open.
 */
int sb_host_recover(struct sb_host *h, struct sb_error *err);

#endif
