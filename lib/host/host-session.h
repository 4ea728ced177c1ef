/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_HOST_SESSION_H
#define SB_HOST_HOST_SESSION_H

#include <host/hsess.h>
#include <host/storage/storage.h>

struct sb_host;

/* What a new session is made from. */
struct sb_host_origin {
	struct sb_storage_source src; /* `fd`, `from_*` or `base` */
	struct sb_hsess *parent;      /* of a fork, else NULL */
	const char *parent_snap;
	uint64_t turn;
};

/*
 * Into the map and the database: from here on the session exists, whatever happens to us.
 * SB_E_SESSION_EXISTS, SB_E_MAX_SESSIONS, SB_E_SHUTTING_DOWN.
 */
int sb_host_session_register(struct sb_host *h, struct sb_hsess *s, struct sb_error *err);

/* Create, fork and receive all end here. Labels, runtime and network come from `o`. */
int sb_host_session_make(struct sb_host *h, const struct sb_host_create_opts *o,
	const struct sb_host_origin *from, const struct sb_host_call *call,
	struct sb_host_session *out, struct sb_error *err);

#endif
