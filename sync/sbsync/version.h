/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_VERSION_H
#define SBSYNC_VERSION_H

#include <sb/error.h>

/* The version of the library, for example "0.1.0". */
SB_API const char *sb_sync_version(void);

#endif
