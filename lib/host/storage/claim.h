/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_STORAGE_CLAIM_H
#define SB_HOST_STORAGE_CLAIM_H

#include <sb/error.h>

/*
 * Makes this process the only host of the sessions beneath the directory `root`, until it closes
 * the descriptor that is returned: two hosts with two databases would each take the other's
 * sessions for left-overs. SB_E_LOCKED when another has them. Needs no right but to read it.
 */
int sb_claim_lock(const char *root, struct sb_error *err);

#endif
