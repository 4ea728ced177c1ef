#!/bin/sh
# SPDX-License-Identifier: MIT
# kill -9 of a host at work, at random moments: no acknowledged session, snapshot, hold or byte is lost, nothing is left
# over, every state is legal. SB_CRASH_LOCAL and SB_CRASH_ZFS are the numbers of rounds, SB_CRASH_SEED the seed,
# SB_CRASH_SLOTS the number of sessions for each of four threads.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/zfs.sh"

hostcrash=${SB_TOP_BUILDDIR:-.}/tests/fault/hostcrash
seed=${SB_CRASH_SEED:-$$}
echo "# seed $seed"

mkdir -p "$scratch/local/bases/img" "$scratch/zfs"
echo hello >"$scratch/local/bases/img/hello"
rounds=${SB_CRASH_LOCAL:-15}
check "local-disk, killed $rounds times" "$hostcrash" "$scratch/local" "$rounds" "$seed"

rounds=${SB_CRASH_ZFS:-5}
if zfs_pool 256M; then
	check "zfs, killed $rounds times" "$hostcrash" "$scratch/zfs" "$rounds" "$seed" "$pool"
else
	skip "zfs, killed $rounds times" "$zfs_why"
fi
finish
