#!/bin/sh
# SPDX-License-Identifier: MIT
# A file that is written to all the time cannot be synced as it is. Everything else is, and nobody
# is told that all was done: not by the exit status, not by the messages, not by --json; and a
# session whose sandbox has such a file is not closed.
#
# In memory where that is possible: on a busy disk the writer waits for seconds, and
# the file is calm meanwhile.
if [ -d /dev/shm ] && [ -w /dev/shm ]; then
	TMPDIR=/dev/shm
	export TMPDIR
fi
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/json.sh"
need python3

build=${SB_TOP_BUILDDIR:-.}
case $build in /*) ;; *) build=$PWD/$build ;; esac
sbsync=$build/sbsync
export SBSYNC_STATE_DIR="$scratch/state"
cd "$scratch" || exit 1

# A large hole takes long to read; each write makes a new time.
writer=
busy()
{
	python3 -c '
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o644)
os.truncate(fd, 512 << 20)
open(sys.argv[1] + ".up", "w").close()
n = 0
while True:
    os.pwrite(fd, b"%d\n" % n, 0)
    n += 1' "$1" &
	writer=$!
	wait_for 20 test -e "$1.up" && rm "$1.up"
}

# What the test stands on: there was a writer, all the time.
at_work() { case $(cut -d' ' -f3 "/proc/$writer/stat" 2>&1) in [RSD]) ;; *) false ;; esac; }

calm()
{
	[ -z "$writer" ] || kill -9 $writer
	wait 2>/dev/null
	writer=
}
at_exit calm

user=
state() { $user "$sbsync" status --json $1 | grep -o '"state":"[a-z]*"'; }

why='kept changing\|changed while\|vanished or kept'

mkdir src && echo one >src/calm
busy src/moving
must_fail "mirror: not all is done" 1 "$sbsync" mirror src dst
is "the file is named as an error" \
	"$(printf '%s\n' "$output" | grep -c "^error: moving: .*\($why\)")" 1
is "the rest is there" "$(cat dst/calm)" one
check "nothing half is" test ! -e dst/moving
must_fail "quiet: the same" 1 "$sbsync" mirror -q src dst
is "and says so" "$(printf '%s\n' "$output" | grep -c "^error: moving: ")" 1
"$sbsync" mirror --json src dst >result.json
is "exit status with --json" $? 1
is "result of --json" \
	"$(json '[o["result"], [e["path"] for e in o["errors"]], o["skipped"]]' <result.json)" \
	"['error', ['moving'], []]"
check "the writer was at work" at_work
calm
check "calm again: done" "$sbsync" mirror src dst
check "and equal" cmp src/moving dst/moving

mkdir ws && echo one >ws/calm
check "start" "$sbsync" start -q --name s ws runtime
busy runtime/moving
echo agent >runtime/new
must_fail "a turn without it is not all" 1 "$sbsync" sync s
is "it is named" "$(printf '%s\n' "$output" | grep -c "^error: moving: ")" 1
is "the rest came" "$(cat ws/new)" agent
echo late >>runtime/new
must_fail "the session is not closed without it" 1 "$sbsync" stop s
is "the message names it" "$(printf '%s\n' "$output" | grep -c "sbsync: moving: .*run it again")" 1
is "the session waits for another try" "$(state s)" '"state":"unsynced"'
is "the rest came back" "$(cat ws/new)" "agent
late"
check "the writer was still at work" at_work
calm
check "calm again: stop" "$sbsync" stop s
is "the session is closed" "$(state s)" '"state":"stopped"'
check "with the file" cmp ws/moving runtime/moving

# Nor is one that has what may not be read.
if [ "$(id -u)" = 0 ]; then
	user="setpriv --reuid 65534 --regid 65534 --clear-groups"
	user="$user --inh-caps=-all --bounding-set=-all"
fi
mkdir u && (cd u && mkdir ws state && echo one >ws/calm)
if [ -n "$user" ]; then
	chmod 755 "$scratch" && chown -R 65534:65534 u
fi
if $user test -x "$sbsync" -a -w u 2>/dev/null; then
	SBSYNC_STATE_DIR=$scratch/u/state
	check "start" $user "$sbsync" start -q --name u u/ws u/runtime
	echo secret >u/runtime/locked && echo agent >u/runtime/new && chmod 0 u/runtime/locked
	[ -z "$user" ] || chown 65534:65534 u/runtime/*
	must_fail "what may not be read is not closed over" 1 $user "$sbsync" stop u
	why="sbsync: locked: permission denied; the rest"
	is "it is named, with the reason" "$(printf '%s\n' "$output" | grep -c "$why")" 1
	is "the session waits" "$(state u)" '"state":"unsynced"'
	is "the rest is here" "$(cat u/ws/new)" agent
	chmod 644 u/runtime/locked
	check "readable: stop" $user "$sbsync" stop u
	is "all is here" "$(cat u/ws/locked)" secret
else
	skip "what may not be read" \
		"cannot become another user here, or it cannot read the build directory"
fi
finish
