/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SESSION_STORE_H
#define SBSYNC_SESSION_STORE_H

#include <base/cleanup.h>
#include <sbsync/session.h>

SB_CLEANUP_VALUE(sb_session, sb_session_free)
SB_CLEANUP_VALUE(sb_session_list, sb_session_list_free)

/* The state directory to use: `given`, or the default. A new string. */
char *sb_session_dir(const char *given, struct sb_error *err);
/* Opens (and makes, when `create`) the session's folder. */
int sb_session_open_dir(const char *state_dir, const char *name, bool create, struct sb_error *err);
/* Writes the session's file atomically. */
int sb_session_save(int dirfd, const struct sb_session *s, struct sb_error *err);
int sb_session_add_rule(struct sb_session *s, const char *pattern, enum sb_session_conflict how,
	struct sb_error *err);
/* Adds a rule by its text, "PATTERN=HOW". */
int sb_session_take_rule(struct sb_session *s, const char *text, struct sb_error *err);
/* Sets "KEY=VALUE", or takes KEY away where VALUE is empty. */
int sb_session_set_label(struct sb_session *s, const char *label, struct sb_error *err);
/* Brings the files of an older version up to date. The caller holds the session. */
int sb_session_upgrade(int dirfd, const char *name, struct sb_error *err);
/* Letters, digits, '-', '_' and '.', not first; at most 64. */
bool sb_session_name_ok(const char *name);
/* The start time of a process, to tell it from a later one with its number; 0: not there. */
uint64_t sb_session_proc_start(int64_t pid);

#endif
