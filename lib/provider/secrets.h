/* SPDX-License-Identifier: MIT */
#ifndef SB_PROVIDER_SECRETS_H
#define SB_PROVIDER_SECRETS_H

/* Replaces every value of `secrets` ("KEY=value") in `text` by asterisks, in place. */
void sb_secrets_redact(char *text, const char *const *secrets);

#endif
