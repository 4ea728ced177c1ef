/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/replica/commit.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <base/file.h>
#include <base/path.h>
#include <base/work.h>
#include <sync/replica/commit-ops.h>
#include <sync/scan/scan.h>
#include <sync/tree/stage-names.h>

/* Inside .git: objects first, then what points to them, the index and HEAD last. */
static uint8_t
git_rank(const char *path)
{
	const char *in = strncmp(path, ".git/", 5) == 0 ? path + 5 : NULL;

	if (!in) {
		in = strstr(path, "/.git/");
		in = in ? in + 6 : NULL;
	}
	if (!in || strncmp(in, "objects/", 8) == 0)
		return 0;
	if (strncmp(in, "refs/", 5) == 0 || strcmp(in, "packed-refs") == 0)
		return 2;
	if (strcmp(in, "HEAD") == 0 || strcmp(in, "index") == 0 || strcmp(in, "ORIG_HEAD") == 0)
		return 3;
	return 1;
}

static int
phase_of(const struct sb_op *op)
{
	switch (op->kind) {
	case SB_OP_TREE: return 0;
	case SB_OP_MOVE: return 1;
	/* Copies of files first: what they were taken from may be replaced. */
	case SB_OP_FILE:
		return op->old.type == SB_ENTRY_DIR ? 7 : op->from && !op->old.type ? 2 : 3;
	case SB_OP_META: return 4;
	/*
	 * Moves the ctime of its leader, so later than META; and the leader, or the link itself,
	 * may take the place of a directory, which is empty only then.
	 */
	case SB_OP_LINK: return 8;
	case SB_OP_DEL: return 6;
	default: return 9;
	}
}

static int
by_phase(const void *a, const void *b)
{
	const struct sb_op *x = a, *y = b;
	int px = phase_of(x), py = phase_of(y);

	if (px != py)
		return px - py;
	if (x->rank != y->rank)
		return x->rank - y->rank;
	/*
	 * Deletions and directory modes go from the leaves up, everything else from the top down.
	 */
	return px == 6 || px == 9 ? strcmp(y->path, x->path) : strcmp(x->path, y->path);
}

static int
write_journal(int stagefd, const struct sb_journal *ops, bool durable, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	sb_autoclose int fd = -1;
	int r;

	sb_buf_init(&b, 4ull << 30);
	r = sb_journal_encode(ops, &b, err);
	if (r < 0)
		return r;
	if (durable)
		return sb_file_replace(stagefd, SB_STAGE_JOURNAL, b.data, b.len, 0600, err);
	fd = openat(stagefd, "journal.tmp", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		0600);
	if (fd < 0)
		return sb_fail_errno(err, "make the journal");
	r = sb_file_write_all(fd, b.data, b.len, err);
	if (r < 0)
		return sb_wrap(err, r, "write the journal");
	if (renameat(stagefd, "journal.tmp", stagefd, SB_STAGE_JOURNAL) < 0)
		return sb_fail_errno(err, "rename the journal");
	return 0;
}

static int
apply_all(struct sb_commit_ops *c, struct sb_journal *ops, struct sb_error *err)
{
	for (size_t i = 0; i < ops->n; i++) {
		int r = sb_work_alive(NULL);

		/* As after a crash: the journal says what is left to do. */
		if (r < 0)
			return sb_fail(err, r,
				"canceled in the middle of the commit; the next run finishes it");
		r = sb_commit_ops_apply(c, &ops->v[i], err);
		if (r < 0)
			return sb_wrap(err, r, "commit %s", ops->v[i].path);
	}
	return 0;
}

static int
flush_fs(int fd, struct sb_error *err)
{
	if (syncfs(fd) < 0)
		return sb_fail_errno(err, "write the file system's buffers to disk");
	return 0;
}

/*
 * What the stage holds goes first, the mark last: a stage without journal and mark is one of an
 * interrupted transfer.
 */
static int
empty_stage(int stagefd, struct sb_error *err)
{
	static const char *const parts[] = { SB_STAGE_NEW, SB_STAGE_OLD, SB_STAGE_TRASH };

	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		int r = sb_path_remove_tree(stagefd, parts[i], err);

		if (r < 0)
			return r;
	}
	if (unlinkat(stagefd, SB_STAGE_DONE, 0) < 0 && errno != ENOENT)
		return sb_fail_errno(err, "remove the mark");
	return 0;
}

/* The stage is ours and comes and goes without a trace in the root's own time. */
static void
set_mtime(int rootfd, const struct stat *st)
{
	struct timespec ts[2] = { { .tv_nsec = UTIME_OMIT }, st->st_mtim };

	(void)futimens(rootfd, ts);
}

/* Takes the stage directory away; what cannot go is left for the next run. */
static void
drop_stage(int rootfd, int stagefd, const struct sb_log *log)
{
	struct sb_error e = { 0 };
	struct stat st;
	bool have = fstat(rootfd, &st) == 0;

	if (empty_stage(stagefd, &e) < 0 || sb_path_remove_tree(rootfd, SB_STAGE_NAME, &e) < 0)
		sb_log(log, SB_LOG_WARN, "commit", "the stage stays behind: %s", e.msg);
	if (have)
		set_mtime(rootfd, &st);
}

