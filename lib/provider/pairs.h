/* SPDX-License-Identifier: MIT */
#ifndef SB_PROVIDER_PAIRS_H
#define SB_PROVIDER_PAIRS_H

#include <sb/provider.h>
#include <sbsync/session.h>

/*
 * Syncs a sandbox by a session of libsbsync that is named as the sandbox. Every provider whose
 * runtime has files of its own uses it.
 */
struct sb_pairs {
	const struct sb_state *state;
	const char *remote; /* endpoint of the runtime root; those of runtime_dirs are on the same
			       machine */
	const struct sb_sync_opts
		*reach; /* how to get there: conn, state_dir, agent, port, identity, ... */
};

/* The contract is that of sync_to_runtime and sync_from_runtime. */
int sb_pairs_sync(const struct sb_pairs *p, enum sb_way way, const struct sb_provider_sync *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err);

/*
 * May the runtime's files go? SB_E_UNSYNCED when the last sync back did not succeed, or something
 * has changed over there since (it is asked). 0 when nothing was ever pushed.
 */
int sb_pairs_check_back(const struct sb_pairs *p, const struct sb_call *call, struct sb_error *err);

/* The same without asking the runtime: what the session's own record says. */
int sb_pairs_check_record(const struct sb_state *s, const char *state_dir, struct sb_error *err);

/* Forgets the session. Not there is success. */
int sb_pairs_forget(const struct sb_state *s, const char *state_dir, struct sb_error *err);

#endif
