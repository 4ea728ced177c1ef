/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_OCI_H
#define SB_HOST_OCI_H

#include <host/runtime/box.h>

/*
 * config.json of the box in its directory: the shared root, the workspace, rooms in memory, the
 * helper as first process.
 */
int sb_oci_write(struct sb_box_runtime *b, const struct sb_box *box,
	const struct sb_runtime_cmd *cmd, struct sb_error *err);

/*
 * A process as `runsc exec --process` reads it, with the environment of `cmd`, the arguments `argv`
 * and at most `pids` processes.
 */
int sb_oci_write_process(const char *path, const struct sb_runtime_cmd *cmd,
	const struct sb_strlist *argv, uint64_t pids, struct sb_error *err);

#endif
