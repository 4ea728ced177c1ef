/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_IDCHECK_H
#define SB_HOST_IDCHECK_H

#include <stdbool.h>

#include <sb/host.h>

/*
 * Checks the names that callers give, before they reach a database, a path or a command, whatever
 * the storage. All return 0, or SB_E_INVAL and a message with the name quoted, escaped and cut.
 * They refuse NULL like "".
 */

/* [A-Za-z0-9][A-Za-z0-9._-]{0,127}, without "..". */
int sb_idcheck_session(const char *id, struct sb_error *err);

/* [A-Za-z0-9][A-Za-z0-9._-]{0,254}; the same rule holds for hold tags and local base images. */
int sb_idcheck_snapshot(const char *name, struct sb_error *err);
int sb_idcheck_tag(const char *tag, struct sb_error *err);
int sb_idcheck_base_dir(const char *name, struct sb_error *err);

/* [A-Za-z0-9][A-Za-z0-9._-]{0,62}. */
int sb_idcheck_process(const char *id, struct sb_error *err);

/* A ZFS dataset, pool, and `dataset@snapshot`; see the contract of names in doc/ARCHITECTURE.md. */
int sb_idcheck_dataset(const char *name, struct sb_error *err);
int sb_idcheck_pool(const char *name, struct sb_error *err);
int sb_idcheck_full_snapshot(const char *name, struct sb_error *err);

/* Number, key and value sizes, no control characters in keys, no key twice. */
int sb_idcheck_labels(const struct sb_host_label *labels, size_t n, struct sb_error *err);

#define SB_IDCHECK_QUOTE_MAX 100
/* `name` for a message: escaped and cut to `out`. */
const char *sb_idcheck_quote(const char *name, char out[SB_IDCHECK_QUOTE_MAX]);

#endif
