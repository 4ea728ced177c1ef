/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_TOOL_SNAPSHOT_H
#define SB_HOST_TOOL_SNAPSHOT_H

#include <host/tool/toolcall.h>

/*
 * Takes the snapshot after a tool call if the host makes one for each (per_tool_snapshots) and the
 * call has an id. Writes its name, or why there is none, into `out`; a failure does not undo the
 * call.
 */
void sb_tool_snapshot_take(struct sb_toolcall *c, struct sb_host_tool_result *out);

#endif
