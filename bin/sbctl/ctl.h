/* SPDX-License-Identifier: MIT */
#ifndef SBCTL_CTL_H
#define SBCTL_CTL_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include <base/opt.h>
#include <base/strlist.h>
#include <bin/common/progress.h>
#include <sb/session.h>

SB_CLEANUP_PTR(sb_profiles, sb_profiles_free)
SB_CLEANUP_PTR(sb_sandbox, sb_sandbox_free)
SB_CLEANUP_VALUE(sb_profile, sb_profile_free)
SB_CLEANUP_VALUE(sb_state, sb_state_free)
SB_CLEANUP_VALUE(sb_sync_result, sb_sync_result_free)

/*
 * Exit statuses of sbctl itself, the same as those of sbsync. `run`, `exec` and `shell` pass the
 * command's own status on.
 */
enum ctl_exit {
	CTL_DONE = 0,
	CTL_FAILED = 1,
	CTL_USAGE = 2,
	CTL_CONFLICTS = 3,
	CTL_LOCKED = 4,
	CTL_BRAKE = 5,
};

/* Values of all options of the sandbox verbs; each verb takes some. */
struct ctl_args {
	const char *network;
	const char *profile, *backend, *id, *dir, *config, *sync_mode, *persistence, *permissions,
		*host, *session, *token_file, *ca_file, *image;
	struct sb_opt_list set, exclude, also, env;
	bool keep, snapshot, json, help, quiet, all, discard, follow, dry_run, no_tty,
		trust_git_config, no_project, yes, show, revoke, list, turn_tools;
	int conflict, verbose;
	int progress; /* enum progress_how */
	int64_t max_delete, timeout, turn_idle;
	const char **v; /* operands */
	int n;
};

/* What every sandbox verb works with. */
struct ctl {
	struct ctl_args a;
	struct sb_registry *registry;
	struct sb_keeper *keeper;
	struct sb_cancel *cancel;
	struct sb_call call;
};

/*
 * One verb. `run` is given a parsed and opened struct ctl; it returns an exit status (>= 0) or an
 * error. Where it is NULL, cmd.run gets the words from the verb's name on and does everything.
 */
struct ctl_verb {
	struct sb_cmd cmd;
	int (*run)(struct ctl *ctl, struct sb_error *err);
};

/* The verbs, each in its cmd-VERB.c. */
extern const struct ctl_verb cmd_cold;
extern const struct ctl_verb cmd_completion;
extern const struct ctl_verb cmd_control;
extern const struct ctl_verb cmd_destroy;
extern const struct ctl_verb cmd_docker;
extern const struct ctl_verb cmd_e2b;
extern const struct ctl_verb cmd_events;
extern const struct ctl_verb cmd_exec;
extern const struct ctl_verb cmd_forget;
extern const struct ctl_verb cmd_host;
extern const struct ctl_verb cmd_ls;
extern const struct ctl_verb cmd_mcp;
extern const struct ctl_verb cmd_profile;
extern const struct ctl_verb cmd_providers;
extern const struct ctl_verb cmd_recover;
extern const struct ctl_verb cmd_run;
extern const struct ctl_verb cmd_shell;
extern const struct ctl_verb cmd_show;
extern const struct ctl_verb cmd_stop;
extern const struct ctl_verb cmd_sync;
extern const struct ctl_verb cmd_trust;
extern const struct ctl_verb cmd_turn;
extern const struct ctl_verb cmd_run, cmd_ls, cmd_show, cmd_exec, cmd_shell, cmd_sync, cmd_turn,
	cmd_stop, cmd_destroy, cmd_forget, cmd_recover, cmd_events, cmd_providers, cmd_profile,
	cmd_trust, cmd_docker, cmd_doctor, cmd_e2b, cmd_host, cmd_mcp, cmd_completion;
/* main.c: all of them, NULL-terminated. */
extern const struct ctl_verb *const ctl_verbs[];

