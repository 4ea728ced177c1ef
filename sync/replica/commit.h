/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_COMMIT_H
#define SBSYNC_COMMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <sb/log.h>
#include <sync/replica/journal.h>
#include <sync/wire/proto.h>

/*
 * Making staged changes visible. The operations are written to a journal in the stage directory,
 * then done in the order of their phases; each checks that what it replaces is what the scan saw,
 * and puts it back when it is not. A crash leaves the journal: sb_commit_recover does the rest.
 * Every operation can be repeated.
 */
enum sb_durability {
	SB_DURABLE_DEFAULT, /* full when the data came from a sandbox, else none */
	SB_DURABLE_NONE,    /* safe against a killed process */
	SB_DURABLE_BARRIER, /* and against a power cut: old or new, whichever */
	SB_DURABLE_FULL,    /* and on disk when success is reported */
};

/*
 * Commits: journal, apply, drop the journal and what was swapped out. `stagefd` is the stage
 * directory with the staged things in "new". What was left alone is in `res->left` and marked in
 * the ops. An error (disk full, I/O) before the journal is complete changed nothing; after it, the
 * journal stays for recovery.
 */
int sb_commit_run(int rootfd, int stagefd, struct sb_journal *ops, enum sb_durability durability,
	const struct sb_log *log, struct sb_commit_result *res, struct sb_error *err);

/*
 * Finishes what a crash left in the root's stage directory: 1 when there was something, 0 when not.
 */
int sb_commit_recover(int rootfd, const struct sb_log *log, struct sb_error *err);

/*
 * Takes away what an interrupted transfer left, when nothing is to be sent any more. A stage with a
 * journal stays.
 */
void sb_commit_drop_leftovers(int rootfd, const struct sb_log *log);

#endif
