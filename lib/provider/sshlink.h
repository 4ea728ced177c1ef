/* SPDX-License-Identifier: MIT */
#ifndef SB_PROVIDER_SSHLINK_H
#define SB_PROVIDER_SSHLINK_H

#include <sb/provider.h>
#include <sbsync/conn.h>
#include <tool/place.h>

struct sb_far;

/*
 * The connection of one sandbox to its machine: syncs, tools and launched programs go over it. When
 * it breaks, the call under way fails and the next one connects again. Reference-counted: the
 * provider, launchers, tool hosts and handles share it. Thread-safe.
 */
struct sb_sshlink;

/*
 * Options of the profile ("host", "user", "port", "identity", "config", "known_hosts", "rsh",
 * "accept_new_host_key") for libsbsync. Borrows.
 */
int sb_sshlink_sync_opts(const char *const *options, struct sb_sync_opts *out,
	struct sb_error *err);
/* "ssh://[USER@]HOST[:PORT]PATH" for an absolute path. A new string. */
char *sb_sshlink_endpoint(const char *const *options, const char *path, struct sb_error *err);
extern const struct sb_provider_option sb_sshlink_options[];

/* Does not connect yet. `state_dir` and `options` are copied. */
struct sb_sshlink *sb_sshlink_new(const char *const *options, const char *state_dir,
	struct sb_error *err);
struct sb_sshlink *sb_sshlink_ref(struct sb_sshlink *b);
void sb_sshlink_unref(struct sb_sshlink *b); /* NULL is allowed */

/* The roots that tools may touch over there; once. */
int sb_sshlink_roots(struct sb_sshlink *b, const char *root, const char *const *dirs,
	struct sb_error *err);

/* The connection, made if need be; owned by `b`. */
struct sb_conn *sb_sshlink_conn(struct sb_sshlink *b, const struct sb_call *call,
	struct sb_error *err);

/* The sandbox's place on that machine (tool/place.h). */
int sb_sshlink_prepare(struct sb_sshlink *b, const struct sb_place_wish *w,
	const struct sb_call *call, struct sb_place *out, struct sb_error *err);
int sb_sshlink_find(struct sb_sshlink *b, const char *id, const char *instance,
	const char *const *labels, const struct sb_call *call, struct sb_place *out,
	struct sb_error *err);
int sb_sshlink_destroy(struct sb_sshlink *b, const char *id, const char *instance,
	const struct sb_call *call, struct sb_error *err);

/* Each keeps `b`. The roots must have been told. */
struct sb_launcher *sb_sshlink_launcher(struct sb_sshlink *b, const char *cwd,
	struct sb_error *err);
struct sb_tool_host *sb_sshlink_tools(struct sb_sshlink *b, enum sb_perm_mode mode,
	struct sb_error *err);

#endif
