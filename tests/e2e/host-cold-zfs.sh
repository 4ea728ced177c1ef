#!/bin/sh
# SPDX-License-Identifier: MIT
# Deep pause and deep resume on a real pool.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/zfs.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/hosttests.sh"

[ -n "${SB_COLD_FULL-}" ] || skip_all "slow: say SB_COLD_FULL=1"
zfs_pool 512M || skip_all "$zfs_why"
export SB_TEST_POOL="$pool"
relay test-host-cold
finish
