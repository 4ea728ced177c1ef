/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_COMMIT_ATTRS_H
#define SBSYNC_COMMIT_ATTRS_H

#include <stdint.h>

/*
 * A file that is replaced by a new version is still the user's file: what no sync carries stays as
 * it was. Gives the staged file `staged` in `newfd` the owner, the group, the access control list
 * and the user attributes of `leaf` in `fd`, then `mode` again. Never what gives rights to run
 * (capabilities). What the system refuses is left out.
 */
void sb_commit_attrs_keep(int newfd, const char *staged, int fd, const char *leaf, uint16_t mode);

#endif
