#!/bin/sh
# SPDX-License-Identifier: MIT
# kill -9 of sbctl, of the command, of the agent, and cut connections while `sbctl run -b e2b`
# works: nothing is lost after recover, no sandbox is left. SB_KILL_ROUNDS is the number of rounds,
# SB_KILL_SEED the seed; `make check-kill-e2b` runs 100.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3
need flock
. "${SB_TOP_SRCDIR:-.}/tests/lib/e2bhost.sh"

SBSYNC_AGENT=$build/sbsync-agent
export SBSYNC_AGENT
# Commands of this runtime see what is here, so the list of what they did is in our sight.
start_e2b_host none
echo '[]' >"$scratch/faults"
python3 "$src/tests/provider/e2bproxy.py" "$scratch/port" "$e2b_url" /dev/null \
	"$scratch/faults" >"$scratch/proxy.log" 2>&1 &
proxy=$!
at_exit "kill $proxy 2>/dev/null; wait $proxy 2>/dev/null"
wait_for 20 test -s "$scratch/port" || skip_all "the proxy does not start"
# What a killed sbctl left running holds the place: no sync could work there.
ws=$scratch/held
url=http://127.0.0.1:$(cat "$scratch/port")
mkdir "$ws"
(cd "$ws" && SBSYNC_STATE_DIR=$ws.state && export SBSYNC_STATE_DIR &&
	exec "$sbctl" run -q -b e2b -s "api_url=$url" -s "sandbox_url=$url" -- sh -c \
		'echo work >there; exec flock . sleep 1000' >"$scratch/out" 2>&1 </dev/null) &
victim=$!
# Whether somebody holds the place in the one sandbox there is.
held()
{
	for d in "$scratch"/sess/*/work; do
		[ -e "$d/there" ] && ! flock -n "$d" true && return 0
	done
	return 1
}
check "a command holds its place" wait_for 60 held
kill -9 $victim
check "recover ends what nobody holds any more" \
	env SBSYNC_STATE_DIR="$ws.state" "$sbctl" recover
is "and brings the work" "$(cat "$ws/there" 2>/dev/null)" work
is "nothing is left" "$(e2b_left)" ""
rounds=${SB_KILL_ROUNDS:-5}
seed=${SB_KILL_SEED:-1}
echo "# seed $seed"
mkdir "$scratch/rounds"
check "killed $rounds times, nothing is lost" python3 "$src/tests/fault/runkill.py" "$sbctl" \
	"e2b:http://127.0.0.1:$(cat "$scratch/port"),$proxy,$scratch/sess" "$scratch/rounds" \
	"$rounds" "$seed"
tail -n 1 "$scratch/.tap" | diag
finish
