/* SPDX-License-Identifier: MIT */
#ifndef SB_PROVIDER_SSHBOX_H
#define SB_PROVIDER_SSHBOX_H

#include <sb/provider.h>
#include <sbsync/conn.h>
#include <tool/box.h>

struct sb_far;

/*
 * The connection of one sandbox to its machine: syncs, tools and what is launched go over it. It
 * breaks and is made anew without its users noticing more than a failed call. Counted: the
 * provider, launchers, tool hosts and handles share it. Thread-safe.
 */
struct sb_sshbox;

/*
 * Options of the profile ("host", "user", "port", "identity", "config", "known_hosts", "rsh",
 * "accept_new_host_key") for libsbsync. Borrows.
 */
int sb_sshbox_way(const char *const *options, struct sb_sync_opts *out, struct sb_error *err);
/* "ssh://[USER@]HOST[:PORT]PATH" for an absolute path. A new string. */
char *sb_sshbox_endpoint(const char *const *options, const char *path, struct sb_error *err);
extern const struct sb_provider_option sb_sshbox_options[];

/* Does not connect yet. `state_dir` and `options` are copied. */
struct sb_sshbox *sb_sshbox_new(const char *const *options, const char *state_dir,
	struct sb_error *err);
struct sb_sshbox *sb_sshbox_ref(struct sb_sshbox *b);
void sb_sshbox_unref(struct sb_sshbox *b); /* NULL is allowed */

/* The roots that tools may touch over there; once. */
int sb_sshbox_roots(struct sb_sshbox *b, const char *root, const char *const *dirs,
	struct sb_error *err);

/* The connection, made if need be; owned by `b`. */
struct sb_conn *sb_sshbox_conn(struct sb_sshbox *b, const struct sb_call *call,
	struct sb_error *err);

/* What the sandbox is over there: see tool/box.h. */
int sb_sshbox_prepare(struct sb_sshbox *b, const struct sb_box_wish *w, const struct sb_call *call,
	struct sb_box *out, struct sb_error *err);
int sb_sshbox_find(struct sb_sshbox *b, const char *id, const char *instance,
	const char *const *labels, const struct sb_call *call, struct sb_box *out,
	struct sb_error *err);
int sb_sshbox_destroy(struct sb_sshbox *b, const char *id, const char *instance,
	const struct sb_call *call, struct sb_error *err);

/* Each keeps `b`. The roots must have been told. */
struct sb_launcher *sb_sshbox_launcher(struct sb_sshbox *b, const char *cwd, struct sb_error *err);
struct sb_tool_host *sb_sshbox_tools(struct sb_sshbox *b, enum sb_perm_mode mode,
	struct sb_error *err);

#endif
