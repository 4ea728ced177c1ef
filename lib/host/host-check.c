/* SPDX-License-Identifier: MIT */
/* Mistakes in the options of a host that can be seen without opening it. */
#include "config.h"

#include <host/host.h>
#include <host/storage/storage.h>

void
sb_host_check(const struct sb_host_opts *o, void (*found)(const char *what, void *arg), void *arg)
{
	struct sb_error err = { 0 };
	int r = sb_host_check_options(o, &err);

	if (r < 0)
		found(err.msg, arg);
	if (o->storage == SB_HOST_ZFS)
		r = sb_storage_zfs_check(o, &err);
	else if (o->storage == SB_HOST_LOCAL_DISK)
		r = sb_storage_local_check(o, &err);
	else
		r = 0;
	if (r < 0)
		found(err.msg, arg);
}
