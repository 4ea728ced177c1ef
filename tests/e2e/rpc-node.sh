#!/bin/sh
# SPDX-License-Identifier: MIT
# sbhostd driven by the real Connect client of npm, generated from doc/sandbox.proto: every
# procedure, then every field with what does not belong there. On local-disk, and on ZFS where it
# can run (rpc-node-zfs.sh).
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"

storage=${SB_RPC_STORAGE:-local-disk}
need node npm
[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 18 ] || skip_all "node is older than 18"
if [ "$storage" = zfs ]; then
	. "${SB_TOP_SRCDIR:-.}/tests/lib/zfs.sh"
	zfs_pool 512M || skip_all "$zfs_why"
fi
rpc_node_modules

start_host_for "$storage"
relay every.mjs
relay bad.mjs
stop_host
is "the host ends in order" "$host_status" 0
finish
