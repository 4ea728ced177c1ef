#!/bin/sh
# SPDX-License-Identifier: MIT
# kill -9 of sbhostd at work, at random moments: no acknowledged session, snapshot, hold or byte is
# lost, nothing is left over, every state is legal. SB_CRASH_LOCAL and SB_CRASH_ZFS are the numbers
# of rounds, SB_CRASH_SEED the seed, SB_CRASH_SLOTS the number of sessions for each of four threads.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/zfs.sh"

need python3
hostcrash()
{
	what=$1
	shift
	PYTHONDONTWRITEBYTECODE=1 python3 "${SB_TOP_SRCDIR:-.}/tests/fault/hostcrash.py" \
		"$(cd "${SB_TOP_BUILDDIR:-.}" && pwd)" "$@" >"$scratch/out" 2>&1 </dev/null
	status=$?
	[ ! -s "$scratch/out" ] || diag <"$scratch/out"
	rm -f "$scratch/out"
	[ $status = 0 ] || tail -n 30 "$1/sbhostd.log" | diag
	is "$what" "$status" 0
}
# What was waited for when the time is over.
at_exit '[ ! -s "$scratch/out" ] || diag <"$scratch/out"'
seed=${SB_CRASH_SEED:-1}
echo "# seed $seed"

mkdir -p "$scratch/local/bases/img" "$scratch/zfs"
echo hello >"$scratch/local/bases/img/hello"
rounds=${SB_CRASH_LOCAL:-15}
hostcrash "local-disk, killed $rounds times" "$scratch/local" "$rounds" "$seed"

rounds=${SB_CRASH_ZFS:-5}
if zfs_pool 256M; then
	hostcrash "zfs, killed $rounds times" "$scratch/zfs" "$rounds" "$seed" "$pool"
else
	skip "zfs, killed $rounds times" "$zfs_why"
fi
finish
