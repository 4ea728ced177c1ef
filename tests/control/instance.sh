#!/bin/sh
# SPDX-License-Identifier: MIT
# Controls of kind instance: real sbhostd processes that are made for a sandbox and killed, machines
# that are handed out, and a controller that is killed at its steps. CONTROL_KILLS=all tries every
# step, else some.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/shim.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"

XDG_STATE_HOME=$scratch/state-home HOME=$scratch
export XDG_STATE_HOME HOME
mkdir -p "$scratch/state-home"
suite=$build/sbcontrol-check
listener="exec python3 -m http.server --bind 127.0.0.1 \$PORT"
dir=$scratch/i
cat >"$scratch/config.yaml" <<END
defaults: {control: dev}
controls:
  dev: {kind: instance, provisioner: local, owner: me, dir: $dir, runtime: none,
    storage: local-disk}
  other: {kind: instance, provisioner: local, owner: you, dir: $dir, runtime: none}
  broken: {kind: instance, provisioner: local, owner: me, dir: $scratch/b, sbhostd: /bin/false}
END
ctl()
{
	verb=$1
	shift
	timeout 100 "$sbctl" control "$verb" --config "$scratch/config.yaml" "$@"
}
instances() { find "$1" -mindepth 2 -maxdepth 2 -name record 2>/dev/null | wc -l; }
hosts() { pgrep -f -c -- "--listen unix:$1/" || true; }
at_exit 'pkill_hosts'
# What a test that failed has left: by the pid files, which are ours.
pkill_hosts()
{
	for f in "$dir"/*/pid "$scratch"/b/*/pid; do
		[ -f "$f" ] && kill -9 "$(cut -d' ' -f1 "$f")" 2>/dev/null
	done
}

# The suite, in the points in which kinds differ.
passes()
{
	timeout 200 "$suite" --listener "$listener" --state-dir "$scratch/suite" "$@" \
		-c create -c key -c destroy -c again -c port -c pause >"$scratch/out" 2>&1 &&
		return
	grep -A1 '^not ok' "$scratch/out" || cat "$scratch/out"
	return 1
}
check "local processes pass" passes -k instance -o provisioner=local -o owner=suite \
	-o "dir=$dir" -o runtime=none -o storage=local-disk
is "no instance is left" "$(instances "$dir") $(hosts "$dir")" "0 0"

# Life of one.
id=$(ctl create --key one -L job=1 --lifetime 2h)
is "there is one instance" "$(instances "$dir") $(hosts "$dir")" "1 1"
is "it has the lifetime that was asked for" \
	"$(ctl show "$id" --json | json 'o["expires"] is not None')" True
instance=$(ctl show "$id" --json | json 'o["instance"]')
check "it is worked in" ctl launch -w "$id" sh -c 'echo work >file'
is "another owner sees nothing of it" "$(ctl ls --control other --json | json 'len(o)')" 0
must_fail "and cannot destroy it" 1 ctl destroy --control other "$id"
check "nor does its recover touch it" ctl recover --control other
kill -9 "$(cut -d' ' -f1 "$dir/$instance/pid")"
wait_for 20 sh -c "! kill -0 $(cut -d' ' -f1 "$dir/$instance/pid") 2>/dev/null"
is "one that was killed is told" "$(ctl show "$id" --json | json 'o["state"], o["labels"]')" \
	"('unreachable', {'job': '1'})"
check "recover leaves it: somebody worked in it" ctl recover
is "it is there" "$(instances "$dir")" 1
check "resume switches it on" ctl resume "$id"
check "its work is there" ctl launch -w "$id" grep -q work file
SANDBOX_HOST=unix:$dir/$instance/s "$sbctl" host create --empty --id by-hand >/dev/null
must_fail "an instance with somebody else's session is not terminated" 1 ctl destroy "$id"
check "and stays whole" ctl launch -w "$id" grep -q work file
SANDBOX_HOST=unix:$dir/$instance/s "$sbctl" host destroy by-hand
kill -9 "$(cut -d' ' -f1 "$dir/$instance/pid")"
check "one that was killed can be destroyed" ctl destroy "$id"
is "nothing is left of it" "$(instances "$dir") $(hosts "$dir")" "0 0"

must_fail "an instance that never comes up fails the create" 1 ctl create --control broken
is "says why" "$(echo "$output" | grep -c 'its process has ended, see')" 1
is "and is gone" "$(instances "$scratch/b")" 0

