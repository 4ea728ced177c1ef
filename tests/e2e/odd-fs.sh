#!/bin/sh
# SPDX-License-Identifier: MIT
# Roots on file systems that refuse what Linux usually grants: no flags of rename, no change of
# modes, no attributes. What one of them refuses is left alone and reported, and never blocks
# later runs.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
[ -w /dev/fuse ] || skip_all "no /dev/fuse here"
need bindfs fusermount

build=${SB_TOP_BUILDDIR:-.}
case $build in /*) ;; *) build=$PWD/$build ;; esac
sbsync=$build/sbsync
export SBSYNC_STATE_DIR="$scratch/state"
cd "$scratch" || exit 1

# try NAME OPTIONS...: a workspace behind bindfs with these options.
try()
{
	name=$1
	shift
	mkdir -p $name/ws.real $name/ws
	bindfs "$@" $name/ws.real $name/ws >mount.out 2>&1 || {
		skip "$name" "bindfs: $(head -n 1 mount.out)"
		return 1
	}
	at_exit "fusermount -uz '$scratch/$name/ws' 2>/dev/null"
}

story()
{
	n=$1
	mkdir -p $n/ws/d/sub $n/ws/gone
	for f in a d/b d/sub/c gone/x; do echo one >$n/ws/$f; done
	echo move me please >$n/ws/m
	check "$n: start" "$sbsync" start -q --name $n $n/ws $n/rt
	echo two >>$n/rt/a && echo new >$n/rt/new && rm -r $n/rt/gone && mv $n/rt/m $n/rt/d/m2
	mkdir $n/rt/nd && echo x >$n/rt/nd/x && rm -r $n/rt/d/sub && echo file >$n/rt/d/sub
	check "$n: a turn" "$sbsync" sync -q --max-delete 100 $n
	is "$n: equal" "$(diff -r -x .sbsync-stage $n/ws $n/rt)" ""
	rm $n/ws/new && echo three >>$n/rt/a && mv $n/ws/d $n/ws/e
	check "$n: another" "$sbsync" sync -q --max-delete 100 $n
	is "$n: still equal" "$(diff -r -x .sbsync-stage $n/ws $n/rt)" ""
	check "$n: no journal is left" test ! -e $n/ws/.sbsync-stage
	check "$n: stop" "$sbsync" stop -q $n
}

if try plain -o nonempty; then story plain; fi
if try nolink --hide-hard-links; then story nolink; fi
if try notime --chown-ignore --chmod-ignore; then story notime; fi
if try noxattr --xattr-none; then story noxattr; fi

# The runtime on such a file system: a deletion here right after the start is none of its changes.
mkdir -p far/ws far/rt.real far/rt && echo one >far/ws/a && echo two >far/ws/b
if bindfs --chmod-ignore far/rt.real far/rt 2>/dev/null; then
	at_exit "fusermount -uz '$scratch/far/rt' 2>/dev/null"
	check "far: start" "$sbsync" start -q --name far far/ws far/rt
	rm far/ws/b
	check "far: a turn" "$sbsync" sync -q far
	check "far: a deletion holds" test ! -e far/ws/b -a ! -e far/rt/b
	check "far: stop" "$sbsync" stop -q far
fi
finish
