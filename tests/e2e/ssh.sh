#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2086
# Mirrors to and from other machines: real OpenSSH and dropbear servers, the ssh
# program, links that break.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3 ssh ssh-keygen

src=${SB_TOP_SRCDIR:-.}
build=${SB_TOP_BUILDDIR:-.}
sbsync=$build/sbsync
trees="python3 $src/tests/lib/trees.py"
export SBSYNC_STATE_DIR="$scratch/state"
cd "$scratch" || exit 1

# Everything the far side writes stays in the folder of its server.
env_line='SetEnv XDG_CACHE_HOME=@DIR@/cache SBSYNC_STATE_DIR=@DIR@/state'
env_line="$env_line XDG_STATE_HOME=@DIR@/state TMPDIR=@DIR@/tmp"

# server NAME VERB [LINE]...: starts one; sets port, dir and opts. False (77) where it cannot run.
server()
{
	dir=$scratch/$1
	verb=$2
	shift 2
	why=$(sh "$src/tests/lib/sshd.sh" "$verb" "$dir" "$@") || return
	at_exit "sh $src/tests/lib/sshd.sh stop $dir"
	SSHD_KEYS=$dir
	export SSHD_KEYS
	port=$(cat "$dir/port")
	user=$(cat "$dir/user")
	opts="--known-hosts $dir/known_hosts -i $dir/id_ed25519 -F /dev/null"
	there=$user@127.0.0.1
}

$trees random tree 7 200
cp -a tree tree2
$trees mutate tree2 11 30
mkdir plain && cp -r "$src/sync" "$src/lib" plain

# Push, nothing to do, edits, pull: equal each time.
round_trip()
{
	far=$1
	shift
	"$sbsync" mirror -q $opts -p "$port" "$@" tree "$there:$far" &&
		$trees same tree "$far" &&
		"$sbsync" mirror -q $opts -p "$port" "$@" --max-delete 100000 tree2 "$there:$far" &&
		$trees same tree2 "$far" &&
		"$sbsync" mirror -q $opts -p "$port" "$@" --max-delete 100000 plain "$there:$far" &&
		"$sbsync" mirror -q $opts -p "$port" "$@" "$there:$far" "back$$" &&
		$trees same plain "back$$" && rm -rf "back$$"
}

if server one start "$env_line"; then
	check "OpenSSH, the agent is brought there" round_trip "$dir/far"
	is "one agent is there now" "$(find "$dir/cache/sbsync" -type f | wc -l | tr -d ' ')" 1
	check "OpenSSH, the agent is there" round_trip "$dir/far2"
	check "with the ssh program" round_trip "$dir/far3" --rsh ssh
	from_home()
	{
		relative=$(cd && python3 -c 'import os, sys; print(os.path.relpath(sys.argv[1]))' \
			"$dir/far4")
		"$sbsync" mirror -q $opts -p "$port" tree "$there:$relative" &&
			$trees same tree "$dir/far4"
	}
	check "relative paths are below the login directory" from_home
	"$sbsync" mirror --json $opts -p "$port" tree "$there:$dir/far5" >json 2>&1
	check "bytes on the wire are counted at the socket" python3 -c "
import json
r = json.load(open('json'))
assert r['bytes_wire_up'] > 2000 and r['bytes_wire_down'] > 2000, r"
	mkdir random && head -c 400000 /dev/urandom >random/bytes
	limited()
	{
		begin=$(date +%s%3N)
		"$sbsync" mirror -q $opts -p "$port" --bwlimit 200K random "$there:$dir/slow" &&
			[ $(($(date +%s%3N) - begin)) -gt 1500 ] && $trees same random "$dir/slow"
	}
	check "--bwlimit holds the connection back" limited
	must_fail "an unknown host is refused" 1 "$sbsync" mirror --known-hosts /dev/null \
		-F /dev/null -i "$dir/id_ed25519" -p "$port" tree "$there:$dir/no"
	check "and nothing is written there" test ! -e "$dir/no"
	check "the way out is named" \
		sh -c "printf '%s' \"\$0\" | grep -q -e --accept-new-host-key" "$output"
	must_fail "a key that may not log in is refused" 1 \
		"$sbsync" mirror --known-hosts "$dir/known_hosts" -F /dev/null -i "$dir/other" \
		-p "$port" tree "$there:$dir/no"
	"$sbsync" doctor --json $opts -p "$port" "$there:$dir/far/deep" >json 2>&1
	check "doctor finds nothing wrong" python3 -c "
import json
r = json.load(open('json'))
assert r['result'] == 'ok', r
assert [c['check'] for c in r['checks']] == [
    'name', 'host key', 'log-in', 'agent', 'write access', 'free space', 'clock'], r
assert all(c['state'] in ('good', 'warning') for c in r['checks']), r"
	must_fail "doctor names a host key that is not known" 1 "$sbsync" doctor \
		--known-hosts /dev/null -F /dev/null -i "$dir/id_ed25519" -p "$port" "$there:x"
	check "with the way out, and tries nothing behind it" sh -c "
		printf '%s' \"\$0\" | grep -q '^bad *host key .*--accept-new-host-key' &&
		printf '%s' \"\$0\" | grep -q '^skipped *log-in'" "$output"
	must_fail "doctor names a path that cannot be written" 1 \
		"$sbsync" doctor $opts -p "$port" "$there:/proc/1/x"
	check "and which" \
		sh -c "printf '%s' \"\$0\" | grep -q '^bad *write access .*/proc/1'" "$output"
	must_fail "doctor wants another machine" 2 "$sbsync" doctor ./here
	check "doctor of this machine" "$sbsync" doctor
	must_fail "nobody listens on port 1" 1 "$sbsync" mirror $opts -p 1 tree "$there:$dir/no"
	check "host, port and user are named" \
		sh -c "printf '%s' \"\$0\" | grep -q '$there port 1'" "$output"
else
	[ $? = 77 ] || not_ok "sshd starts" "$why"
	skip "mirrors by SSH" "${why:-sshd does not start}"
fi

# As a user of its own, with nothing in the environment; the agent goes to ~/.cache there.
chmod 711 "$scratch" # the user has to get to its home
SSHD_ACCOUNT=sbtester
export SSHD_ACCOUNT
if server two start; then
	mkdir -p "$dir/home/w"
	chown 4321 "$dir/home/w"
	as_user()
	{
		"$sbsync" mirror -q $opts -p "$port" tree "$there:w/far" &&
			$trees same tree "$dir/home/w/far" && test -d "$dir/home/.cache/sbsync"
	}
	check "as a plain user" as_user
	must_fail "a place the user may not write is one clear error" 1 \
		"$sbsync" mirror $opts -p "$port" tree "$there:/etc/sbsync-test"
	check "which names it" sh -c "printf '%s' \"\$0\" | grep -q 'sbsync-test'" "$output"
else
	skip "as a plain user" "$why"
fi
if server three start-dropbear; then
	with_dropbear()
	{
		"$sbsync" mirror -q $opts -p "$port" plain "$there:far" &&
			$trees same plain "$dir/home/far" &&
			"$sbsync" mirror -q $opts -p "$port" "$there:far" backdb &&
			$trees same plain backdb
	}
	check "dropbear" with_dropbear
else
	skip "dropbear" "$why"
fi
unset SSHD_ACCOUNT
finish
