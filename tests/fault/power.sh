#!/bin/sh
# SPDX-License-Identifier: MIT
# Syncs on a disk that loses its power (power.py, crashdisk.c): SB_POWER_CUTS cuts of each scenario
# (1) on SB_POWER_FS (ext4). `make check-power` does hundreds, on more file systems.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3 losetup unshare
[ "$(id -u)" = 0 ] || skip_all "mounting needs root"
[ -c /dev/fuse ] || skip_all "there is no /dev/fuse"
src=$(cd "${SB_TOP_SRCDIR:-.}" && pwd)
build=$(cd "${SB_TOP_BUILDDIR:-.}" && pwd)
[ -x "$build/tests/fault/crashdisk" ] || skip_all "libfuse3 was not there at configure"
unshare -m --propagation private true 2>/dev/null || skip_all "no mount namespace can be made here"
truncate -s 1M "$scratch/probe"
device=$(losetup --show -f "$scratch/probe" 2>/dev/null) || skip_all "there are no loop devices"
losetup -d "$device"
set --
for fs in ${SB_POWER_FS:-ext4}; do
	command -v "mkfs.${fs%%-*}" >/dev/null || skip_all "mkfs.${fs%%-*} is not installed"
	set -- "$@" --fs "$fs"
done
# In memory where that is possible: the disk's slowness is not what is tested.
FAULT_DIR=$scratch
if [ -d /dev/shm ] && [ -w /dev/shm ]; then
	FAULT_DIR=$(mktemp -d /dev/shm/sbpower.XXXXXX)
	at_exit "rm -rf '$FAULT_DIR'"
fi
PYTHONDONTWRITEBYTECODE=1
export FAULT_DIR PYTHONDONTWRITEBYTECODE
unshare -m --propagation private python3 "$src/tests/fault/power.py" \
	--cuts "${SB_POWER_CUTS:-1}" --seed "${SB_POWER_SEED:-1}" "$@" \
	"$build/sbsync" "$build/tests/fault/crashdisk" >"$scratch/out" 2>&1
status=$?
diag <"$scratch/out"
is "every file is old or new, and what was done is there" "$status" 0
finish
