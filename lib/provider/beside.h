/* SPDX-License-Identifier: MIT */
#ifndef SB_PROVIDER_BESIDE_H
#define SB_PROVIDER_BESIDE_H

/*
 * A program of ours: beside the running one (which libtool may have put one level down), else by
 * its name alone, for PATH. A new string; NULL: no memory.
 */
char *sb_beside_program(const char *name);

#endif
