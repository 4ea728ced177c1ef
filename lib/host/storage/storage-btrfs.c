/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/storage/storage.h>

struct sb_storage *
sb_storage_btrfs_open(const struct sb_host_opts *o, struct sb_error *err)
{
	(void)o;
	(void)sb_fail(err, SB_E_UNSUPPORTED, "not yet");
	return NULL;
}