# Machines that are there.
start_host --storage-backend local-disk --sessions-root-dir "$scratch/sessions"
cat >>"$scratch/config.yaml" <<END
  fixed: {kind: instance, provisioner: static, owner: me, addresses: ["unix:$host_socket"]}
END
one=$(ctl create --control fixed)
must_fail "when all machines are taken there are no more" 1 ctl create --control fixed
is "it is said so" "$(echo "$output" | grep -c 'all 1 machines are taken')" 1
must_fail "sizes cannot be chosen" 1 ctl create --control fixed --cpus 1
"$sbctl" host create --empty --id by-hand >/dev/null
check "destroy gives the machine back" ctl destroy --control fixed "$one"
check "for the next" ctl create --control fixed
check "what others have on it stays" "$sbctl" host get by-hand
stop_host

# steps VERB...: how many calls that change files the controller makes.
steps()
{
	head -c 64 /dev/zero >"$scratch/log"
	FAULT_EXE=sbctl FAULT_N=0 FAULT_LOG=$scratch/log LD_PRELOAD="$shim" ctl "$@" >/dev/null ||
		return 1
	od -An -tu8 -N8 "$scratch/log" | tr -d ' '
}
# killed N VERB...: the controller, before its n-th such call. What it had started lives on.
killed()
{
	head -c 64 /dev/zero >"$scratch/log"
	n=$1
	shift
	(FAULT_EXE=sbctl FAULT_N=$n FAULT_HOW=kill FAULT_LOG=$scratch/log LD_PRELOAD="$shim" \
		ctl "$@" >/dev/null 2>&1) 2>/dev/null
	[ "$(od -An -tu8 -j8 -N8 "$scratch/log" | tr -d ' ')" = 1 ]
}
# Every instance is a sandbox that runs, and there are no others.
consistent()
{
	ctl recover || return 1
	n=$(ctl ls --json | json 'len([s for s in o if s["state"] == "running"])')
	[ "$n" = "$(instances "$dir")" ] && [ "$n" = "$(hosts "$dir")" ] && return
	echo "$n sandboxes run, $(instances "$dir") instances, $(hosts "$dir") hosts"
	ctl ls
	return 1
}
crash_in_create()
{
	killed "$1" create --key "crash-$1" || return 1
	consistent || return 1
	id=$(ctl create --key "crash-$1") || return 1
	[ "$(ctl ls --json | json 'len(o)')" = 1 ] || { ctl ls; return 1; }
	ctl launch -w "$id" true && ctl destroy "$id" && consistent &&
		[ "$(instances "$dir")" = 0 ]
}
# Before the answer of destroy the work is there as a whole, or gone as a whole.
crash_in_destroy()
{
	id=$(ctl create --key "end-$1") && ctl launch -w "$id" sh -c 'echo work >file' &&
		killed "$1" destroy "$id" && consistent || return 1
	if [ "$(instances "$dir")" = 1 ]; then
		ctl launch -w "$id" grep -q work file && ctl destroy "$id" || return 1
	fi
	consistent && [ "$(instances "$dir")" = 0 ]
}
some()
{
	if [ "${CONTROL_KILLS-}" = all ]; then
		seq 1 "$1"
	else
		# Two of them, others in each run.
		for _ in 1 2; do
			echo $((1 + $(od -An -N2 -tu2 /dev/urandom) % $1))
		done | sort -nu
	fi
}
if [ -f "${shim##* }" ]; then
	total=$(steps create --key count)
	check "a create has steps to be killed at" test "$total" -gt 3
	id=$(ctl ls --json | json 'o[0]["id"]')
	ends=$(steps destroy "$id")
	check "so has a destroy" test "$ends" -gt 3
	for n in $(some "$total"); do
		check "a controller killed in create, step $n of $total" crash_in_create "$n"
	done
	for n in $(some "$ends"); do
		check "a controller that is killed in destroy, step $n of $ends" \
			crash_in_destroy "$n"
	done
else
	skip "a controller that is killed" "the library that kills is not built"
fi
is "at the end nothing is left" "$(instances "$dir") $(hosts "$dir")" "0 0"
is "nor any record" "$(ls "$XDG_STATE_HOME/sbsync/controls/dev/records")" ""
finish
