/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_RUN_PRIV_H
#define SBSYNC_RUN_PRIV_H

#include <sync/run/run.h>

/* The content that `plan` brings is what progress counts from now on. */
void sb_run_expect(struct sb_run *run, const struct sb_plan *plan);
/* Tells the progress callback; `arg` is the run. */
void sb_run_progress(uint64_t files, uint64_t bytes, void *arg);

/* Scans the local root under run->rules. */
int sb_run_scan_local(struct sb_run *run, bool source, struct sb_error *err);

/* Waits for the end of the early scan and gives its result. */
int sb_run_early_join(struct sb_run *run, struct sb_error *err);
/* The rules that were asked for, without what an early scan has added meanwhile. */
const struct sb_rules *sb_run_early_rules(const struct sb_run *run);

/*
 * Where the content for `path` is in the sender's tree; NULL: at `path`. Valid until the next call.
 */
const char *sb_run_source(struct sb_run *run, const char *path);
/* A send failed: the far side's own word, if it sent one, explains it better. */
int sb_run_send_failed(struct sb_run *run, int code, struct sb_error *err);

#endif
