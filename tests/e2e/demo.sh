#!/bin/sh
# SPDX-License-Identifier: MIT
# The demo of ./quickstart does what it says.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/zfs.sh"

# The demo starts a zfs-fuse where none runs; here none does.
[ -z "${SB_ZFS_OWN-}" ] || zfs_own_place
check "every promise of the demo holds" \
	"${SB_TOP_SRCDIR:-.}/demo/demo.sh" "${SB_TOP_BUILDDIR:-build}"
finish
