#!/bin/sh
# SPDX-License-Identifier: MIT
# sbsync watch: changes of either side reach the other by themselves, over a child process;
# session-watch-ssh.sh has the same over SSH.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3

sbsync=${SB_TOP_BUILDDIR:-.}/sbsync
export SBSYNC_STATE_DIR="$scratch/state"
cd "$scratch" || exit 1

same() { diff -r --no-dereference -x .sbsync-stage -x out ws runtime; }

start_watch()
{
	"$sbsync" watch "$@" >watch.out 2>watch.err &
	watch=$!
	at_exit "kill $watch 2>/dev/null"
	wait_for 20 grep -q watching watch.err
}

# stop_watch DESCRIPTION STATUS: by the signal of Ctrl-C; it must end by itself.
stop_watch()
{
	kill -INT $watch
	code=0
	wait $watch || code=$?
	is "$1" "$code $(tail -n 1 watch.err)" "$2 sbsync: no longer watching; session w stays open"
}

mkdir -p ws/sub ws/out && echo one >ws/sub/f && "$sbsync" start -q --name w -x /out ws runtime
start_watch --every 10m w
echo two >>ws/sub/f
check "an edit here gets there" wait_for 20 cmp -s ws/sub/f runtime/sub/f
echo three >>runtime/sub/f
check "an edit there gets here" wait_for 20 grep -q three ws/sub/f
mkdir -p ws/new/deep && echo x >ws/new/deep/f
check "new directories too" wait_for 20 cmp -s ws/new/deep/f runtime/new/deep/f
echo y >>ws/new/deep/f
check "and what changes in them later" wait_for 20 cmp -s ws/new/deep/f runtime/new/deep/f
mkdir -p runtime/far/deep && echo z >runtime/far/deep/f
check "on the other side as well" wait_for 20 cmp -s ws/far/deep/f runtime/far/deep/f
mv runtime/far runtime/farther && rm ws/sub/f
check "renames and deletions" wait_for 20 \
	sh -c "test -f ws/farther/deep/f -a ! -e ws/far -a ! -e runtime/sub/f"
# A burst becomes a few syncs, not one for each file.
before=$(wc -l <"$SBSYNC_STATE_DIR/sessions/w/log")
for i in $(seq 1 300); do echo $i >ws/burst$i; done
check "a burst arrives" wait_for 30 same
after=$(wc -l <"$SBSYNC_STATE_DIR/sessions/w/log")
check "as one, or a few" test $((after - before)) -lt 40
echo user >ws/both; echo agent >runtime/both
check "what both sides make at once is kept" wait_for 20 \
	sh -c "cat ws/both* | sort | tr '\n' ' ' | grep -q 'agent user'"
wait_for 20 grep -q '"conflicts":1' "$SBSYNC_STATE_DIR/sessions/w/log"
echo built >ws/out/binary
check "what is excluded stays here" test ! -e runtime/out
stop_watch "Ctrl-C ends it, and it tells of conflicts" 3
"$sbsync" resolve -q --all --take local --name w 2>/dev/null; "$sbsync" sync -q w

# A sync that fails does not end it; a decision does.
start_watch --every 1s w
mv runtime gone
check "a sandbox that vanished ends it" wait_for 30 sh -c "! kill -0 $watch"
code=0
wait $watch || code=$?
is "with the exit code of a refusal" $code 5
mv gone runtime

# The far side killed: the next one takes over.
start_watch --every 10m w
echo more >>ws/burst1
check "it works again" wait_for 20 cmp -s ws/burst1 runtime/burst1
agent=$(ps -o pid= --ppid $watch | head -n 1)
kill -9 $agent
echo more >>runtime/burst2
check "a killed agent is replaced" wait_for 40 cmp -s ws/burst2 runtime/burst2
stop_watch "and it still ends cleanly" 0
finish
