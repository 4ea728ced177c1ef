/* SPDX-License-Identifier: MIT */
#ifndef SB_TRUST_H
#define SB_TRUST_H

#include <stdbool.h>
#include <stdint.h>

#include <sb/error.h>

/*
 * Consent to files that come with a workspace. A sandbox shares the workspace with the user, so a
 * file in it (.sandbox.yaml) counts only after the user said yes to exactly its content. Consent is
 * kept in the user's state directory, by the file's real path and the SHA-256 of its bytes, in a
 * folder that belongs to the user alone; a change of one byte asks again.
 */
enum sb_trust {
	SB_TRUST_NEW,     /* nobody consented to any content of this file */
	SB_TRUST_CHANGED, /* somebody consented to another content of it */
	SB_TRUST_GIVEN,   /* to this one */
};

/*
 * `state_dir` NULL: the default of sb/session.h. `file` is the path of the file; its directory is
 * resolved, the last component is not. SB_E_DENIED: the record of consent cannot be relied on,
 * because others can write to it or because it lies in the workspace itself.
 */
SB_API int sb_trust_check(const char *state_dir, const char *file, const void *data, size_t len,
	enum sb_trust *out, struct sb_error *err);
SB_API int sb_trust_give(const char *state_dir, const char *file, const void *data, size_t len,
	struct sb_error *err);
/* Takes back the consent to every content of the file; `out` (may be NULL): to how many. */
SB_API int sb_trust_revoke(const char *state_dir, const char *file, size_t *out,
	struct sb_error *err);

struct sb_trust_entry {
	char *file;      /* its real path */
	char digest[65]; /* SHA-256, lower-case hex */
	int64_t at_s;    /* when, seconds since 1970 */
};
/* By file, then by time. Free it with sb_trust_entries_free. */
SB_API int sb_trust_list(const char *state_dir, struct sb_trust_entry **out, size_t *n,
	struct sb_error *err);
SB_API void sb_trust_entries_free(struct sb_trust_entry *v, size_t n);

/* The SHA-256 of the bytes as lower-case hex. */
SB_API int sb_trust_digest(const void *data, size_t len, char out[65], struct sb_error *err);

/*
 * A request for consent. `effects` says in plain words what the file would do, one line each, with
 * control characters escaped.
 */
struct sb_consent {
	size_t size;
	const char *file;
	const char *digest;
	const char *effects;
	bool changed; /* SB_TRUST_CHANGED */
};
/* True: the user consents. */
typedef bool (*sb_consent_fn)(const struct sb_consent *c, void *arg);

#endif
