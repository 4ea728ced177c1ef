/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_HOST_STORAGE_H
#define SB_HOST_HOST_STORAGE_H

#include <sb/error.h>

struct sb_host;

/*
 * Opens the storage of the host, whose database is open. A host that has sessions stays on the
 * storage that they are on: AUTO means that one, and another that was asked for by name is
 * SB_E_INVAL.
 */
int sb_host_storage_open(struct sb_host *h, struct sb_error *err);

#endif
