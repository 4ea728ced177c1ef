#!/bin/sh
# SPDX-License-Identifier: MIT
# What a sandbox host costs, on local-disk and on ZFS where it can run; see host.py.
# Called by `make bench-host`.
storage=${1:-local-disk}
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"
need python3
pool=
if [ "$storage" = zfs ]; then
	. "${SB_TOP_SRCDIR:-.}/tests/lib/zfs.sh"
	zfs_pool 512M || skip_all "$zfs_why"
fi
start_host_for "$storage" --log-level info
echo "== $storage"
python3 "$src/tests/bench/host.py" "$build" "$host_socket" "$storage" "$host_pid" ${pool:+"$pool"}
stop_host
