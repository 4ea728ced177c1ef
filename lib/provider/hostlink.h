/* SPDX-License-Identifier: MIT */
#ifndef SB_PROVIDER_HOSTLINK_H
#define SB_PROVIDER_HOSTLINK_H

#include <sb/provider.h>

/*
 * The sandbox host of one sandbox of backend `host`: a remote one by the option `url`, else one in
 * this process with a directory of its own for the sandbox, so that sandboxes of several processes
 * do not meet. Counted by the provider; thread-safe.
 */
struct sb_hostlink;

extern const struct sb_provider_option sb_hostlink_options[];

/* `make` false: SB_E_SANDBOX_NOT_FOUND when the embedded host of that sandbox has never been. */
struct sb_hostlink *sb_hostlink_open(const char *sandbox_id, const char *const *options, bool make,
	struct sb_error *err);
void sb_hostlink_free(struct sb_hostlink *l);
const char *sb_hostlink_address(const struct sb_hostlink *l);

/* Calls a procedure with a JSON text; the answer is dropped when `out` is NULL. */
int sb_hostlink_call(struct sb_hostlink *l, const char *method, const char *json,
	const struct sb_call *call, char **out, struct sb_error *err);

/* The same host, for environments. It goes before the link does. */
struct sb_env_host *sb_hostlink_env(const struct sb_hostlink *l, struct sb_error *err);

/* The remote shell command into sessions of it. A new string. */
char *sb_hostlink_rsh(const struct sb_hostlink *l, struct sb_error *err);

/* From now on this process runs that command itself, wherever the program is, or if it is. */
void sb_hostlink_carry(void);

/* Removes the directory of an embedded host; the link must be gone. */
int sb_hostlink_remove(const char *sandbox_id, const char *const *options, struct sb_error *err);

/*
 * "none", "namespace", "gvisor": what an embedded host would use here; "none" for a remote one, of
 * which nobody was asked.
 */
const char *sb_hostlink_isolation(const char *const *options);
/* Whether an embedded host would enforce lists here; false for a remote one. */
bool sb_hostlink_lists(const char *const *options);

/* Labels of a session that is put away: what only the session itself could tell else. */
#define SB_HOSTLINK_INSTANCE "sb_instance"
#define SB_HOSTLINK_ROOT "sb_runtime_root"
#define SB_HOSTLINK_DIRS "sb_runtime_dirs" /* one a line */

/*
 * Puts the session of `s` away: ends what runs in it, takes a snapshot "archived" where the host
 * can, and pauses it. Not there is success.
 */
int sb_hostlink_archive(struct sb_hostlink *l, const struct sb_state *s, const struct sb_call *call,
	struct sb_error *err);

#endif
