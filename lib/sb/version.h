/* SPDX-License-Identifier: MIT */
#ifndef SB_VERSION_H
#define SB_VERSION_H

#include <sb/error.h>

/* The version of libsandbox, for example "0.1.0". */
SB_API const char *sb_version(void);

#endif
