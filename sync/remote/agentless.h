/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_AGENTLESS_H
#define SBSYNC_AGENTLESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/cleanup.h>
#include <sb/cancel.h>
#include <sb/error.h>
#include <sb/log.h>

struct sb_remote;
struct sb_agentless_list;

/*
 * Syncs with a machine where no agent can run, with POSIX sh, find and tar (GNU's or busybox's)
 * there and a shadow here: a private directory. Fetch brings the shadow to the far tree's state,
 * push brings the far tree to the shadow's. Everything else (plan, three-way comparison, staging,
 * safety) happens between the shadow and the user's directory, both local. Moves whole files only;
 * size and times decide whether one changed there. Hard links become copies; other special files
 * stay alone and are counted.
 */
struct sb_agentless {
	struct sb_remote *remote;
	const char *root; /* on the far side; relative to the log-in directory unless absolute */
	/*
	 * Says which paths to leave out on both sides, with everything beneath them; may be NULL.
	 */
	bool (*ignored)(const char *path, bool dir, void *arg);
	void *ignored_arg;
	const struct sb_cancel *cancel;
	sb_deadline deadline;
	struct sb_log log;
	uint64_t max_entries; /* how many a listing may have; 0: by `known` and by the memory */
	uint64_t known;       /* entries of the tree as it was the last time */
	/*
	 * For a push: the shadow as the fetch left it. A file in it that is another one now goes
	 * over, whatever its size and time say. NULL: not known.
	 */
	const struct sb_agentless_list *brought;
};

/* One thing in a tree. */
struct sb_agentless_entry {
	char *path;    /* beneath the root, "" for the root itself */
	char *target;  /* symlinks only */
	char type;     /* 'd', 'f', 'l', or 'o' for all else */
	uint16_t mode; /* permission bits */
	uint64_t size; /* files only */
	int64_t mtime; /* nanoseconds */
	int64_t ctime;
	uint64_t ino;
};

/* A listing, sorted by path. */
struct sb_agentless_list {
	struct sb_agentless_entry *v;
	size_t n;
	size_t cap;
	uint64_t most; /* entries it may have; 0: no limit but that of all lists */
	bool absent;   /* the root is not there */
	bool coarse;   /* times are whole seconds */
	int64_t taken; /* the clock there when it was begun, in seconds; 0: not known */
	bool gnu_tar;
};

void sb_agentless_list_free(struct sb_agentless_list *l);
SB_CLEANUP_VALUE(sb_agentless_list, sb_agentless_list_free)
const struct sb_agentless_entry *sb_agentless_list_find(const struct sb_agentless_list *l,
	const char *path);

/*
 * Parses what the listing script printed between its lines, in the form "printf" or "stat".
 * Everything is checked: paths stay beneath the root, no path comes twice, each has its directory.
 */
int sb_agentless_list_parse(const char *form, const char *data, size_t len,
	struct sb_agentless_list *out, struct sb_error *err);

/*
 * Lists the far tree. SB_E_PEER when a part of it cannot be read there, SB_E_UNSUPPORTED without
 * find and stat.
 */
int sb_agentless_list_far(const struct sb_agentless *a, struct sb_agentless_list *out,
	struct sb_error *err);
/* The same of a directory here. */
int sb_agentless_list_local(const struct sb_agentless *a, int rootfd, struct sb_agentless_list *out,
	struct sb_error *err);

struct sb_agentless_stats {
	uint64_t files; /* sent or fetched */
	uint64_t bytes;
	uint64_t deleted;
	uint64_t special; /* left alone */
};

/*
 * Makes `shadow` (made if missing, beneath an existing directory) equal to the far tree. `record`
 * is a file that remembers the far tree as of the last fetch or push; without it everything is
 * fetched. SB_E_UNSTABLE when the far tree keeps changing.
 */
int sb_agentless_fetch(const struct sb_agentless *a, const char *shadow, const char *record,
	struct sb_agentless_stats *stats, struct sb_error *err);

/*
 * Makes the far tree equal to `shadow`: new content is staged beneath the far root, then moved into
 * place, then the rest removed, then the tree listed again and compared. With `expect_record` the
 * far tree must be as `record` has it, else SB_E_CHANGED and nothing is done. SB_E_BRAKE when more
 * than `max_delete` entries would go (negative: half of a tree of more than 100).
 */
int sb_agentless_push(const struct sb_agentless *a, const char *shadow, const char *record,
	bool expect_record, int64_t max_delete, struct sb_agentless_stats *stats,
	struct sb_error *err);

/* For the parts. The name prefix of our stages in the far root; never listed. */
#define SB_AGENTLESS_STAGE ".sbsync-agentless-"
int sb_agentless_save(const char *record, const struct sb_agentless_list *l, struct sb_error *err);
int sb_agentless_load(const char *record, struct sb_agentless_list *out, struct sb_error *err);
/* Is the content surely the same? Whole seconds where one side has only those. */
bool sb_agentless_same_file(const struct sb_agentless_entry *a, const struct sb_agentless_entry *b,
	bool coarse);

#endif