/* ctl.c: parses, opens the keeper, runs, complains. Returns the exit status. */
int ctl_main(const struct ctl_verb *verb, int argc, char **argv);
/* The exit status of an error. */
int ctl_status(int code);
/* Prints "sbctl: MESSAGE" and gives the exit status for it. */
int ctl_complain(const struct sb_error *err);

/* pick.c: the sandbox that an operand names, or the only one of the current directory. New text. */
char *ctl_pick(struct ctl *ctl, const char *named, struct sb_error *err);

/* signals.c: they come as bytes to a descriptor; while `cancel` is set they request it too. */
int ctl_signals_open(struct sb_error *err);
int ctl_signals_take(int fd); /* the number, 0: none */
void ctl_signals_cancel(struct sb_cancel *c);

/* choose-profile.c: a profile from files and options. */
int ctl_choose_profile(struct ctl *ctl, struct sb_profile *out, struct sb_error *err);

/* docker-agent.c: the agent that the second operand names, and its words; its exit status. */
int ctl_docker_agent(struct ctl *ctl, struct sb_error *err);

/* consent.c: shows what a file of the project does; asks on a terminal, else the answer is no. */
void ctl_consent_show(const struct sb_consent *c, FILE *f);
bool ctl_consent_ask(const struct sb_consent *c, void *ctl);

/*
 * foreground.c: runs argv in the sandbox with this terminal (or these pipes) as its own. The
 * command's status or an error.
 */
int ctl_foreground(struct ctl *ctl, struct sb_sandbox *sb, const char *const *argv, int sigfd,
	struct sb_error *err);

/*
 * turns.c: turns that are asked for from inside the sandbox while its command runs, or that silence
 * makes. NULL, which all take, where the sync mode knows no turns. The program is what the command
 * finds as SB_TURN; NULL: none. Served from another thread between _serve and _end, so the sandbox
 * is not to be used in between but by its handles.
 */
struct ctl_turns;
struct ctl_turns *ctl_turns_begin(struct ctl *ctl, struct sb_sandbox *sb, struct sb_error *err);
const char *ctl_turns_program(const struct ctl_turns *t);
void ctl_turns_serve(struct ctl_turns *t);
void ctl_turns_heard(struct ctl_turns *t); /* the command said something */
void ctl_turns_end(struct ctl_turns *t);

/*
 * work-in.c: after the command, brings back what there is, whatever happened. `status` is the
 * command's, or an error with its message in `why`.
 */
int ctl_finish_work(struct ctl *ctl, struct sb_sandbox *sb, int status, const struct sb_error *why,
	struct sb_error *err);
/* Something to be done in a sandbox: an exit status, or an error. */
typedef int (*ctl_work_fn)(struct ctl *ctl, struct sb_sandbox *sb, int sigfd, void *arg,
	struct sb_error *err);
/*
 * Does it in a sandbox that is on record. One that nobody works with is woken up for it and synced
 * afterwards.
 */
int ctl_work_in(struct ctl *ctl, const char *id, ctl_work_fn work, void *arg, struct sb_error *err);
/* Such work: runs a command, whose NULL-terminated words are `arg`. */
int ctl_work_command(struct ctl *ctl, struct sb_sandbox *sb, int sigfd, void *arg,
	struct sb_error *err);

/* report-sync.c */
void ctl_report_sync(const struct ctl *ctl, const struct sb_state *s,
	const struct sb_sync_result *r, int code, const struct sb_error *err, FILE *f);

/* show-state.c: one sandbox and a table of them; as JSON with --json. */
void ctl_show_state(const struct ctl *ctl, const struct sb_state *s);
void ctl_show_states(const struct ctl *ctl, const struct sb_state *v, size_t n);

/* print.c: JSON for people, and text that is safe for a terminal (`buf` has CTL_SHOWN bytes). */
#define CTL_SHOWN 4096
void ctl_print_json(const json_t *j, FILE *f);
const char *ctl_safe(const char *s, char *buf);
/* A text for JSON; what is no UTF-8 becomes {"hex": "..."}. NULL: no memory. */
json_t *ctl_json_text(const char *s);

#endif
