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
 * Makes staged changes visible. A commit writes its operations to a journal in the stage directory,
 * then does them in the order of their phases. Each operation checks that it replaces what the scan
 * saw, and puts it back when it does not. After a crash sb_commit_recover reads the journal and
 * does the rest: every operation can be repeated.
 */
enum sb_durability {
	SB_DURABLE_DEFAULT, /* full when the data came from a sandbox, else none */
	SB_DURABLE_NONE,    /* safe against a killed process */
	SB_DURABLE_BARRIER, /* and against a power cut: old or new, whichever */
	SB_DURABLE_FULL,    /* and on disk when success is reported */
};

/*
 * Commits: journal, apply, drop the journal and what was swapped out. `stagefd` is the stage
 * directory with the staged things in "new". `res->left` lists what it left alone, and the
 * operations are marked. An error (disk full, I/O) before the journal is complete changed nothing;
 * after it, the journal stays for recovery.
 */
int sb_commit_run(int rootfd, int stagefd, struct sb_journal *ops, enum sb_durability durability,
	const struct sb_log *log, struct sb_commit_result *res, struct sb_error *err);

/*
 * Finishes what a crash left in the root's stage directory: 1 when there was something, 0 when not.
 */
int sb_commit_recover(int rootfd, const struct sb_log *log, struct sb_error *err);

/*
 * Removes what an interrupted transfer left, when there is nothing to send any more. A stage with a
 * journal stays.
 */
void sb_commit_drop_leftovers(int rootfd, const struct sb_log *log);

#endif
