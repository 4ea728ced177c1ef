/* SPDX-License-Identifier: MIT */
#ifndef SB_PROVIDER_PROFILE_JSON_H
#define SB_PROVIDER_PROFILE_JSON_H

#include <sb/profile.h>

/*
 * The part of a profile that a sandbox's record keeps besides the fields of struct sb_state, as the
 * text of a JSON object: runtime root, environment, references to secrets, hooks, network and
 * timeouts. Values of secrets are never in it: an `env` entry whose name looks like a secret's is
 * left out.
 */
int sb_profile_json_encode(const struct sb_profile *p, char **out, struct sb_error *err);

/*
 * Fills those members of `p`, which must be empty. SB_E_CORRUPT names what is wrong; `p` is to be
 * freed then too. NULL `text`: nothing is on record.
 */
int sb_profile_json_decode(const char *text, struct sb_profile *p, struct sb_error *err);

#endif
