#!/bin/sh
# SPDX-License-Identifier: MIT
# The example program of the library prepares, syncs, launches, syncs back and destroys.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"

src=${SB_TOP_SRCDIR:-.}
build=${SB_TOP_BUILDDIR:-.}
export SBSYNC_STATE_DIR="$scratch/state"
mkdir "$scratch/ws" && cd "$scratch/ws" || exit 1
# The agent is looked for beside the program, which here is in a folder of its own.
export SBSYNC_AGENT="${SBSYNC_AGENT:-$build/sbsync-agent}"
is "on this machine" "$("$build/doc/example" local 2>&1)" "exit 0, 0 files back, destroyed"
is "its command ran" "$(cat greeting)" "hello"
must_fail "a backend that is not there" 1 "$build/doc/example" vm

# The other one: an agent's tools, on a host in its own process or elsewhere.
agent()
{
	SB_BOX=$build/sb-box "$build/doc/agent" "$@" 2>&1
}
is "an agent with a host of its own" \
	"$(agent "$scratch/own" 'echo a >f' 'cat f; echo b' 'exit 7'; echo $?)" "a
b
7"
is "leaves no session there" "$(ls "$scratch/own/sessions")" ""
is "quotes and newlines in a command" "$(agent "$scratch/own" 'echo "a \\b" >f
cat f'; echo $?)" 'a \b
0'
is "a command that fails ends it" "$(agent "$scratch/own" 'exit 7' 'echo no'; echo $?)" 7
"$build/sbhostd" --listen "unix:$scratch/sock" --state-dir "$scratch/hostd" \
	--storage-backend local-disk --container-runtime none \
	--sessions-root-dir "$scratch/sessions" >"$scratch/hostd.log" 2>&1 &
host_pid=$!
at_exit "kill $host_pid; wait $host_pid"
check "a host elsewhere is up" wait_for 20 "$build/sbctl" host --host "unix:$scratch/sock" health
is "the same agent there" \
	"$(agent "unix:$scratch/sock" 'echo a >f' 'cat f; echo b' 'exit 7'; echo $?)" "a
b
7"
is "leaves no session there either" "$(ls "$scratch/sessions")" ""

env_line='SetEnv XDG_CACHE_HOME=@DIR@/cache SBSYNC_STATE_DIR=@DIR@/state'
env_line="$env_line XDG_STATE_HOME=@DIR@/state TMPDIR=@DIR@/tmp HOME=@DIR@/home"
if ! command -v ssh-keygen >/dev/null || ! "$build/sbctl" providers | grep -q '^ssh '; then
	skip "over SSH" "no ssh here"
elif ! why=$(sh "$src/tests/lib/sshd.sh" start "$scratch/server" "$env_line"); then
	skip "over SSH" "$why"
else
	dir=$scratch/server
	at_exit "sh $src/tests/lib/sshd.sh stop $dir"
	mkdir -p "$dir/home" "$dir/tmp"
	out=$("$build/doc/example" ssh host=127.0.0.1 user="$(cat "$dir/user")" \
		port="$(cat "$dir/port")" config=/dev/null identity="$dir/id_ed25519" \
		known_hosts="$dir/known_hosts" 2>&1)
	is "over SSH" "$out" "exit 0, 1 files back, destroyed"
	is "its work came back" "$(cat greeting)" "hello
hello"
fi
finish
