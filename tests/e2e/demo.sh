#!/bin/sh
# SPDX-License-Identifier: MIT
# The demo of ./quickstart does what it says.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/zfs.sh"

# zfs-fuse is one daemon for all tests of the machine: hold it while the demo uses it.
pool=
if [ "$(id -u)" = 0 ] && command -v zpool >/dev/null && [ -c /dev/fuse ] && exec 9>>"$zfs_lock" 8>>"$zfs_lock.start"; then
	flock -x 9
	at_exit zfs_down
	if ! zpool list >/dev/null 2>&1 && command -v zfs-fuse >/dev/null; then
		mkdir -p /var/run/zfs
		zfs-fuse >"$scratch/zfs-fuse.log" 2>&1 </dev/null 9>&-
		wait_for 10 zpool list && pidof zfs-fuse >"$zfs_started"
	fi
	flock -s 9
fi

check "every promise of the demo holds" "${SB_TOP_SRCDIR:-.}/demo/demo.sh" "${SB_TOP_BUILDDIR:-build}"
finish
