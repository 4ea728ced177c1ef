#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2086
# Links that are cut at random bytes: a push, a pull and a session go on by themselves and end
# equal, without sending twice what arrived. SB_CUT_FILES and SB_CUTS set the size;
# `make check-cuts` runs it with 50,000 files and 50 cuts.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3 ssh ssh-keygen

src=${SB_TOP_SRCDIR:-.}
build=${SB_TOP_BUILDDIR:-.}
case $build in /*) ;; *) build=$PWD/$build ;; esac
case $src in /*) ;; *) src=$PWD/$src ;; esac
sbsync=$build/sbsync
trees="python3 $src/tests/lib/trees.py"
files=${SB_CUT_FILES:-2000}
cuts=${SB_CUTS:-8}
seed=${SB_CUT_SEED:-1}
# A small part of what travels, so that every cut is met.
cut_max=$((files * 40 > 60000 ? files * 40 : 60000))
export SBSYNC_STATE_DIR="$scratch/state"
cd "$scratch" || exit 1

why=$(sh "$src/tests/lib/sshd.sh" start "$scratch/srv" \
	'SetEnv XDG_CACHE_HOME=@DIR@/cache SBSYNC_STATE_DIR=@DIR@/state TMPDIR=@DIR@/tmp')
case $? in
0) ;;
77) skip_all "$why" ;;
*) echo "Bail out! sshd does not start: $why"; exit 1 ;;
esac
dir=$scratch/srv
at_exit "sh $src/tests/lib/sshd.sh stop $dir"
there=$(cat "$dir/user")@127.0.0.1
direct=$(cat "$dir/port")

# link NAME SETTING...: a relay before the server; sets port and opts. unlink_relay NAME ends it and
# leaves its counts in NAME.out.
link()
{
	name=$1
	shift
	mkfifo "$name.in"
	"$build/tests/lib/relay" "$direct" "$@" <"$name.in" >"$name.out" &
	relay_pid=$!
	exec 9>"$name.in"
	wait_for 10 test -s "$name.out"
	port=$(sed -n 1p "$name.out")
	sed "s/\]:$direct /]:$port /" "$dir/known_hosts" >"$name.known"
	opts="--known-hosts $name.known -i $dir/id_ed25519 -F /dev/null -p $port"
}

unlink_relay()
{
	exec 9>&-
	wait "$relay_pid"
}

cuts_made() { sed -n 's/.* cuts \([0-9]*\) .*/\1/p' "$1.out"; }

count()
{
	python3 -c "
import json, sys
print(json.load(open(sys.argv[1]))[sys.argv[2]])" "$1" "$2"
}

python3 - "$files" <<'PY'
import os, random, sys
r = random.Random(5)
for i in range(int(sys.argv[1])):
    d = f'tree/d{i % 97}'
    os.makedirs(d, exist_ok=True)
    with open(f'{d}/f{i}', 'wb') as f:
        f.write(r.randbytes(r.randrange(100, 1500)))
PY

# The agent is there before, so that the cuts fall into the sync.
"$sbsync" mirror -q --known-hosts "$dir/known_hosts" -i "$dir/id_ed25519" -F /dev/null \
	-p "$direct" -x '*' tree "$there:$dir/warm"

link push cuts="$cuts" cut_max="$cut_max" seed="$seed"
timeout 1200 "$sbsync" mirror --json \
	--timeout 18m $opts tree "$there:$dir/far" >push.json 2>push.err || cat push.err
unlink_relay
check "a push through $cuts cuts ends equal" $trees same tree "$dir/far"
is "every cut was made" "$(cuts_made push)" "$cuts"
is "and each was a new connection" "$(count push.json reconnects)" "$cuts"
# What a cut loses is what was under way: a buffer or two each, and the listing.
check "what had arrived was not sent again" python3 -c "
import json, os
r = json.load(open('push.json'))
size = sum(os.path.getsize(os.path.join(d, f)) for d, _, fs in os.walk('tree') for f in fs)
print('# content', size, 'bytes, on the wire', r['bytes_wire_up'])
assert r['bytes_wire_up'] < 2 * size + $cuts * 400000, (r['bytes_wire_up'], size)"
"$sbsync" mirror --json --known-hosts "$dir/known_hosts" -i "$dir/id_ed25519" -F /dev/null \
	-p "$direct" tree "$there:$dir/far" >again.json
is "nothing is left to do" "$(count again.json files_synced)" 0

