#!/bin/sh
# SPDX-License-Identifier: MIT
# The sandbox host on a real pool: the programs of tests/unit that run on local-disk there run on ZFS here.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/zfs.sh"

build=${SB_TOP_BUILDDIR:-.}
zfs_pool 256M || skip_all "$zfs_why"

# Hands each result of a TAP program on under its own name.
relay()
{
	SB_TEST_POOL=$pool CMOCKA_MESSAGE_OUTPUT=TAP "$build/tests/unit/$1" >"$scratch/out" 2>&1 </dev/null
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

relay test-host-service
relay test-host-snapshots
relay test-host-exec
relay test-host-races

# What the host left, mounted or not.
left()
{
	zfs list -H -r -t filesystem -o name "$pool" | grep /s
}
# zfs-fuse may keep a dataset busy for a while that nobody uses any more.
none_left()
{
	for d in $(left | sort -r); do
		[ "$(zfs get -H -o value mounted "$d")" = yes ] || zfs destroy "$d" 2>/dev/null
	done
	! left >/dev/null
}
mounted=$(for d in $(left); do zfs get -H -o value mounted "$d"; done | grep -c yes)
is "no dataset is left mounted" "$mounted" 0
if wait_for 20 none_left; then
	ok "no dataset is left"
elif why=$(zfs destroy "$(left | sort -r | head -n 1)" 2>&1); then
	ok "no dataset is left"
else
	case $why in
	*"dataset is busy"*) skip "no dataset is left" "zfs-fuse calls an unmounted dataset busy" ;;
	*) not_ok "no dataset is left" "$why" ;;
	esac
fi
finish
