#!/bin/sh
# SPDX-License-Identifier: MIT
# Nothing the runtime did is given up: while anything of it could not be brought here, stop and
# recover fail, name it, and the session stays open. What the exit status, the log and --json say
# agrees.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/shim.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/json.sh"
need python3

build=${SB_TOP_BUILDDIR:-.}
case $build in /*) ;; *) build=$PWD/$build ;; esac
sbsync=$build/sbsync
export SBSYNC_STATE_DIR="$scratch/state"
cd "$scratch" || exit 1

user=
state() { $user "$sbsync" status --json $1 | grep -o '"state":"[a-z]*"'; }
open_still() { is "$1: the session stays open" "$(state $2)" '"state":"unsynced"'; }

# A directory becomes a file there; here it holds what is not synced.
for what in ignored fifo; do
	mkdir -p $what/ws/d/sub && echo one >$what/ws/d/a && echo two >$what/ws/d/sub/b
	echo keep >$what/ws/keep
	check "$what: start" "$sbsync" start -q --owner 0 --exclude '*.o' --name $what $what/ws \
		$what/rt
	rm -r $what/rt/d && echo work >$what/rt/d && echo other >$what/rt/new
	if [ $what = fifo ]; then mkfifo $what/ws/d/f; else echo obj >$what/ws/d/f.o; fi
	must_fail "$what in the way of a file: stop fails" 1 "$sbsync" stop $what
	is "$what: it is named" "$(printf '%s\n' "$output" | grep -c 'sbsync: d: ')" 1
	open_still "$what" $what
	is "$what: the rest came" "$(cat $what/ws/new)" other
	is "$what: nothing was half done" "$(cat $what/ws/d/a $what/ws/d/sub/b)" "one
two"
	rm "$SBSYNC_STATE_DIR/sessions/$what/heartbeat"
	must_fail "$what: recover fails, too" 1 "$sbsync" recover $what
	must_fail "$what: a turn says so" 1 "$sbsync" sync $what
	is "$what: and names it" "$(printf '%s\n' "$output" | grep -c '^error: d: ')" 1
	rm -f $what/ws/d/f $what/ws/d/f.o
	check "$what: moved away, stop works" "$sbsync" stop -q $what
	is "$what: the work is here" "$(cat $what/ws/d)" work
done

# A directory becomes a hard link there.
mkdir -p link/ws/d && echo one >link/ws/d/x && echo two >link/ws/a
check "link: start" "$sbsync" start -q --name link link/ws link/rt
rm -r link/rt/d && ln link/rt/a link/rt/d
check "a directory that became a hard link: stop" "$sbsync" stop -q link
is "it is here" "$(cat link/ws/d)$(stat -c %h link/ws/d)" two2

# What cannot be read here, and was edited there.
if [ "$(id -u)" = 0 ]; then
	user="setpriv --reuid 65534 --regid 65534 --clear-groups"
	user="$user --inh-caps=-all --bounding-set=-all"
fi
mkdir u && (cd u && mkdir -p ws/d ws/e state && echo one >ws/locked && echo one >ws/calm &&
	echo one >ws/d/x && echo one >ws/e/x)
if [ -n "$user" ]; then
	chmod 755 "$scratch" && chown -R 65534:65534 u
fi
if $user test -x "$sbsync" -a -w u 2>/dev/null; then
	SBSYNC_STATE_DIR=$scratch/u/state
	check "unreadable: start" $user "$sbsync" start -q --name u u/ws u/rt
	echo work >>u/rt/locked && echo work >>u/rt/calm && echo work >>u/rt/d/x
	chmod 0 u/ws/locked u/ws/d u/ws/e
	must_fail "unreadable: stop fails" 1 $user "$sbsync" stop u
	is "it is named" "$(printf '%s\n' "$output" | grep -c 'sbsync: .*permission denied')" 1
	open_still unreadable u
	is "the rest came" "$(tail -n 1 u/ws/calm)" work
	chmod 644 u/ws/locked
	must_fail "nor with a directory that cannot be read" 1 $user "$sbsync" stop u
	chmod 755 u/ws/d
	# (u/ws/e cannot be read either, but nothing happened there)
	check "readable: stop" $user "$sbsync" stop -q u
	is "the work is here" "$(tail -qn 1 u/ws/locked u/ws/d/x)" "work
work"
	chmod 755 u/ws/e
	SBSYNC_STATE_DIR=$scratch/state
else
	skip "what cannot be read" \
		"cannot become another user here, or it cannot read the build directory"
fi

# A file that is written to all the time here, and was edited there.
mkdir -p busy/ws && echo one >busy/ws/f && truncate -s 200M busy/ws/moving
check "busy: start" "$sbsync" start -q --name busy busy/ws busy/rt
python3 -c '
import os, sys
fd = os.open("busy/ws/moving", os.O_RDWR)
os.pwrite(fd, b"0", 0)
open("busy/up", "w").close()
n = 0
while True:
    os.pwrite(fd, b"%d\n" % n, 0)
    n += 1' &
writer=$!
at_exit 'kill -9 $writer 2>/dev/null'
wait_for 20 test -e busy/up
check "a busy file that nobody else changed is in nobody's way" "$sbsync" stop -q busy
kill -9 $writer
wait $writer 2>/dev/null

# Words and numbers agree.
mkdir -p c/ws && echo one >c/ws/f && echo one >c/ws/g
check "start" "$sbsync" start -q --owner 0 --name c c/ws c/rt
echo here >>c/ws/f && echo there >>c/rt/f
must_fail "diff exits 3 where it lists conflicts" 3 "$sbsync" diff --json c
is "as its JSON says" "$(printf '%s' "$output" | json 'o["result"]')" conflicts
rm "$SBSYNC_STATE_DIR/sessions/c/heartbeat"
must_fail "recover with conflicts exits 3" 3 "$sbsync" recover c

# The clock goes a day back while the session is in use: its heartbeat is as fresh as it was.
mkdir -p t/ws && echo one >t/ws/f
check "start" "$sbsync" start -q --owner 0 --name t t/ws t/rt
out=$(LD_PRELOAD="$shim" FAULT_CLOCK=-86400 "$sbsync" recover --all -v | grep ^t:)
is "a clock a day back: the session is still owned" "$out" "t: owned"
out=$(LD_PRELOAD="$shim" FAULT_CLOCK=86400 "$sbsync" recover --all -v | grep ^t:)
is "and a clock a day ahead" "$out" "t: owned"

# The log of a run that was not all.
mkdir -p l/ws/d && echo one >l/ws/d/x
check "start" "$sbsync" start -q --exclude '*.o' --name l l/ws l/rt
rm -r l/rt/d && echo work >l/rt/d && echo obj >l/ws/d/x.o
must_fail "a turn that left something" 1 "$sbsync" sync -q l
is "is no success in the log" \
	"$("$sbsync" log --json l | tail -n 1 | json '[o["result"], o["errors"]]')" "['error', 1]"
finish
