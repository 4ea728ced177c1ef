# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
# A private, file-backed pool for a test. Source right after tap.sh:
#     . "${SB_TOP_SRCDIR:-.}/tests/lib/zfs.sh"
#     zfs_pool 256M || skip_all "$zfs_why"     # sets $pool, or says why ZFS cannot run here
# It has the base image $pool/bases/img@initial and is gone when the test ends, however it ends.
#
# Where the kernel has no ZFS, the test is started once more in a mount namespace, with a zfs-fuse
# of its own: nothing that other tests do (a sandbox of theirs holds a copy of every mount, a crash
# test leaves commands half-way) reaches it, and nothing of it stays behind. zfs-fuse has deadlocks
# of its own. A daemon that answers nobody for ZFS_PATIENCE seconds, or dies, says nothing about us:
# the test is begun anew with another daemon, once, and says so.

ZFS_PATIENCE=${ZFS_PATIENCE:-60}
zfs_why=
zfs_name=sbtest$$
pool=

zfs_no()
{
	zfs_why=$1
	return 1
}

# What the test printed.
zfs_show()
{
	[ ! -f "$scratch/tap" ] || cat "$scratch/tap"
	rm -f "$scratch/tap"
}

# Ends the test that runs inside, with all that it started.
zfs_end()
{
	kill -s TERM -- "-$zfs_inside"
	wait_for 20 sh -c "! kill -0 $zfs_inside" || kill -s KILL -- "-$zfs_inside"
}

# Runs this test inside, twice when its daemon failed the first time; never returns.
zfs_supervise()
{
	trap 'zfs_end 2>/dev/null; zfs_show; exit 143' TERM
	for zfs_round in 1 2; do
		rm -f "$scratch/zfs-failed"
		SB_ZFS_OWN=$scratch setsid setpriv --pdeathsig TERM unshare -m \
			--propagation private sh "$0" "$@" >"$scratch/tap" 2>&1 </dev/null &
		zfs_inside=$!
		while kill -0 $zfs_inside 2>/dev/null; do
			[ ! -f "$scratch/zfs-failed" ] || zfs_end 2>/dev/null
			sleep 0.2
		done
		wait $zfs_inside
		zfs_status=$?
		[ -f "$scratch/zfs-failed" ] && [ $zfs_round = 1 ] || break
		diag <"$scratch/zfs-failed"
		zfs_show | diag
		echo "# from the beginning, with a new zfs-fuse"
	done
	[ ! -f "$scratch/zfs-failed" ] || diag <"$scratch/zfs-failed"
	zfs_show
	exit "$zfs_status"
}

# Kernel ZFS needs no daemon, and without these there is nothing to start.
zfs_wants_own()
{
	[ "$(id -u)" = 0 ] && [ -c /dev/fuse ] && [ ! -e /dev/zfs ] &&
		command -v zfs-fuse >/dev/null 2>&1 &&
		setpriv --pdeathsig TERM unshare -m --propagation private true 2>/dev/null
}

if [ -z "${SB_ZFS_OWN-}" ] && zfs_wants_own; then
	zfs_supervise "$@"
fi

# Ends a daemon that answers nobody, so that nothing waits for it any more.
zfs_watch()
{
	while sleep 2 && kill -0 "$zfs_main" 2>/dev/null; do
		zfs_what=died
		if kill -0 "$zfs_pid" 2>/dev/null; then
			# Its commands and its file systems are served by different threads.
			timeout -k 1 "$ZFS_PATIENCE" \
				sh -c 'zpool list; zfs list -H -o name "$1"; stat -f "$2"' \
				sh "$zfs_name" "$scratch/mnt" >/dev/null 2>&1
			zfs_rc=$?
			[ $zfs_rc = 124 ] || [ $zfs_rc = 137 ] || continue
			zfs_what="answered nobody for $ZFS_PATIENCE seconds"
		fi
		kill -0 "$zfs_main" 2>/dev/null || return
		{
			echo "zfs-fuse $zfs_what; what was under way:"
			ps -eo pid,ppid,etimes,stat,wchan:24,args |
				grep -E ' [z](fs|pool)|/[z](fs|pool)'
			for zfs_c in /sys/fs/fuse/connections/*/waiting; do
				echo "$zfs_c: $(cat "$zfs_c")"
			done
		} >"$SB_ZFS_OWN/zfs-failed"
		kill -9 "$zfs_pid" 2>/dev/null
		return
	done
}

# The directories of the daemon: one that runs elsewhere is neither seen nor disturbed.
zfs_own_place()
{
	mkdir -p /run/zfs /var/lock/zfs && mount -t tmpfs zfs-run /run/zfs &&
		mount -t tmpfs zfs-lock /var/lock/zfs
}

zfs_up()
{
	if [ -z "${SB_ZFS_OWN-}" ]; then
		zpool list >/dev/null 2>&1 ||
			zfs_no "ZFS is not running, and zfs-fuse cannot be started here"
		return
	fi
	zfs_own_place 2>/dev/null || zfs_no "no place of its own for zfs-fuse" || return
	setpriv --pdeathsig KILL zfs-fuse -n \
		--no-kstat-mount >"$scratch/zfs-fuse.log" 2>&1 </dev/null &
	zfs_pid=$!
	zfs_main=$$
	wait_for 20 zpool list ||
		zfs_no "zfs-fuse does not start: $(tail -n 1 "$scratch/zfs-fuse.log")" || return
	zfs_watch >/dev/null 2>&1 &
	zfs_watcher=$!
}

zfs_down()
{
	if [ -n "${SB_ZFS_OWN-}" ]; then
		kill -9 ${zfs_watcher-} ${zfs_pid-} 2>/dev/null
		wait ${zfs_watcher-} ${zfs_pid-} 2>/dev/null
		# With all that is mounted inside.
		umount -l "$scratch/mnt" "$scratch/pool" 2>/dev/null
	elif [ -n "$pool" ]; then
		wait_for 20 timeout 60 zpool destroy "$pool" ||
			echo "# pool $pool could not be destroyed"
	fi
}

# Where the pool's file is: in memory when that is plenty, as a slow disk makes every command slow.
zfs_image_place()
{
	mkdir "$scratch/pool"
	zfs_free=$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)
	[ -z "${SB_ZFS_OWN-}" ] || [ "${zfs_free:-0}" -lt 4096 ] ||
		mount -t tmpfs -o size=1g zfs-pool "$scratch/pool"
}

zfs_pool()
{
	for zfs_p in zfs zpool; do
		command -v "$zfs_p" >/dev/null 2>&1 || zfs_no "$zfs_p is not installed" || return
	done
	[ "$(id -u)" = 0 ] || zfs_no "pools need root" || return
	at_exit zfs_down
	zfs_up || return
	zfs_image_place
	truncate -s "$1" "$scratch/pool/img"
	zpool create -f -o cachefile=none \
		-m "$scratch/mnt" "$zfs_name" "$scratch/pool/img" >"$scratch/zpool.log" 2>&1 ||
		zfs_no "no pool: $(tail -n 1 "$scratch/zpool.log")" || return
	pool=$zfs_name
	zfs create "$pool/bases" && zfs create "$pool/bases/img" ||
		zfs_no "no datasets in $pool" || return
	zfs_img=$scratch/mnt/bases/img
	printf 'hello\n' >"$zfs_img/hello"
	mkdir "$zfs_img/dir"
	printf 'deep\n' >"$zfs_img/dir/deep"
	chmod 600 "$zfs_img/dir/deep"
	ln -s hello "$zfs_img/link"
	zfs snapshot "$pool/bases/img@initial"
}
