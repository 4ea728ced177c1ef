/* SPDX-License-Identifier: MIT */
#ifndef SB_BIN_SBSYNC_H
#define SB_BIN_SBSYNC_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include <base/opt.h>
#include <sbsync/session.h>
#include <sbsync/sync.h>

/* Exit codes that scripts rely on. */
enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_CONFLICTS = 3,
	EXIT_LOCKED = 4,
	EXIT_BRAKE = 5,
};

/* What the command line fills: the values of all options. Each verb takes some. */
struct sync_args {
	struct sb_opt_list exclude;
	struct sb_opt_list exclude_from;
	bool dry_run, json, quiet, checksum, gitignore, stats, trust_git, trust_project,
		no_escaping, accept_new, ask_password, cross, xattrs, acls, help;
	int verbose;
	int progress; /* enum progress_how */
	const char *compress;
	int delta; /* auto, off, always */
	int64_t max_delete;
	int64_t max_entries; /* 0: by the local tree and the memory */
	int durability;      /* default, none, barrier, full */
	uint64_t bwlimit;
	int64_t timeout;
	int64_t jobs;
	int64_t port;
	const char *identity, *ssh_config, *known_hosts, *rsh;
	/* Sessions. */
	const char *name;
	bool list;      /* undo */
	const char *to; /* undo */
	struct sb_opt_list also;
	int64_t owner;
	int conflict; /* both, local, runtime, merge; -1: as the session was started */
	struct sb_opt_list conflict_rules;
	int take; /* local, runtime, merged; -1: not said */
	bool all, now, discard, yes;
	int64_t every; /* ms */
	bool watch, offline, pending, detach, content, diff, edit;
	const char *session; /* the one that the verb found, for hints */
	struct sb_opt_list labels;
};

/*
 * The verbs, each in its cmd-VERB.c. `run` gets the struct sync_args and the operands; it returns
 * the exit code.
 */
extern const struct sb_cmd cmd_mirror, cmd_start, cmd_sync, cmd_watch, cmd_stop, cmd_recover,
	cmd_diff, cmd_status, cmd_ls, cmd_conflicts, cmd_resolve, cmd_undo, cmd_log, cmd_rm,
	cmd_doctor, cmd_ignore, cmd_agent, cmd_completion, cmd_pause, cmd_resume, cmd_edit;
/* main.c: all of them, NULL-terminated. */
extern const struct sb_cmd *const verbs[];

/* options.c: defaults, before parsing. */
void sync_args_init(struct sync_args *a);
void sync_args_free(struct sync_args *a);
/*
 * Checks what the table cannot; fills the library's options, which point into `a`. 0, or EXIT_USAGE
 * after a line on stderr.
 */
int sync_args_apply(const struct sync_args *a, struct sb_sync_opts *o);
/* Shows progress as the option says, until progress_end (bin/common/progress.h). */
void sync_args_progress(const struct sync_args *a, struct sb_sync_opts *o);
/* Where the library's log lines go. */
struct sb_log stderr_log(const struct sync_args *a);

/* sync-once.c: one sync from its options to its report; each returns the exit code. */
int sync_once_mirror(struct sync_args *a, char **argv);
int sync_once_session(struct sync_args *a, int argc, char **argv, enum sb_session_reason reason);

/*
 * sessions.c: the open session named by the operand, or that of the current directory. 0, or an
 * exit code after a line on stderr.
 */
int load_session(int argc, char **argv, struct sb_session *out);
/* The same for verbs about what happened: without a name, also a session that was stopped. */
int find_session(const char *name, struct sb_session *out, struct sb_error *err);
json_t *session_json(const struct sb_session *s);
/* How many conflicts are kept aside. */
size_t count_conflicts(const struct sb_session *s);
/*
 * Ends the process that watches the session, if there is one, and waits until it is gone; then 0,
 * or an exit code after a line on stderr.
 */
int end_watcher(const struct sb_session *s, bool quiet);
/* What the last line of the session's log says; false: there is none. Free it. */
json_t *last_run(const struct sb_session *s);
/* A time as text, "never" for 0. Returns `out`. */
char *time_text(int64_t t, char *out, size_t size);

/*
 * ask.c: "TEXT [y/N] " on a terminal; without one the answer is no, and `instead` says how to
 * answer beforehand. Only y and Y are yes.
 */
bool ask_yes(const char *text, const char *instead);

/*
 * guards.c: directories that are hardly meant (/, the home directory, a file system of its own, a
 * large tree that is no project; a host without its colon), asked about unless --yes is given.
 * 0, or an exit code after a line on stderr.
 */
int guard_start(const struct sync_args *a, const char *local, const char *remote);
int guard_target(const struct sync_args *a, const char *remote);

/*
 * habits.c: what stands here for the rsync option that the parser's message calls unknown; NULL:
 * that is none.
 */
const char *habit_of(const char *message, const char **out_option);

/*
 * show-diff.c: what differs between two files, as diff -u shows it; of what is no text, the sizes.
 * Either descriptor may be -1: there is no such file. 0 or a negative error.
 */
int show_diff(const char *old_name, int old_fd, const char *new_name, int new_fd,
	struct sb_error *err);

/*
 * mergetool.c: lets the user make one file of two by their tool (SBSYNC_MERGETOOL, git's
 * merge.tool, VISUAL or EDITOR) and puts it in the place of `local`. 0, or an exit code after a
 * line on stderr.
 */
int merge_by_hand(const char *local, const char *other);

/*
 * diff-content.c: prints what differs in the files that the dry run `res` of the two directories
 * would change.
 */
void diff_content(const char *local, const char *remote, const struct sb_sync_opts *o,
	const struct sb_sync_result *res);

/* signals.c: cancelled by SIGINT, SIGTERM and SIGHUP. */
struct sb_cancel *signals_cancel(void);

/* report.c: prints the outcome and gives the exit code. */
int report(const struct sync_args *a, int code, const struct sb_error *err,
	const struct sb_sync_result *res);
int exit_code(int code);
/* One line for each change, with the time of day: what -v prints. */
void print_done(const struct sb_sync_result *res, FILE *f);
/* Prints "sbsync: MESSAGE". */
void complain(const char *fmt, ...) SB_PRINTF(1, 2);
/* Prints one line of JSON and drops the reference. */
void print_json(json_t *j);
/*
 * Sets a path in an object: as it is where it is UTF-8. Else the member shows it, escaped, and a
 * second one, KEY_base64, has its bytes.
 */
void json_set_path(json_t *o, const char *key, const char *path);

#endif
