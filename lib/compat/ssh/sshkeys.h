/* SPDX-License-Identifier: MIT */
#ifndef SB_COMPAT_SSHKEYS_H
#define SB_COMPAT_SSHKEYS_H

#include <stdbool.h>
#include <stddef.h>

#include <sb/error.h>

/*
 * Files of public keys as ~/.ssh/authorized_keys: "TYPE BASE64 COMMENT" a line, '#' begins a
 * comment. A line with options in front is a mistake, not a key: what they would forbid is not
 * forbidden here.
 */
#define SB_SSHKEYS_FILE_MAX (1u << 20)

/* Whether a text has that key, in base64. `bad` (may be NULL): the first line that is no key, or 0.
 */
bool sb_sshkeys_find(const char *text, size_t len, const char *key, unsigned *bad);
/*
 * The same of a file: 0, SB_E_AUTH when it is not there or not in it, SB_E_DENIED when others may
 * write the file.
 */
int sb_sshkeys_file(const char *path, const char *key, struct sb_error *err);
/* Whether the file can be meant. */
int sb_sshkeys_check(const char *path, struct sb_error *err);

#endif
