/* SPDX-License-Identifier: MIT */
#ifndef SB_PROVIDER_TRUST_H
#define SB_PROVIDER_TRUST_H

#include <sb/trust.h>

/* The file's path with its directory resolved. A new string; NULL: error. */
char *sb_trust_real_path(const char *file, struct sb_error *err);
/* Whether the absolute `path` is `dir` or lies beneath it, by name. */
bool sb_trust_beneath(const char *path, const char *dir);
/* Reads the text of a record; `out->file` is new. False: it is none. */
bool sb_trust_parse(const char *text, size_t len, struct sb_trust_entry *out);

#endif
