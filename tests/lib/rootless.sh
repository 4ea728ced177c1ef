# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Runs a test as an ordinary user who has numbers of other users to give to containers. Source it
# first of all, then
#     rootless_run "$0"
# Root starts the script anew as a user that only it knows: /etc/passwd, /etc/subuid and their kin
# are other files in a mount namespace of its own, and the source and the build are mounted where
# that user can reach them. An ordinary user goes on with what the machine gives.

rootless_no()
{
	echo "1..0 # SKIP $1"
	exit 0
}

rootless_run()
{
	for program in podman newuidmap newgidmap unshare setpriv; do
		command -v $program >/dev/null || rootless_no "$program is not installed"
	done
	[ "$(id -u)" -eq 0 ] || return 0
	rootless_dir=$(mktemp -d "${TMPDIR:-/tmp}/sbroot.XXXXXX") || exit 1
	trap 'rm -rf --one-file-system "$rootless_dir"' EXIT
	rootless_src=$(cd "${SB_TOP_SRCDIR:-.}" && pwd)
	rootless_self=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
	rootless_build=$(cd "${SB_TOP_BUILDDIR:-.}" && pwd)
	chmod 755 "$rootless_dir"
	mkdir "$rootless_dir/src" "$rootless_dir/build" "$rootless_dir/home" "$rootless_dir/tmp" \
		"$rootless_dir/run"
	chmod 700 "$rootless_dir/run"
	chown 54321:54321 "$rootless_dir/home" "$rootless_dir/tmp" "$rootless_dir/run"
	{
		cat /etc/passwd
		echo "sbuser:x:54321:54321::$rootless_dir/home:/bin/sh"
	} >"$rootless_dir/passwd"
	{
		cat /etc/group
		echo 'sbuser:x:54321:'
	} >"$rootless_dir/group"
	echo sbuser:2000000000:65536 >"$rootless_dir/subuid"
	cp "$rootless_dir/subuid" "$rootless_dir/subgid"
	# Podman says so where it is not: a mount that others can follow.
	unshare --mount --propagation private sh -c '
		cd "$1" &&
		for f in passwd group subuid subgid; do
			[ -e /etc/$f ] || exit 99
			mount --bind "$1/$f" /etc/$f || exit 99
		done
		mount --bind "$2" "$1/src" && mount --bind "$3" "$1/build" || exit 99
		# Open to everybody on most machines: networks of their own need it.
		[ ! -e /dev/net/tun ] || { mknod -m 666 "$1/tun" c 10 200 &&
			mount --bind "$1/tun" /dev/net/tun; }
		mount --make-rshared /
		exec setpriv --reuid 54321 --regid 54321 --init-groups --inh-caps=-all \
			env -u DBUS_SESSION_BUS_ADDRESS HOME="$1/home" USER=sbuser LOGNAME=sbuser \
			TMPDIR="$1/tmp" XDG_RUNTIME_DIR="$1/run" \
			SB_TOP_SRCDIR="$1/src" SB_TOP_BUILDDIR="$1/build" \
			LD_LIBRARY_PATH="$1/build/.libs" SB_BOX="$1/build/sb-box" \
			SB_ROOTLESS=yes \
			"$1/src/$4"
	' sh "$rootless_dir" "$rootless_src" "$rootless_build" \
		"${rootless_self#"$rootless_src/"}"
	rootless_status=$?
	[ $rootless_status -ne 99 ] || rootless_no "files cannot be mounted for one user here"
	exit $rootless_status
}