link pull cuts="$cuts" cut_max="$cut_max" seed=$((seed + 1))
timeout 1200 "$sbsync" mirror --json \
	--timeout 18m $opts "$there:$dir/far" back >pull.json 2>pull.err || cat pull.err
unlink_relay
check "a pull through $cuts cuts ends equal" $trees same tree back
# Nothing that arrived is sent again, so it may be done before the last cut.
is "each was a new connection" "$(count pull.json reconnects)" "$(cuts_made pull)"
check "most of the cuts were made" test "$(cuts_made pull)" -ge $((cuts * 3 / 4))

# A session: start, turn and stop, each through cuts of its own.
cp -a tree local
link start cuts=3 cut_max="$cut_max" seed=$((seed + 2))
timeout 600 "$sbsync" start -q --name cuts --owner $$ $opts local "$there:$dir/runtime" \
	2>start.err ||
	cat start.err
unlink_relay
# A session leaves the root directories themselves alone.
same_inside()
{
	touch -r "$1" "$2"
	$trees same "$1" "$2"
}
check "a session starts through cuts" same_inside local "$dir/runtime"
$trees mutate "$dir/runtime" 3 60
echo mine >local/mine
link turn cuts=3 cut_max=$((cut_max / 4)) seed=$((seed + 3))
timeout 600 "$sbsync" sync -q $opts --max-delete 100000 cuts 2>turn.err || cat turn.err
unlink_relay
check "a turn through cuts ends equal" same_inside local "$dir/runtime"
check "with what was written here" test -f "$dir/runtime/mine"
$trees mutate "$dir/runtime" 4 60
link stop cuts=3 cut_max=$((cut_max / 4)) seed=$((seed + 4))
timeout 600 "$sbsync" stop -q $opts --max-delete 100000 cuts 2>stop.err || cat stop.err
unlink_relay
check "the sync back too" same_inside local "$dir/runtime"

# An interrupted process: the next run does not send again what had arrived.
rm -rf "$dir/far"
link kill delay_ms=1
"$sbsync" mirror --json $opts --bwlimit $((files * 300)) tree "$there:$dir/far" >kill.json 2>&1 &
pid=$!
quarter=$((files / 4))
wait_for 60 sh -c \
	"[ \"\$(find '$dir/far' -type f 2>/dev/null | head -n $quarter | wc -l)\" -ge $quarter ]"
kill -9 $pid
wait $pid 2>/dev/null
unlink_relay
next()
{
	"$sbsync" mirror --json --known-hosts "$dir/known_hosts" -i "$dir/id_ed25519" -F /dev/null \
		-p "$direct" tree "$there:$dir/far" >next.json 2>next.err
}
check "the next run after a kill gets through" wait_for 60 next
check "and ends equal" $trees same tree "$dir/far"
check "without sending what was there" python3 -c "
import json, os
r = json.load(open('next.json'))
size = sum(os.path.getsize(os.path.join(d, f)) for d, _, fs in os.walk('tree') for f in fs)
print('# content', size, 'bytes, sent by the second run', r['bytes_transferred'])
assert r['bytes_transferred'] < size * 0.9, (r['bytes_transferred'], size)"

# A link that goes silent and stays open: the time limit and Ctrl-C end it all the same.
link stall stall_up=60000
must_fail "a silent link ends with the time limit" 1 \
	timeout 60 "$sbsync" mirror $opts --timeout 2s tree "$there:$dir/none"
check "which is told" sh -c "printf '%s' \"\$0\" | grep -q -e --timeout" "$output"
# To another place: over there the first one may not have noticed its end yet,
# and has its place locked.
"$sbsync" mirror $opts -v tree "$there:$dir/none-either" >int.out 2>&1 &
pid=$!
wait_for 20 grep -q connected int.out
kill -INT $pid
wait $pid
is "a silent link ends on a signal" $? 1
check "as canceled" grep -q canceled int.out
unlink_relay

# A server that is gone for good: the way to it is tried for as long as --timeout says, and told.
link gone cuts=100000 cut_max=3000
must_fail "a link that never holds ends with the time limit" 1 \
	timeout 60 "$sbsync" mirror $opts --timeout 3s tree "$there:$dir/none"
check "which is named" sh -c "printf '%s' \"\$0\" | grep -q -e --timeout" "$output"
must_fail "without a limit it ends after some tries" 1 \
	timeout 60 "$sbsync" mirror $opts tree "$there:$dir/none"
check "naming user, host, port and what to do" sh -c \
	"printf '%s' \"\$0\" | tail -n 1 | grep '$there port $port: .*; 5 tries: sbsync doctor'" \
	"$output"
unlink_relay
finish
