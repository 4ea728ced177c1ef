#!/bin/sh
# SPDX-License-Identifier: MIT
# Storages that are killed in the middle of every change, and a machine that loses its power: what
# was reported is there, what was not is there or not, nothing is left over. A sample of both here;
# `make fault-storage` tries SB_STORAGE_KILLS=0 (every call) and SB_STORAGE_IMAGES=500.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"

need python3
[ "$(id -u)" = 0 ] || skip_all "mounting needs root"
src=$(cd "${SB_TOP_SRCDIR:-.}" && pwd)
build=$(cd "${SB_TOP_BUILDDIR:-.}" && pwd)
kills=${SB_STORAGE_KILLS:-6}
images=${SB_STORAGE_IMAGES:-6}

# What is still mounted below a directory goes, deepest first.
unmount_below()
{
	awk -v d="$1/" 'index($5, d) == 1 { print $5 }' /proc/self/mountinfo | sort -r |
		while read -r at; do
			umount -l "$at"
		done
	umount "$1" || umount -l "$1"
}

# image FILESYSTEM SIZE DIR: a new one, mounted there.
image()
{
	mkdir -p "$3"
	truncate -s "$2" "$3.image"
	"mkfs.$1" -q "$3.image" >/dev/null 2>&1 && mount -o loop "$3.image" "$3" || return 1
	at_exit "unmount_below '$3'"
}

passed()
{
	what=$1
	shift
	"$@" >"$scratch/out" 2>&1 </dev/null
	status=$?
	diag <"$scratch/out"
	is "$what" "$status" 0
}

for kind in ext4 xfs btrfs; do
	what="$kind: killed in the middle"
	if ! image $kind 600M "$scratch/$kind"; then
		skip "$what" "an image of $kind cannot be made or mounted here"
		continue
	fi
	case $kind in btrfs) storage=btrfs ;; *) storage=overlay ;; esac
	PYTHONDONTWRITEBYTECODE=1 passed "$what" python3 "$src/tests/fault/storage-kill.py" \
		"$build" $storage "$scratch/$kind" "$kills"
done

# The image of the storage is a file on XFS, of which a copy is one step.
what="ext4: power lost at $images moments"
if image xfs 1200M "$scratch/outer" && mkdir "$scratch/outer/live" "$scratch/outer/at" &&
	truncate -s 200M "$scratch/outer/image" && mkfs.ext4 -q "$scratch/outer/image" &&
	mount -o loop "$scratch/outer/image" "$scratch/outer/live"; then
	passed "$what" "$build/tests/fault/storage-crash" images "$scratch/outer" "$images" \
		"${SB_STORAGE_SEED:-$$}"
else
	skip "$what" "an image of XFS with reflinks cannot be made or mounted here"
fi
finish
