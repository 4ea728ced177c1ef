#!/bin/sh
# SPDX-License-Identifier: MIT
# --cross-mounts: a file system that is unmounted later takes nothing with it, on either side.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
[ -w /dev/fuse ] || skip_all "no /dev/fuse here"
need bindfs fusermount

build=${SB_TOP_BUILDDIR:-.}
case $build in /*) ;; *) build=$PWD/$build ;; esac
sbsync=$build/sbsync
export SBSYNC_STATE_DIR="$scratch/state"
cd "$scratch" || exit 1
at_exit "for d in '$scratch'/*/*/m; do fusermount -uz \"\$d\" 2>/dev/null; done"

up()
{
	mkdir -p "$1" && bindfs "$2" "$1" >mount.out 2>&1
}

# Both sides as they should be after a sync.
sync_keeps()
{
	"$sbsync" sync --max-delete 100 "$@" >out 2>&1 || { cat out; return 1; }
	grep -q "another file system" out || { cat out; return 1; }
}

for side in ws rt; do
	[ $side = ws ] && other=rt || other=ws
	mkdir -p $side.d/real $side.d/ws $side.d/rt
	cd $side.d || exit 1
	for i in 1 2 3; do echo $i >real/f$i; done
	up $side/m real || { skip "$side" "bindfs: $(head -n 1 mount.out)"; cd ..; continue; }
	echo x >ws/plain
	if [ $side = ws ]; then
		check "$side: start" "$sbsync" start -q --cross-mounts --name $side ws rt
	else
		check "$side: start" "$sbsync" start -q --name $side ws rt
		check "$side: a sync" "$sbsync" sync -q --cross-mounts $side
	fi
	is "$side: the mounted files went" "$(ls $other/m)" "f1
f2
f3"
	fusermount -u $side/m
	check "$side: unmounted" sync_keeps --cross-mounts $side
	is "$side: nothing was deleted" "$(ls $other/m)" "f1
f2
f3"
	echo y >ws/plain
	check "$side: once more, the rest syncs" sync_keeps --cross-mounts $side
	is "$side: it did" "$(cat rt/plain)" y
	check "$side: without the option" sync_keeps $side
	rmdir $side/m
	check "$side: the mount point is gone" sync_keeps --cross-mounts $side
	is "$side: still nothing was deleted" "$(ls $other/m)" "f1
f2
f3"
	rm real/f2 && echo new >real/f4
	up $side/m ./real
	check "$side: mounted again" "$sbsync" sync -q --cross-mounts $side
	is "$side: its changes count" "$(ls $other/m)" "f1
f3
f4"
	fusermount -u $side/m
	cd ..
done
finish
