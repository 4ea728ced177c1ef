/* SPDX-License-Identifier: MIT */
/* The version of the library. */
#include "config.h"

#include <sbsync/version.h>

const char *
sb_sync_version(void)
{
	return PACKAGE_VERSION;
}
