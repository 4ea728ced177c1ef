/* SPDX-License-Identifier: MIT */
#ifndef SB_SYNC_REMOTE_DOCTOR_H
#define SB_SYNC_REMOTE_DOCTOR_H

#include <sb/cancel.h>
#include <sbsync/doctor.h>

struct sb_remote_opts;

/*
 * Checks everything a sync with `path` on that machine needs. Returns how many checks are bad;
 * errors only for what is wrong here (memory, cancel).
 */
int sb_doctor_run(const struct sb_remote_opts *opts, const char *path, sb_deadline d,
	sb_doctor_fn fn, void *arg, struct sb_error *err);

#endif
