#!/bin/sh
# SPDX-License-Identifier: MIT
# run-test.sh SECONDS PROGRAM [ARG]...: runs one test under a time limit and hands its TAP on.
# cmocka says "not ok N # SKIP name", which a TAP reader takes for a failure, and has no place
# for a reason: it becomes "ok N - name # SKIP reason" with the text of the "# skip: reason"
# line that skip_because (tests/lib/unit.h) printed before it. The exit status is the program's;
# 124 means the time was over.
#
# The test gets a TMPDIR of its own, which goes with all that is in it, also after a kill. A test
# that ended by itself and left something there has failed: its exit status becomes 1. SB_KEEP
# keeps everything.
#
# It does not see how make was called: the list of all tests alone would be 20 KB of environment.
#
# However it ends, so do its processes (reap.c; without it only the time limit holds), mounts in its
# TMPDIR, and loop devices on files there.
seconds=$1
program=$2
shift 2
case $program in
*/*) ;;
*) program=./$program ;;
esac

unset MAKEFLAGS MFLAGS MAKEOVERRIDES
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/sbt.XXXXXX") || exit 1
export TMPDIR
chmod 1777 "$TMPDIR" # for tests that become another user
limit="timeout -k 10"
[ ! -x "${SB_TOP_BUILDDIR:-.}/tests/lib/reap" ] || limit=${SB_TOP_BUILDDIR:-.}/tests/lib/reap

# What the kernel holds on to for a test that could not clean up. Newest mounts first.
release()
{
	awk -v at="$TMPDIR/" 'index($5, at) == 1 { print $5 }' /proc/self/mountinfo | tac |
		while read -r at; do
			umount -l "$(printf '%b' "$at")" && echo "# unmounted: $at"
		done
	[ "$(id -u)" -ne 0 ] || ! command -v losetup >/dev/null ||
		losetup -n -l -O NAME,BACK-FILE | while read -r device file; do
			case $file in
			"$TMPDIR"/*) losetup -d "$device" && echo "# detached: $device" ;;
			esac
		done
}
clean()
{
	[ -n "${SB_KEEP-}" ] || rm -rf --one-file-system "$TMPDIR"
}
trap clean EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

{
	# shellcheck disable=SC2086
	$limit "$seconds" "$program" "$@" 2>&1
	rc=$?
	[ -n "${SB_KEEP-}" ] || release
	[ $rc -ne 124 ] && [ $rc -ne 137 ] || echo "# killed: ran longer than $seconds s"
	if [ $rc -eq 0 ] && [ -z "${SB_KEEP-}" ] && [ -n "$(ls -A "$TMPDIR")" ]; then
		find "$TMPDIR" -mindepth 1 | head -n 10 | sed 's/^/# left behind: /'
		rc=1
	fi
	echo "run-test: exit $rc"
} | awk '
	/^run-test: exit [0-9]+$/ { exit $3 }
	/^# skip: / { reason = substr($0, 9) }
	/^not ok [0-9]+ # SKIP / {
		printf "ok %s - %s # SKIP %s\n", $3, $6, reason == "" ? "no reason given" : reason
		reason = ""
		fflush()
		next
	}
	{ print; fflush() }'
