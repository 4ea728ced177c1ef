#!/bin/sh
# SPDX-License-Identifier: MIT
# The sandbox host on a real pool: the programs of tests/unit that run on
# local-disk there run on ZFS here.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/zfs.sh"

build=${SB_TOP_BUILDDIR:-.}
zfs_pool 256M || skip_all "$zfs_why"

# Hands each result of a TAP program on under its own name.
relay()
{
	SB_TEST_POOL=$pool CMOCKA_MESSAGE_OUTPUT=TAP \
		"$build/tests/unit/$1" >"$scratch/out" 2>&1 </dev/null
	status=$?
	while IFS= read -r line; do
		case $line in
		"ok "*) ok "$1: ${line#*- }" ;;
		"not ok "*) not_ok "$1: ${line#*- }" ;;
		*) printf '# %s\n' "$line" ;;
		esac
	done <"$scratch/out"
	is "$1 ends" "$status" 0
}

# What the host left.
left()
{
	zfs list -H -r -t filesystem -o name "$pool" | grep -c /s
}

relay test-host-service
relay test-host-snapshots
relay test-host-timeline
relay test-host-guard
relay test-host-races
relay test-env
relay test-env-remote
is "no dataset is left" "$(left)" 0

relay test-host-exec
relay test-runtime-quota
is "no dataset of killed tools is left" "$(left)" 0
finish
