#!/bin/sh
# SPDX-License-Identifier: MIT
# Sync mode turn-bidirectional: a turn is asked for inside the sandbox, outside of it, or comes with
# silence or a tool's end; and a command whose output nobody reads ends.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"

build=${SB_TOP_BUILDDIR:-.}
sbctl=$build/sbctl
TMPDIR=$scratch/tmp
XDG_STATE_HOME=$scratch
SBSYNC_AGENT=$build/sbsync-agent
SBSYNC_STATE_DIR=$scratch/state
export TMPDIR XDG_STATE_HOME SBSYNC_AGENT SBSYNC_STATE_DIR
mkdir -p "$scratch/w" "$TMPDIR" && cd "$scratch/w" || exit 1
echo one >a

# turns ID OPTION... -- SCRIPT: begins a command in the background.
turns()
{
	id=$1 && shift
	"$sbctl" run -b host -s runtime=none --id "$id" --sync-mode turn-bidirectional "$@" \
		>"$scratch/$id.out" 2>"$scratch/$id.err" &
	job=$!
}

# The agent's work comes while it runs, and the user's goes there.
turns inside -- sh -c 'echo work >b; "$SB_TURN" || exit 9
	until test -e go; do "$SB_TURN" >/dev/null || exit 8; sleep 0.1; done; cat go'
wait_for 60 test -e b
is "work comes at a turn that the agent asks for" "$(cat b 2>/dev/null)" work
echo on >go
wait $job
is "and the user's goes there at the next" "$? $(tail -n 1 "$scratch/inside.out")" "0 on"
check "the agent is told what was synced" grep -q '^1 files synced, 0 conflicts$' \
	"$scratch/inside.out"
is "nothing is left of the way to ask" "$(ls "$TMPDIR")" ""

# From outside, in another process.
turns outside -- sh -c 'echo work >c; until test -e stop; do sleep 0.1; done'
wait_for 60 sh -c '"$1" turn outside >/dev/null 2>&1; test -e c' sh "$sbctl"
is "a turn from outside" "$(cat c 2>/dev/null)" work
echo x >stop
wait_for 60 sh -c '"$1" turn outside >/dev/null 2>&1; ! kill -0 "$2" 2>/dev/null' sh "$sbctl" $job
wait $job
is "carries both ways" "$?" 0

# When the command falls silent.
turns idle --turn-idle 300ms -- sh -c 'echo work >d; echo said; until test -e stop2; do sleep 0.1
	date +%s; done'
wait_for 2 test -e d
check "no silence, no turn" test ! -e d
kill -TERM $job && wait $job
turns idle2 --turn-idle 300ms -- sh -c 'echo work >e; echo said; exec sleep 600'
wait_for 60 test -e e
is "silence is a turn" "$(cat e 2>/dev/null)" work
kill -TERM $job && wait $job

# When a tool that somebody calls in it has ended.
ask()
{
	printf '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":""}}\n'
	printf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"bash",'
	printf '"arguments":{"cmd":"%s"}}}\n' "$1"
}
tool()
{
	ask "$1" | "$sbctl" mcp --session tools >"$scratch/tools.said" 2>&1 &&
		grep -q '"isError":false' "$scratch/tools.said"
}
turns tools --turn-tools -- sh -c 'until test -e stop3; do sleep 0.1; done'
wait_for 60 tool "echo work >f"
wait_for 60 test -e f
is "the end of a tool is a turn" "$(cat f 2>/dev/null)" work
echo x >stop3
check "and the next" tool true
wait $job
is "carries both ways, too" "$?" 0
must_fail "only where turns count" 2 "$sbctl" run -b host --turn-tools -- true
must_fail "and tools are called" 2 "$sbctl" run -b local --turn-tools \
	--sync-mode turn-bidirectional -- true

# Where turns do not count, that is said.
"$sbctl" run -b host -s runtime=none --id plain -k -- sh -c 'echo "${SB_TURN-none}"' \
	>"$scratch/plain.out" 2>/dev/null
is "other modes have no turns" "$(cat "$scratch/plain.out")" none
must_fail "and say so" 1 "$sbctl" turn plain
check "with the way on" sh -c "printf '%s' \"$output\" | grep -q 'sbctl sync plain'"
check "it goes" "$sbctl" destroy plain

# Output that nobody reads any more.
is "a command that writes on and on" \
	"$(timeout 60 "$sbctl" run -b host -s runtime=none -- yes 2>/dev/null | head -n 1)" y
mkfifo out
timeout 60 "$sbctl" run -b host -s runtime=none -x out -- yes >out 2>/dev/null &
job=$!
head -n 1 out >/dev/null
wait $job
is "ends as in a shell" "$?" 141
finish
