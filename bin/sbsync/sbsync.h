/* SPDX-License-Identifier: MIT */
#ifndef SB_BIN_SBSYNC_H
#define SB_BIN_SBSYNC_H

#include <stdbool.h>

#include <base/opt.h>
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

/* What the command line of every sync verb fills. */
struct sync_args {
	struct sb_opt_list exclude;
	struct sb_opt_list exclude_from;
	bool dry_run, json, quiet, checksum, gitignore, stats, trust_git, no_escaping, accept_new,
		ask_password, cross, help;
	int verbose;
	int progress; /* index into auto, always, never */
	const char *compress;
	int delta; /* auto, off, always */
	int64_t max_delete;
	int durability; /* default, none, barrier, full */
	uint64_t bwlimit;
	int64_t timeout;
	int64_t jobs;
	int64_t port;
	const char *identity, *ssh_config, *known_hosts, *rsh;
	/* Sessions. */
	const char *name;
	struct sb_opt_list also;
	int64_t owner;
	int conflict; /* both, local, runtime, merge; -1: as the session was started */
	struct sb_opt_list conflict_rules;
	int take; /* local, runtime, merged; -1: not said */
	bool all, now, discard, yes;
	int64_t every; /* ms */
};

/* The options that sync verbs share; one table, used for parsing and for --help. */
extern const struct sb_opt sync_options[];
extern const struct sb_opt session_options[];
extern const struct sb_opt start_options[];
extern const struct sb_opt recover_options[];
extern const struct sb_opt list_options[];
extern const struct sb_opt doctor_options[];
extern const struct sb_opt rm_options[];
extern const struct sb_opt resolve_options[];
extern const struct sb_opt undo_options[];
extern const struct sb_opt watch_options[];
extern const struct sb_opt agent_options[];

#define VERBS 16
extern const struct sb_cmd verbs[VERBS];
int run_mirror(void *values, int argc, char **argv);
int run_start(void *values, int argc, char **argv);
int run_sync(void *values, int argc, char **argv);
int run_watch(void *values, int argc, char **argv);
int run_stop(void *values, int argc, char **argv);
int run_recover(void *values, int argc, char **argv);
int run_diff(void *values, int argc, char **argv);
int run_status(void *values, int argc, char **argv);
int run_ls(void *values, int argc, char **argv);
int run_conflicts(void *values, int argc, char **argv);
int run_resolve(void *values, int argc, char **argv);
int run_undo(void *values, int argc, char **argv);
int run_log(void *values, int argc, char **argv);
int run_rm(void *values, int argc, char **argv);
int run_doctor(void *values, int argc, char **argv);
int run_agent(void *values, int argc, char **argv);

/* The mirror verb's work, also for `diff SRC DST`. */
int run_sync_mirror(struct sync_args *a, char **argv);

/* Defaults, before parsing. */
void sync_args_init(struct sync_args *a);
void sync_args_free(struct sync_args *a);
/*
 * Checks what the table cannot; fills the library's options. 0, or EXIT_USAGE after a line on
 * stderr.
 */
int sync_args_apply(const struct sync_args *a, struct sb_sync_opts *o);

/* A NULL-terminated copy of the list (NULL when empty); free() it. */
const char *const *terminated(const struct sb_opt_list *l);
/* Where the library's log lines go. */
struct sb_log stderr_log(const struct sync_args *a);

/* Cancelled by SIGINT, SIGTERM and SIGHUP. */
struct sb_cancel *signals_cancel(void);

/* Progress on stderr as the option says; `live` is cleared before results are printed. */
struct progress;
struct progress *progress_new(const struct sync_args *a, struct sb_sync_opts *o);
void progress_end(struct progress *p);

/* Prints the outcome and gives the exit code. */
int report(const struct sync_args *a, int code, const struct sb_error *err,
	const struct sb_sync_result *res);
int exit_code(int code);
void complain(const char *fmt, ...) SB_PRINTF(1, 2);

#endif
