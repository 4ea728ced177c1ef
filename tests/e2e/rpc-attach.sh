#!/bin/sh
# SPDX-License-Identifier: MIT
# Attach: a command in a session over an upgraded connection, by unix socket and by TCP, and as
# the remote shell of sbsync.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"
need python3 cmp

start_host_for local-disk --container-runtime none
"$sbctl" host create --id one --base img >/dev/null
attach()
{
	timeout 60 "$sbctl" host attach "$@"
}

printf 'a\000b\377' >"$scratch/odd"
attach one 'cat; echo err >&2' <"$scratch/odd" >"$scratch/out" 2>"$scratch/err"
is "it ends with success" "$?" 0
check "bytes come back as they went" cmp "$scratch/odd" "$scratch/out"
is "stderr is a stream of its own" "$(cat "$scratch/err")" err
is "it starts in the workspace" "$(attach one cat hello </dev/null)" hello
is "variables are set" "$(attach -e A=b one 'echo $A' </dev/null)" b
attach one 'exit 7' </dev/null
is "the exit status comes back" "$?" 7
attach one 'kill -9 $$' </dev/null
is "a signal is 128 and its number" "$?" 137
attach none true </dev/null 2>"$scratch/err"
is "no such session" "$?" 1
check "and it says so" grep -q "session not found" "$scratch/err"

head -c 8000000 /dev/urandom >"$scratch/large"
# A client that still sends when the host is done: asleep while the command ends, it finds a
# closed connection to write to.
"$sbctl" host attach one \
	'echo $$ >pid; exec sleep 1000' <"$scratch/large" >/dev/null 2>"$scratch/err" &
client=$!
wait_for 10 test -s "$scratch/root/sessions/one/pid"
sleep 0.5
kill -STOP "$client"
kill -KILL "$(cat "$scratch/root/sessions/one/pid")"
rm "$scratch/root/sessions/one/pid"
sleep 3
kill -CONT "$client"
wait "$client"
is "the exit status comes back to one that still sends" "$?" 137
attach one cat <"$scratch/large" >"$scratch/out"
check "eight megabytes there and back" cmp "$scratch/large" "$scratch/out"

# The command is gone when its client is.
timeout 20 "$sbctl" host attach one 'echo $$ >pid; exec sleep 1000' </dev/null >/dev/null 2>&1 &
client=$!
wait_for 10 test -s "$scratch/root/sessions/one/pid"
pid=$(cat "$scratch/root/sessions/one/pid")
kill "$client"
wait "$client"
check "a command ends with its client" wait_for 10 sh -c "! kill -0 $pid"

# Over TCP a token is needed, and one session's token is of no use in another.
"$sbctl" host create --id two --base img >/dev/null
SANDBOX_AUTH_TOKEN='' attach --host "$SB_URL" one true </dev/null 2>/dev/null
is "TCP without a token" "$?" 1
is "TCP with a token" \
	"$(SANDBOX_AUTH_TOKEN=$SB_TOKEN attach --host "$SB_URL" one 'echo yes' </dev/null)" yes
token=$("$sbctl" host token one)
is "with the session's own token" \
	"$(SANDBOX_AUTH_TOKEN=$token attach --host "$SB_URL" one 'echo yes' </dev/null)" yes
SANDBOX_AUTH_TOKEN=$token attach --host "$SB_URL" two true </dev/null 2>/dev/null
is "and not in another session" "$?" 1
is "a plain request is told what is missing" "$(python3 - "$SB_URL" "$SB_TOKEN" <<'P'
import sys, urllib.error, urllib.request
url = sys.argv[1] + "/rpc.v1.SandboxService/Attach?encoding=json&message=%7B%7D"
q = urllib.request.Request(url, headers={"Authorization": "Bearer " + sys.argv[2]})
try:
    urllib.request.urlopen(q)
except urllib.error.HTTPError as e:
    print(e.code)
P
)" 426

relay_tap attach.py timeout 250 python3 "$src/tests/hostile/attach.py" "$host_socket" one

# A whole sync goes over it.
mkdir -p "$scratch/tree/sub"
echo one >"$scratch/tree/a"
echo two >"$scratch/tree/sub/b"
check "sbsync goes by it" \
	timeout 120 "$build/sbsync" mirror --rsh "$sbctl host attach" "$scratch/tree" one:work
check "and all is there" diff -r "$scratch/tree" "$scratch/root/sessions/one/work"

"$sbctl" host attach one 'sleep 1000' </dev/null >/dev/null 2>"$scratch/err" &
client=$!
wait_for 10 sh -c "$sbctl host get one >/dev/null"
stop_host
is "an attached client does not hold up the end of the host" "$host_status" 0
wait "$client"
finish
