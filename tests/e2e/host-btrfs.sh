#!/bin/sh
# SPDX-License-Identifier: MIT
# The sandbox host on storage btrfs: the programs that run on local-disk in tests/unit.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/loop.sh"

storage=btrfs
loop_mount btrfs || skip_all "$loop_why"

relay test-storage-auto
relay test-host-service
relay test-host-snapshots
relay test-host-timeline
for SB_TEST_RUNTIME in none bwrap; do
	export SB_TEST_RUNTIME
	relay test-box-swap
done
unset SB_TEST_RUNTIME
relay test-host-races
relay test-env
relay test-env-remote
relay test-host-exec
is "nothing is left" "$(find "$place" -mindepth 1 -maxdepth 1 -name 's[0-9]*' | wc -l)" 0
finish
