#!/bin/sh
# SPDX-License-Identifier: MIT
# Containers of Podman: launch of `true` through the provider against a bare exec; and a build of
# many small files in a container that has its files synced, against one that works in a slow mount
# (bindfs stands for it). DOCKER_ROUNDS and DOCKER_FILES say how many.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/podman.sh"

build=$(cd "${SB_TOP_BUILDDIR:-.}" && pwd)
podman_start || {
	echo "$podman_why"
	exit 77
}
SBSYNC_AGENT=$build/sbsync-agent
XDG_STATE_HOME=$scratch/state
export SBSYNC_AGENT XDG_STATE_HOME
mkdir "$scratch/empty"
echo "launch of true, ${DOCKER_ROUNDS:-20} times each, in turn:"
"$build/tests/bench/bench-docker" "$scratch/empty" "$podman_image" "${DOCKER_ROUNDS:-20}"

files=${DOCKER_FILES:-3000}
work='i=0; while [ $i -lt '$files' ]; do i=$((i + 1)); d=d$((i % 50)); mkdir -p $d
	echo "int f$i(void) { return $i; }" >$d/f$i.c; done
	find . -name "*.c" -exec cat {} + | cksum
	for d in d*; do cat $d/*.c >$d.all; rm -r $d; done'
mkdir "$scratch/plain" "$scratch/mounted" "$scratch/below"
if command -v bindfs >/dev/null && bindfs "$scratch/below" "$scratch/mounted" 2>"$scratch/why"; then
	at_exit "umount '$scratch/mounted'"
else
	echo "no slow mount: $(cat "$scratch/why"); the plain directory stands for it"
fi
# Hundredths of a second since the machine started: every container has these.
inside='now() { tr -d . </proc/uptime | cut -d" " -f1; }
	s=$(now); eval "$1"; echo "inside: $((($(now) - s) * 10)) ms"'
for kind in synced mounted; do
	dir=$scratch/plain
	[ $kind = synced ] || dir=$scratch/mounted
	start=$(date +%s%N)
	echo "$files small files, $kind:"
	(cd "$dir" && "$build/sbctl" run -q -b docker -s kind=container -s engine=podman \
		-s sync=$kind -s "image=$podman_image" -- bash -c "$inside" bash "$work" |
		grep inside)
	echo "with start, sync and end: $((($(date +%s%N) - start) / 1000000)) ms"
done
exit 0
