/* SPDX-License-Identifier: MIT */
#ifndef SB_COMPAT_KEYS_H
#define SB_COMPAT_KEYS_H

#include <rpc/server/auth.h>

/*
 * The API keys of a file, added to `auth` as admins: one a line, or NAME:KEY with a name for the
 * log; '#' begins a comment. `what` is whose they are, for errors ("E2B"). SB_E_USAGE without a
 * `path`, SB_E_DENIED for a file that others can read, SB_E_INVAL when it has none.
 */
int sb_keys_load(const char *what, const char *path, struct sb_rpc_auth *auth,
	struct sb_error *err);

/* Whether two secrets are the same, in a time that does not depend on where they differ. */
bool sb_keys_same(const char *a, const char *b);

/* Letters and digits, `len` of them and a NUL, that nobody can guess. */
int sb_keys_make(char *out, size_t len, struct sb_error *err);

#endif