/*
 * A stage without a journal: finished but for the cleaning up, empty, or of an interrupted
 * transfer, which is kept.
 */
static void
tidy_stage(int rootfd, int stagefd, const struct sb_log *log)
{
	struct stat st, root;

	if (fstatat(stagefd, SB_STAGE_DONE, &st, AT_SYMLINK_NOFOLLOW) == 0)
		drop_stage(rootfd, stagefd, log);
	else if (fstat(rootfd, &root) == 0 && unlinkat(rootfd, SB_STAGE_NAME, AT_REMOVEDIR) == 0)
		set_mtime(rootfd, &root);
}

void
sb_commit_drop_leftovers(int rootfd, const struct sb_log *log)
{
	sb_autoclose int stagefd =
		openat(rootfd, SB_STAGE_NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (stagefd >= 0 && fstatat(stagefd, SB_STAGE_JOURNAL, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
		errno == ENOENT)
		drop_stage(rootfd, stagefd, log);
}

static int
finish(struct sb_commit_ops *c, struct sb_journal *ops, enum sb_durability durability,
	struct sb_error *err)
{
	int r = apply_all(c, ops, err);

	if (r == 0 && durability >= SB_DURABLE_FULL)
		r = flush_fs(c->rootfd, err);
	if (r < 0)
		return r;
	if (renameat(c->stagefd, SB_STAGE_JOURNAL, c->stagefd, SB_STAGE_DONE) < 0)
		return sb_fail_errno(err, "mark the journal as done");
	drop_stage(c->rootfd, c->stagefd, c->log);
	/*
	 * Removing the stage touched the root's own time: its operation, the last, is done once
	 * more.
	 */
	if (ops->n && ops->v[ops->n - 1].kind == SB_OP_DIRMETA)
		(void)sb_commit_ops_apply(c, &ops->v[ops->n - 1], NULL);
	return 0;
}

int
sb_commit_run(int rootfd, int stagefd, struct sb_journal *ops, enum sb_durability durability,
	const struct sb_log *log, struct sb_commit_result *res, struct sb_error *err)
{
	struct sb_commit_ops c = { .rootfd = rootfd,
		.stagefd = stagefd,
		.log = log,
		.res = res,
		.refresh = ops->refresh };
	int r;

	for (size_t i = 0; i < ops->n; i++)
		ops->v[i].rank = ops->v[i].kind == SB_OP_FILE ? git_rank(ops->v[i].path) : 0;
	if (ops->n)
		qsort(ops->v, ops->n, sizeof *ops->v, by_phase);
	if (durability >= SB_DURABLE_BARRIER) {
		r = flush_fs(rootfd, err);
		if (r < 0)
			return r;
	}
	r = write_journal(stagefd, ops, durability >= SB_DURABLE_BARRIER, err);
	if (r == 0)
		r = sb_commit_ops_open(&c, err);
	if (r == 0)
		r = finish(&c, ops, durability, err);
	sb_commit_ops_close(&c);
	return r;
}

int
sb_commit_recover(int rootfd, const struct sb_log *log, struct sb_error *err)
{
	sb_autoclose int stagefd =
		openat(rootfd, SB_STAGE_NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	sb_auto(sb_commit_result) struct sb_commit_result res = { 0 };
	sb_auto(sb_journal) struct sb_journal ops = { 0 };
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct sb_commit_ops c = { .rootfd = rootfd,
		.stagefd = stagefd,
		.log = log,
		.res = &res,
		.replay = true };
	struct sb_error e = { 0 };
	int r;

	sb_buf_init(&b, 0);
	if (stagefd < 0)
		return errno == ENOENT ? 0 : sb_fail_errno(err, "open %s", SB_STAGE_NAME);
	r = sb_file_read(stagefd, SB_STAGE_JOURNAL, 4ull << 30, &b, &e);
	if (r == SB_E_NOTFOUND) {
		tidy_stage(rootfd, stagefd, log);
		return 0;
	}
	if (r == 0)
		r = sb_journal_decode(b.data, b.len, &ops, &e);
	if (r == SB_E_CORRUPT) {
		/*
		 * A journal is complete or it is not there, unless the disk lost it: nothing was
		 * done by it then.
		 */
		sb_log(log, SB_LOG_WARN, "commit", "ignoring the journal: %s", e.msg);
		(void)unlinkat(stagefd, SB_STAGE_JOURNAL, 0);
		return 0;
	}
	if (r < 0) {
		if (err)
			*err = e;
		return r;
	}
	sb_log(log, SB_LOG_INFO, "commit", "finishing an interrupted sync: %zu operations", ops.n);
	r = sb_commit_ops_open(&c, err);
	if (r == 0)
		r = finish(&c, &ops, SB_DURABLE_NONE, err);
	sb_commit_ops_close(&c);
	return r < 0 ? r : 1;
}
