# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
# A file system of its own for a test, on a loop image. Source right after tap.sh:
#     . "${SB_TOP_SRCDIR:-.}/tests/lib/loop.sh"
#     loop_mount btrfs || skip_all "$loop_why"    # sets $place, or says why it cannot be had
# The test is started once more in a mount namespace, so that no process of another test keeps what
# this one unmounts; all is gone when it ends, however it ends.

loop_why=
place=

if [ -z "${SB_LOOP_OWN-}" ] && [ "$(id -u)" = 0 ] &&
	unshare -m --propagation private true 2>/dev/null; then
	trap - EXIT HUP INT TERM
	rm -rf "$scratch"
	SB_LOOP_OWN=1 exec unshare -m --propagation private sh "$0" "$@"
fi

loop_no()
{
	loop_why=$1
	return 1
}

loop_unmount()
{
	awk -v at="$place/" 'index($5, at) == 1 { print $5 }' /proc/self/mountinfo |
		while read -r loop_at; do
			echo "# left mounted: $loop_at"
			umount -l "$loop_at"
		done
	umount "$place" || umount -l "$place"
}

# loop_mount FILE-SYSTEM [SIZE]
loop_mount()
{
	[ "$(id -u)" = 0 ] || loop_no "mounting needs root" || return
	[ -n "${SB_LOOP_OWN-}" ] || loop_no "no mount namespace can be made here" || return
	command -v "mkfs.$1" >/dev/null 2>&1 || loop_no "mkfs.$1 is not installed" || return
	truncate -s "${2:-600M}" "$scratch/image"
	"mkfs.$1" -q "$scratch/image" >"$scratch/mkfs.log" 2>&1 ||
		loop_no "mkfs.$1: $(tail -n 1 "$scratch/mkfs.log")" || return
	mkdir "$scratch/at"
	mount -o loop "$scratch/image" "$scratch/at" 2>"$scratch/mkfs.log" ||
		loop_no "a loop image of $1 cannot be mounted here" || return
	place=$scratch/at
	at_exit loop_unmount
}
