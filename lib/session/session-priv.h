/* SPDX-License-Identifier: MIT */
#ifndef SB_SESSION_PRIV_H
#define SB_SESSION_PRIV_H

#include <stdatomic.h>

#include <provider/provider.h>
#include <sb/session.h>

struct sb_keeper {
	struct sb_registry *registry;
	char *dir; /* STATE/sandboxes */
	char *state_dir;
	sb_event_fn on_event;
	void *event_arg;
	const struct sb_hook *hooks;
	size_t n_hooks;
	struct sb_log log;
};

struct sb_sandbox {
	struct sb_keeper *k;
	struct sb_provider *provider; /* borrowed from the registry */
	struct sb_state state;
	struct sb_profile profile;   /* of the start, or as the record has it */
	struct sb_prepared prepared; /* launcher NULL: not attached */
	struct sb_strlist env;       /* of hooks, with what may not go on record */
	struct sb_strlist had;       /* exclude patterns of an earlier session */
	int dirfd, lockfd;           /* lockfd -1: not held */
	bool fresh;                  /* made by this start: nothing of value can be in it yet */
	bool was_kept, was_archived; /* by an earlier session */
	_Atomic int failed;          /* what was launched last ended by itself, badly */
};

SB_CLEANUP_PTR(sb_sandbox, sb_sandbox_free)

/* record.c: the folder of a sandbox. */
#define RECORD_LOCK_MS 10000
int sb_record_open(struct sb_keeper *k, const char *id, bool create, struct sb_error *err);
/* Takes the lock, then reads the state again if the folder has one. */
int sb_record_lock(struct sb_sandbox *sb, int wait_ms, struct sb_error *err);
void sb_record_unlock(struct sb_sandbox *sb);
int sb_record_load(int dirfd, struct sb_state *out, struct sb_error *err);
/* Writes sb->state durably; `life` as given must be allowed from where it is. */
int sb_record_save(struct sb_sandbox *sb, enum sb_life life, struct sb_error *err);
/* Does the code say that no connection came about? */
bool sb_record_unreachable(int code);
/* Drops the oldest ended ones past a number. Failure is ignored. */
void sb_record_prune(struct sb_keeper *k);

/* state-owner.c: notes this process as the owner of a sandbox, or nobody. */
void sb_state_own(struct sb_state *s, bool own);

/* event.c */
struct sb_event_span {
	struct sb_sandbox *sb;
	const char *what; /* "prepare" */
	const char *reason, *direction;
	int64_t start;
};
struct sb_event_span sb_event_begin(struct sb_sandbox *sb, const char *what, const char *reason,
	const char *direction);
/* ".complete" or ".error". Returns `code`. */
int sb_event_end(const struct sb_event_span *e, int code, const struct sb_error *err,
	const struct sb_sync_result *res);
void sb_event_tell(struct sb_sandbox *sb, const char *kind, int code, const char *error,
	int exit_code);

/* hook.c: runs all hooks of the event. `out` collects; SB_E_HOOK_DENIED when one denies. */
int sb_hook_run(struct sb_sandbox *sb, const struct sb_hook_info *info, const struct sb_call *call,
	struct sb_hook_answer *out, struct sb_error *err);
void sb_hook_answer_free(struct sb_hook_answer *a);
SB_CLEANUP_VALUE(sb_hook_answer, sb_hook_answer_free)

/* sandbox.c */
struct sb_sandbox *sb_sandbox_new(struct sb_keeper *k, struct sb_error *err);
/* Fills sb->provider and the profile from what is on record. */
int sb_sandbox_resolve(struct sb_sandbox *sb, struct sb_error *err);
/* The request for its preparation, as the record has it; borrows from `sb`. */
void sb_sandbox_request(const struct sb_sandbox *sb, struct sb_prepare_request *req);
/* Reattaches when needed; makes nothing. */
int sb_sandbox_reattach(struct sb_sandbox *sb, const struct sb_call *call, struct sb_error *err);
/* One sync with events, hooks and record. Held lock. */
int sb_sandbox_sync_held(struct sb_sandbox *sb, enum sb_way way, const struct sb_provider_sync *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err);

/* sandbox-stop.c: sync back, then the end by policy. Held lock. */
int sb_sandbox_stop_held(struct sb_sandbox *sb, enum sb_when reason, const struct sb_stop_opts *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err);
int sb_sandbox_end_held(struct sb_sandbox *sb, bool discard, const struct sb_call *call,
	struct sb_error *err);
/* May the sandbox hold work that is not here yet? */
bool sb_sandbox_holds_work(enum sb_life l);

#endif
