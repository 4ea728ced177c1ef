/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/tree/entry.h>

bool
sb_entry_same_content(const struct sb_entry *a, const struct sb_entry *b)
{
	if (a->type != b->type)
		return false;
	if (a->type == SB_ENTRY_DIR)
		return true;
	if (a->type == SB_ENTRY_FILE && ((a->flags | b->flags) & SB_ENTRY_UNHASHED))
		return false;
	return a->size == b->size && sb_digest_eq(&a->digest, &b->digest) &&
		sb_digest_known(&a->digest);
}

bool
sb_entry_same(const struct sb_entry *a, const struct sb_entry *b)
{
	return sb_entry_same_content(a, b) && a->mtime == b->mtime &&
		(a->type == SB_ENTRY_LINK || a->mode == b->mode);
}
