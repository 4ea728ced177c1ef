#!/bin/sh
# SPDX-License-Identifier: MIT
# Cold storage as an operator meets it: a session goes from one daemon to another, archives are
# listed, verified, read by a program that knows the manual page only, and cleaned up.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/loop.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"
need python3

loop_mount ext4 || skip_all "$loop_why"
mkdir -p "$place/bases/img/dir"
echo hello >"$place/bases/img/hello"
ln -s hello "$place/bases/img/link"
cold=$scratch/cold
key=00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff
(umask 077 && echo "$key" >"$scratch/keys")

# host_on NAME OPTION...: a daemon with its own state and sessions, the same cold storage.
host_on()
{
	host_name=$1
	shift
	host_socket=$scratch/$host_name.sock
	SANDBOX_HOST=unix:$host_socket
	host_log=$scratch/$host_name.log
	start_host --storage-backend overlay --sessions-root-dir "$place/$host_name" \
		--bases-dir "$place/bases" --state-dir "$scratch/state-$host_name" \
		--cold-store "$cold" "$@"
}
on()
{
	on_socket=$scratch/$1.sock
	shift
	SANDBOX_HOST=unix:$on_socket "$sbctl" host "$@"
}

host_on a
host_on b
check "the host can deep-pause" sh -c 'SANDBOX_HOST=unix:$1 "$2" host capabilities --json |
	grep -q "\"DeepPause\": *true"' sh "$scratch/a.sock" "$sbctl"
check "a session is made" on a create --id s1 --base img
on a exec s1 sh -c 'head -c 3000000 /dev/urandom >big; echo one >dir/f; mkfifo p' >/dev/null
on a exec s1 sha256sum big >"$scratch/sum"
check "a snapshot" on a snapshot s1 first
on a exec s1 sh -c 'echo two >dir/f; ln big hard' >/dev/null
check "it goes to cold storage" on a deep-pause s1
is "it is cold there" "$(on a ls --state cold | grep -c s1)" 1
is "nothing of it is left" "$(find "$place/a" -path '*s1*' | wc -l)" 0
must_fail "it cannot be used" 1 on a exec s1 true
is "the error tells the way out" "$(printf '%s\n' "$output" | grep -c deep-resume)" 1

is "it is listed" "$("$sbctl" cold ls "$cold" | awk '{ print $1, $2 }')" "s1 cold"
check "it is verified" sh -c '"$1" cold check "$2" s1 | grep -q "good: .* 2 snapshots"' sh \
	"$sbctl" "$cold"
mkdir "$scratch/read"
check "a reader made from the manual page reads it" /usr/bin/python3 \
	"$src/tests/interop/sbcold.py" "$cold" default s1 "$scratch/read"
is "and finds the files of the first snapshot" \
	"$(cat "$scratch/read/first/dir/f" && readlink "$scratch/read/first/link")" "one
hello"
is "whole" "$(sha256sum <"$scratch/read/first/big" | cut -c1-64)" "$(cut -c1-64 "$scratch/sum")"
is "of every kind" "$(stat -c %F "$scratch/read/first/p")" fifo

check "another host takes it" on b deep-resume s1
is "with its files" "$(on b exec s1 sh -c 'cat dir/f; sha256sum hard')" "two
$(sed s/big/hard/ "$scratch/sum")"
is "and its snapshots" "$(on b snapshots s1 | grep -c first)" 1
check "which can be rolled back to" on b rollback s1 first
is "and hold what they held" "$(on b exec s1 cat dir/f)" one
must_fail "the first host cannot have it, too" 1 on a deep-resume s1
check "a host that has it not lets go of its record" on a destroy s1
is "it lives on" "$(on b exec s1 cat dir/f)" one

# --- encrypted ------------------------------------------------------------------------------------
stop_host
host_on b --cold-key-file "$scratch/keys"
check "another one" on b create --id s2 --base img
on b exec s2 sh -c 'echo a secret word >dir/f' >/dev/null
check "goes there encrypted" on b deep-pause s2
must_fail "nobody reads it without the key" 1 "$sbctl" cold check "$cold" s2
check "who has the key verifies it" "$sbctl" cold check --key-file "$scratch/keys" "$cold" s2
mkdir "$scratch/read2"
check "as does the reader" /usr/bin/python3 "$src/tests/interop/sbcold.py" "$cold" default s2 \
	"$scratch/read2" "$key"
is "and finds the word" "$(cat "$scratch/read2/cold-1/dir/f")" "a secret word"
must_fail "which is not in the store" 1 grep -rqa "secret word" "$cold"

# --- leftovers ------------------------------------------------------------------------------------
check "a cold session can be destroyed" on b destroy s2
parts=$(find "$cold/default/parts" -type f | wc -l)
check "what is young stays" "$sbctl" cold gc "$cold"
is "all of it" "$(find "$cold/default/parts" -type f | wc -l)" "$parts"
find "$cold/default/parts" -type f -exec touch -d '2 days ago' {} +
must_fail "a collector that cannot read an index removes nothing" 1 sh -c '
	cp "$3"/sessions/s1.*/*.index "$4" && i=$(echo "$3"/sessions/s1.*/*.index) &&
	dd if=/dev/zero of="$i" bs=1 seek=200 count=1 conv=notrunc 2>/dev/null
	"$1" cold gc "$2"; r=$?; cp "$4" "$i"; exit $r' sh "$sbctl" "$cold" "$cold/default" \
	"$scratch/index"
is "nothing" "$(find "$cold/default/parts" -type f | wc -l)" "$parts"
check "one that can cleans up" "$sbctl" cold gc "$cold"
is "but for what is needed" "$(find "$cold/default/parts" -type f | wc -l)" 1
is "no mark is left" "$(find "$cold/default/marks" -type f | wc -l)" 0
finish
