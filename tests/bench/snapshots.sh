#!/bin/sh
# SPDX-License-Identifier: MIT
# Snapshots, rollback, fork and create on a storage: snapshots.sh overlay|btrfs|zfs. See
# snapshots.py. Called by `make bench-host`.
storage=${1:-overlay}
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
pool=
if [ "$storage" = zfs ]; then
	. "${SB_TOP_SRCDIR:-.}/tests/lib/zfs.sh"
	zfs_pool 900M || skip_all "$zfs_why"
	mkdir "$scratch/at"
	place=$scratch/at
else
	. "${SB_TOP_SRCDIR:-.}/tests/lib/loop.sh"
	if [ "$storage" = overlay ]; then kind=ext4; else kind=$storage; fi
	loop_mount "$kind" 6G || skip_all "$loop_why"
fi
echo "== $storage"
python3 "${SB_TOP_SRCDIR:-.}/tests/bench/snapshots.py" "${SB_TOP_BUILDDIR:-.}" "$place" \
	"$storage" ${pool:+"$pool"}
