/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_STRLIST_H
#define SB_BASE_STRLIST_H

#include <base/cleanup.h>
#include <sb/strlist.h>

/* The public list, freed at the end of its scope. */
SB_CLEANUP_VALUE(sb_strlist, sb_strlist_free)

#endif
