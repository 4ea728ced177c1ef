/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_COMMIT_OPS_H
#define SBSYNC_COMMIT_OPS_H

#include <base/strlist.h>
#include <sync/replica/commit-times.h>
#include <sync/replica/commit.h>

#define SB_COMMIT_OPS_DIRS 16

/* The state of one commit, or of its replay after a crash. */
struct sb_commit_ops {
	int rootfd;
	int stagefd;
	int newfd;
	int trashfd;
	bool replay;
	bool refresh;
	bool vague_ctime; /* the file system is one in user space */
	bool no_exchange; /* the file system cannot swap two names */
	struct stat put;  /* the staged thing that was swapped in last */
	const struct sb_log *log;
	struct sb_commit_result *res;
	struct {
		char *path;
		int fd;
		uint64_t used;
	} dirs[SB_COMMIT_OPS_DIRS]; /* directories opened lately */
	uint64_t clock;
	struct sb_strlist uncopied; /* files of which a copy was to be made and could not */
	struct sb_commit_times times; /* that it gave to files with several names */
};

int sb_commit_ops_open(struct sb_commit_ops *c, struct sb_error *err);
void sb_commit_ops_close(struct sb_commit_ops *c);
/*
 * Does one operation, or notes in the result why it was left alone. Only failures of the machine
 * are errors.
 */
int sb_commit_ops_apply(struct sb_commit_ops *c, struct sb_op *op, struct sb_error *err);

#endif
