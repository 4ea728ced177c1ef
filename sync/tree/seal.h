/* SPDX-License-Identifier: MIT */
#ifndef SB_SYNC_TREE_SEAL_H
#define SB_SYNC_TREE_SEAL_H

#include <base/cursor.h>
#include <sb/error.h>

/*
 * The frame of an encoded tree or list of changes: four bytes of magic, the body, and the XXH3-64
 * of everything before it. `what` is a noun for messages.
 */

/*
 * Leads `body` to the bytes between magic and checksum, two at least. SB_E_LIMIT past `max` bytes,
 * SB_E_CORRUPT for another magic.
 */
int sb_seal_open(const uint8_t *data, size_t len, const char *magic, uint64_t max, const char *what,
	struct sb_cursor *body, struct sb_error *err);

/*
 * SB_E_CORRUPT when the checksum is not right. Called once the version is known to be one of ours:
 * a newer one may have another checksum.
 */
int sb_seal_check(const uint8_t *data, size_t len, const char *what, struct sb_error *err);

#endif
