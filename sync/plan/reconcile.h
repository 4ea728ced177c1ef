/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_RECONCILE_H
#define SBSYNC_RECONCILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <base/cleanup.h>
#include <base/strlist.h>
#include <sync/tree/manifest.h>
#include <sync/scan/scan.h>
#include <sync/tree/diff.h>

/*
 * Three-way reconciliation: from the base both sides last agreed on, and the two trees as they are
 * now, to the changes that each side gets. Pure: reads three manifests, touches nothing. The rules
 * are those of the table in doc/ARCHITECTURE.md ("Three-way rules"); in short: one side's change
 * goes over, two different ones are both kept, an edit survives a deletion, content and mode merge
 * field by field, directories merge entry by entry.
 *
 * The base to record afterwards needs no computing: after from_runtime it is the runtime's tree,
 * after to_runtime the local one, after both what both trees are; except at paths in `unsettled`,
 * which keep their old base entry.
 */
enum sb_direction {
	SB_TO_RUNTIME = 1,
	SB_FROM_RUNTIME = 2,
	SB_BOTH_WAYS = 3, /* the two bits together */
};

enum sb_policy {
	SB_POLICY_KEEP_BOTH,
	SB_POLICY_LOCAL,
	SB_POLICY_RUNTIME,
	SB_POLICY_MERGE, /* as KEEP_BOTH here: the session, which has the contents, merges
			    afterwards */
};

enum sb_conflict_kind {
	SB_CONFLICT_EDIT,      /* both changed the content */
	SB_CONFLICT_TYPE,      /* both changed it, into different kinds of things */
	SB_CONFLICT_GIT,       /* git would obey it: not taken from a sandbox */
	SB_CONFLICT_LINK,      /* a symlink out of the root, kept aside on request */
	SB_CONFLICT_REVIVED,   /* edited on one side, deleted on the other: the edit stays. Listed,
				  but needs no decision */
	SB_CONFLICT_PROJECT,   /* later runs would obey it: not taken from a sandbox */
	SB_CONFLICT_GIT_PATH,  /* git would look elsewhere for what it obeys: likewise */
	SB_CONFLICT_GIT_STATE, /* a half-done operation, whose rest git would do: likewise */
	SB_CONFLICT_KINDS,     /* the numbers are on record: new kinds come before this, last */
};

struct sb_conflict {
	char *path;
	char *saved_as; /* where the version that lost its place is; NULL: nowhere, none did */
	enum sb_conflict_kind kind;
};

/*
 * The files of the local root that no manifest has the content of and the guard must know: .git
 * files and the like.
 */
struct sb_guard_files {
	const char *root;      /* absolute, as the user wrote it */
	const char *real_root; /* without links; may be NULL */
	const char *home;      /* of the user; may be NULL */
	/* git's configuration outside of any repository, absolute; up to NULL, or NULL */
	const char *const *git_configs;
	/*
	 * Reads the beginning of a file: how many bytes, negative: not possible. Beneath the root
	 * it follows no link; an absolute path is one of the user's own.
	 */
	ssize_t (*read)(const char *path, char *buf, size_t size, void *arg);
	void *arg;
};

struct sb_reconcile_opts {
	size_t size;
	enum sb_direction direction;
	enum sb_policy policy;
	enum sb_policy (
		*policy_of)(const char *path, void *arg); /* by path; NULL: `policy` for all */
	void *arg;
	const char *label;  /* the SESSION in NAME.runtime-conflict-SESSION */
	const char *word;   /* the word in between */
	uint16_t mode_mask; /* mode bits that the local side takes from the runtime; others count as
			       equal */
	bool trust_git_config;
	bool trust_project_files;
	bool no_escaping_links;
	const struct sb_guard_files *files; /* NULL: the guard knows the manifests only */
	const struct sb_skipped
		*unseen[2]; /* what each side's scan could not see: nothing is done there */
	size_t n_unseen[2];
};
#define SB_RECONCILE_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_reconcile_opts), .direction = SB_BOTH_WAYS, \
		.label = "session", .word = "runtime-conflict", .mode_mask = 07777 \
	}

struct sb_reconciled {
	struct sb_diff local;   /* to do here */
	struct sb_diff runtime; /* to do there */
	struct sb_conflict *conflicts;
	size_t n_conflicts;
	size_t cap_conflicts;
	char **unsettled; /* paths whose base entry stays as it is */
	size_t n_unsettled;
	size_t cap_unsettled;
	struct sb_strlist missed; /* what the runtime changed where the local side cannot be seen:
				     not brought here */
};

/* All three manifests must be finished; `base` may be empty (first sync). */
int sb_reconcile_trees(const struct sb_manifest *base, const struct sb_manifest *local,
	const struct sb_manifest *runtime, const struct sb_reconcile_opts *opts,
	struct sb_reconciled *out, struct sb_error *err);
void sb_reconcile_free(struct sb_reconciled *r);
SB_CLEANUP_VALUE(sb_reconciled, sb_reconcile_free)

const char *sb_reconcile_conflict_text(enum sb_conflict_kind k);

#endif
