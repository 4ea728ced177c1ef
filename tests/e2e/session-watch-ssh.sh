#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2086
# sbsync watch over a real sshd: both directions by notice alone (the safety net is ten minutes
# away), bursts on both sides at once, a connection that is cut while nothing happens, one that is
# cut again and again in the middle of data, a line that is silent for a while.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3

src=${SB_TOP_SRCDIR:-.}
build=${SB_TOP_BUILDDIR:-.}
case $build in /*) ;; *) build=$PWD/$build ;; esac
case $src in /*) ;; *) src=$PWD/$src ;; esac
sbsync=$build/sbsync
export SBSYNC_STATE_DIR="$scratch/state"
cd "$scratch" || exit 1
if [ ! -x "$build/sbsync-agent" ] && [ -z "${SBSYNC_AGENT:-}" ]; then
	SBSYNC_AGENT=$sbsync
	export SBSYNC_AGENT
fi

dir=$scratch/srv
why=$(sh "$src/tests/lib/sshd.sh" start "$dir" \
	'SetEnv XDG_CACHE_HOME=@DIR@/cache SBSYNC_STATE_DIR=@DIR@/state TMPDIR=@DIR@/tmp')
case $? in
0) ;;
77) skip_all "$why" ;;
*) not_ok "sshd starts" "$why"; finish ;;
esac
at_exit "sh $src/tests/lib/sshd.sh stop $dir"
there=$(cat "$dir/user")@127.0.0.1
direct=$(cat "$dir/port")
log=$SBSYNC_STATE_DIR/sessions/w/log

same() { diff -r --no-dereference -x .sbsync-stage ws runtime; }

start_watch()
{
	"$sbsync" watch --every 10m "$@" w >watch.out 2>watch.err &
	watch=$!
	at_exit "kill $watch 2>/dev/null"
	wait_for 20 grep -q watching watch.err
}

stop_watch()
{
	kill -INT $watch
	code=0
	wait $watch || code=$?
	is "$1" "$code $(tail -n 1 watch.err)" "0 sbsync: no longer watching; session w stays open"
}

# relay OPTION...: a line of its own to the sshd; its port is in $port then.
relay()
{
	rm -f relay.in relay.out
	mkfifo relay.in
	"$build/tests/lib/relay" "$direct" "$@" <relay.in >relay.out &
	relay=$!
	at_exit "kill -CONT $relay 2>/dev/null; kill -9 $relay 2>/dev/null"
	exec 9>relay.in
	wait_for 10 test -s relay.out
	port=$(sed -n 1p relay.out)
	sed "s/\]:$direct /]:$port /" "$dir/known_hosts" >relay.known
	through="--known-hosts relay.known -p $port"
}

mkdir -p ws/sub && echo one >ws/sub/f
check "start" "$sbsync" start -q --name w -i "$dir/id_ed25519" -F /dev/null \
	--known-hosts "$dir/known_hosts" -p "$direct" ws "$there:$scratch/runtime"

# ---- both directions

start_watch
echo two >>ws/sub/f
check "an edit here gets there" wait_for 20 cmp -s ws/sub/f runtime/sub/f
echo three >>runtime/sub/f
check "an edit there gets here" wait_for 20 cmp -s ws/sub/f runtime/sub/f
mkdir -p runtime/far/deep && echo z >runtime/far/deep/f
check "a new directory there" wait_for 20 cmp -s ws/far/deep/f runtime/far/deep/f
echo y >>ws/far/deep/f
check "an answer in it" wait_for 20 cmp -s ws/far/deep/f runtime/far/deep/f
mv runtime/far runtime/farther && rm ws/sub/f
check "a rename there and a deletion here" wait_for 20 \
	sh -c "test -f ws/farther/deep/f -a ! -e ws/far -a ! -e runtime/sub/f"

# ---- bursts

before=$(wc -l <"$log")
for i in $(seq 1 300); do
	echo $i >ws/here$i
	echo $i >runtime/there$i
done
check "bursts of both sides arrive" wait_for 60 same
after=$(wc -l <"$log")
check "as a few syncs, not 600" test $((after - before)) -lt 20
echo "# $((after - before)) lines of log for 600 files"

# ---- a cut while nothing happens

ps -o pid= --ppid "$(cat "$dir/pid")" >sessions
is "one connection serves it all" "$(wc -l <sessions)" 1
kill -9 $(cat sessions)
echo cut >>runtime/there1 && echo cut >>ws/here1
check "after a cut both sides are brought together" wait_for 60 \
	sh -c "grep -q cut ws/there1 && grep -q cut runtime/here1"
echo again >>runtime/there2
check "and the far side is watched again" wait_for 20 cmp -s ws/there2 runtime/there2
stop_watch "Ctrl-C ends it"

# ---- cuts in the middle of data

relay cuts=6 cut_max=900000 seed=11
start_watch -F /dev/null $through
for i in 1 2 3 4; do
	head -c 700000 /dev/urandom >ws/up$i
	head -c 700000 /dev/urandom >runtime/down$i
	sleep 0.3
done
check "cut again and again: all of it arrives" wait_for 120 same
stop_watch "and it ends cleanly"
exec 9>&-
wait $relay
is "the line was cut" "$(grep -o 'cuts [0-9]*' relay.out)" "cuts 6"

# ---- silence

relay
start_watch -F /dev/null $through
echo first >ws/first
check "over a line" wait_for 20 cmp -s ws/first runtime/first
kill -STOP $relay
echo silent >>ws/first && echo silent >runtime/second
sleep 3
check "a silent line is waited for" kill -0 $watch
kill -CONT $relay
check "when it speaks again both go on" wait_for 60 same
stop_watch "and it ends"
is "nothing became a conflict" "$("$sbsync" conflicts --json w)" "[]"
exec 9>&-
finish
