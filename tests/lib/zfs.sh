# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# A private, file-backed pool for a test. Source after tap.sh:
#     . "${SB_TOP_SRCDIR:-.}/tests/lib/zfs.sh"
#     zfs_pool 256M          # sets $pool; skips the whole file when ZFS cannot run here
# It has the base image $pool/bases/img@initial and is gone when the test ends, however it ends. zfs-fuse is one
# daemon a machine: the tests share it under a lock, and the last one stops it if a test had started it.

zfs_lock=/var/lock/sb-test-zfs.lock
zfs_started=/var/lock/sb-test-zfs.started

# Kernel ZFS needs no daemon; zfs-fuse may have to be started.
zfs_up()
{
	zpool list >/dev/null 2>&1 && return 0
	command -v zfs-fuse >/dev/null 2>&1 || skip_all "ZFS is not running and zfs-fuse is not installed"
	[ -c /dev/fuse ] || skip_all "no /dev/fuse for zfs-fuse"
	mkdir -p /var/run/zfs
	# The daemon must not inherit the lock.
	zfs-fuse >"$scratch/zfs-fuse.log" 2>&1 </dev/null 9>&-
	wait_for 10 zpool list || skip_all "zfs-fuse does not start: $(tail -n 1 "$scratch/zfs-fuse.log")"
	pidof zfs-fuse >"$zfs_started"
}

zfs_down()
{
	[ -z "$pool" ] || wait_for 20 zpool destroy -f "$pool" || echo "# pool $pool could not be destroyed"
	flock -u 9
	# Nobody else uses it: end it if a test began it.
	if flock -n -x 9 && [ -s "$zfs_started" ]; then
		pid=$(cat "$zfs_started")
		kill "$pid" 2>/dev/null
		wait_for 20 sh -c "! kill -0 $pid"
		rm -f "$zfs_started"
	fi
	exec 9>&-
}

zfs_pool()
{
	need zfs zpool flock
	[ "$(id -u)" = 0 ] || skip_all "pools need root"
	pool=
	exec 9>"$zfs_lock" || skip_all "cannot write $zfs_lock"
	# One at a time while it starts, together while it is used.
	flock -x 9
	at_exit zfs_down
	zfs_up
	flock -s 9
	truncate -s "$1" "$scratch/pool.img"
	name=sbtest$$
	zpool create -f -o cachefile=none -m "$scratch/mnt" "$name" "$scratch/pool.img" >"$scratch/zpool.log" 2>&1 9>&- ||
		skip_all "no pool: $(tail -n 1 "$scratch/zpool.log")"
	pool=$name
	zfs create "$pool/bases" && zfs create "$pool/bases/img" || skip_all "no datasets in $pool"
	img=$scratch/mnt/bases/img
	printf 'hello\n' >"$img/hello"
	mkdir "$img/dir"
	printf 'deep\n' >"$img/dir/deep"
	chmod 600 "$img/dir/deep"
	ln -s hello "$img/link"
	zfs snapshot "$pool/bases/img@initial"
}
