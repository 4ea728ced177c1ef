/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_OCI_H
#define SB_HOST_OCI_H

#include <host/runtime/box-stage.h>

/*
 * Writes config.json into the directory of the box: the shared root, the workspace, directories in
 * memory, the helper as first process. What comes from the host goes by the stage.
 */
int sb_oci_write(struct sb_box_runtime *b, const struct sb_box *box,
	const struct sb_runtime_cmd *cmd, struct sb_box_stage *stage, struct sb_error *err);

/*
 * Writes a process as `runsc exec --process` reads it: the environment of `cmd`, the arguments
 * `argv`, at most `pids` processes, as `user`, who has no capabilities unless it is 0.
 */
int sb_oci_write_process(const char *path, const struct sb_runtime_cmd *cmd,
	const struct sb_strlist *argv, uint64_t pids, uid_t user, struct sb_error *err);

#endif
