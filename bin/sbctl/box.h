/* SPDX-License-Identifier: MIT */
#ifndef SBCTL_BOX_H
#define SBCTL_BOX_H

#include <stdbool.h>

#include <base/cleanup.h>
#include <base/opt.h>
#include <sb/session.h>

/* Exit statuses, as sbsync has them. `run`, `exec` and `shell` pass the command's own on. */
#define BOX_DONE 0
#define BOX_FAILED 1
#define BOX_CONFLICTS 3
#define BOX_LOCKED 4
#define BOX_BRAKE 5

/* Values of all options of the sandbox verbs; each verb takes some. */
struct box_args {
	const char *profile, *backend, *id, *dir, *config, *sync_mode, *persistence, *permissions,
		*host;
	struct sb_opt_list set, exclude, also, env;
	bool keep, snapshot, json, help, quiet, all, discard, follow, dry_run, no_tty,
		trust_git_config;
	int conflict, verbose;
	int64_t max_delete, timeout;
	const char **v; /* operands */
	int n;
};

/* What every verb needs. */
struct box {
	struct box_args a;
	struct sb_registry *registry;
	struct sb_keeper *keeper;
	struct sb_cancel *cancel;
	struct sb_call call;
};

typedef int (*box_fn)(struct box *b, struct sb_error *err);

/* Parses, opens the keeper, runs, complains. `fn` returns an exit status (>= 0) or an error. */
int box_main(const struct sb_cmd *cmd, int argc, char **argv, box_fn fn);
/* The exit status of an error. */
int box_status(int code);

#define BOX_AT(field) offsetof(struct box_args, field)
#define BOX_COMMON \
	{ 0, "json", SB_OPT_FLAG, BOX_AT(json), NULL, "print JSON", NULL, 0, 0 }, \
		{ 'q', "quiet", SB_OPT_FLAG, BOX_AT(quiet), NULL, "say nothing but errors", NULL, \
			0, 0 }, \
		{ 'v', "verbose", SB_OPT_COUNT, BOX_AT(verbose), NULL, \
			"say more; twice: everything", NULL, 0, 0 }, \
		{ 'h', "help", SB_OPT_FLAG, BOX_AT(help), NULL, "print help and exit", NULL, 0, \
			0 }, \
	{ \
		0, NULL, SB_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0 \
	}
#define BOX_TIMEOUT \
	{ \
		't', "timeout", SB_OPT_TIME, BOX_AT(timeout), "TIME", "give up after this long", \
			NULL, 0, 0 \
	}

/* box.c: the sandbox that an operand names, or the only one of the current directory. New text. */
char *box_pick(struct box *b, const char *named, struct sb_error *err);

/* signals of a run: the first asks, by `fd`; while `cancel` is set it is requested too. */
int box_signals_open(struct sb_error *err);
int box_signals_take(int fd); /* the number, 0: none */
void box_signals_cancel(struct sb_cancel *c);

/*
 * attach.c: runs argv in the sandbox with this terminal (or these pipes) attached. The command's
 * status or an error.
 */
int box_attach(struct box *b, struct sb_sandbox *sb, const char *const *argv, int sigfd,
	struct sb_error *err);

/* report.c. Progress is a line on a terminal; its end comes before anything else is printed. */
void box_progress_begin(struct box *b);
void box_progress_end(void);
void box_report_sync(const struct box *b, const struct sb_state *s, const struct sb_sync_result *r,
	int code, const struct sb_error *err, FILE *f);
void box_print_state(const struct box *b, const struct sb_state *s);
void box_print_states(const struct box *b, const struct sb_state *v, size_t n);

/* run.c: a profile from files and options. */
int box_profile(struct box *b, struct sb_profile *out, struct sb_error *err);

#endif
