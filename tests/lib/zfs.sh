# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# A private, file-backed pool for a test. Source after tap.sh:
#     . "${SB_TOP_SRCDIR:-.}/tests/lib/zfs.sh"
#     zfs_pool 256M || skip_all "$zfs_why"     # sets $pool, or says why ZFS cannot run here
# It has the base image $pool/bases/img@initial and is gone when the test ends, however it ends. zfs-fuse is one
# daemon a machine: the tests share it, and the last one stops it if a test had started it.

# Held shared by every test that uses ZFS (9), exclusively while the daemon starts or stops (8).
zfs_lock=/var/lock/sb-test-zfs.lock
zfs_started=/var/lock/sb-test-zfs.started
zfs_why=
pool=

zfs_no()
{
	zfs_why=$1
	return 1
}

# Kernel ZFS needs no daemon; zfs-fuse may have to be started.
zfs_up()
{
	zpool list >/dev/null 2>&1 8>&- 9>&- && return 0
	command -v zfs-fuse >/dev/null 2>&1 || zfs_no "ZFS is not running and zfs-fuse is not installed" || return
	[ -c /dev/fuse ] || zfs_no "no /dev/fuse for zfs-fuse" || return
	mkdir -p /var/run/zfs
	# The daemon must not inherit the locks.
	zfs-fuse >"$scratch/zfs-fuse.log" 2>&1 </dev/null 8>&- 9>&-
	wait_for 10 zpool list || zfs_no "zfs-fuse does not start: $(tail -n 1 "$scratch/zfs-fuse.log")" || return
	pidof zfs-fuse >"$zfs_started"
}

zfs_down()
{
	# Never by force: zfs-fuse waits for ever for files that are open in what it was forced to unmount.
	[ -z "$pool" ] || wait_for 20 timeout 60 zpool destroy "$pool" || echo "# pool $pool could not be destroyed"
	flock -x 8
	flock -u 9
	# Nobody else uses it: end it if a test began it.
	if flock -n -x 9 && [ -s "$zfs_started" ]; then
		zfs_pid=$(cat "$zfs_started")
		kill "$zfs_pid" 2>/dev/null
		wait_for 20 sh -c "! kill -0 $zfs_pid"
		rm -f "$zfs_started"
	fi
	exec 8>&- 9>&-
}

zfs_pool()
{
	for zfs_p in zfs zpool flock pidof; do
		command -v "$zfs_p" >/dev/null 2>&1 || zfs_no "$zfs_p is not installed" || return
	done
	[ "$(id -u)" = 0 ] || zfs_no "pools need root" || return
	{ : >>"$zfs_lock"; } 2>/dev/null || zfs_no "cannot write $zfs_lock" || return
	exec 9>>"$zfs_lock" 8>>"$zfs_lock.start"
	flock -x 8
	flock -s 9
	at_exit zfs_down
	zfs_up
	zfs_ok=$?
	flock -u 8
	[ $zfs_ok = 0 ] || return
	truncate -s "$1" "$scratch/pool.img"
	zfs_name=sbtest$$
	zpool create -f -o cachefile=none -m "$scratch/mnt" "$zfs_name" "$scratch/pool.img" >"$scratch/zpool.log" 2>&1 ||
		zfs_no "no pool: $(tail -n 1 "$scratch/zpool.log")" || return
	pool=$zfs_name
	zfs create "$pool/bases" && zfs create "$pool/bases/img" || zfs_no "no datasets in $pool" || return
	zfs_img=$scratch/mnt/bases/img
	printf 'hello\n' >"$zfs_img/hello"
	mkdir "$zfs_img/dir"
	printf 'deep\n' >"$zfs_img/dir/deep"
	chmod 600 "$zfs_img/dir/deep"
	ln -s hello "$zfs_img/link"
	zfs snapshot "$pool/bases/img@initial"
}
