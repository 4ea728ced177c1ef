#!/bin/sh
# SPDX-License-Identifier: MIT
# The sandbox host on a real pool: the programs of tests/unit that run on
# local-disk there run on ZFS here.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/zfs.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/hosttests.sh"

zfs_pool 256M || skip_all "$zfs_why"
export SB_TEST_POOL="$pool"

# What the host left.
left()
{
	zfs list -H -r -t filesystem -o name "$pool" | grep -c /s
}

relay test-host-service
relay test-host-snapshots
relay test-host-timeline
relay test-host-writers
relay test-host-guard
relay test-host-races
relay test-env
relay test-env-remote
is "no dataset is left" "$(left)" 0

relay test-host-exec
relay test-runtime-quota
is "no dataset of killed tools is left" "$(left)" 0
finish
