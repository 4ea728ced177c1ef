#!/bin/sh
# SPDX-License-Identifier: MIT
# A host that was killed between an order to gVisor and its note of it: the session is what its
# record says, and can be paused and resumed like any other.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"
need python3
[ "$(id -u)" = 0 ] || skip_all "gVisor needs root"
need runsc
disk="--storage-backend local-disk --sessions-root-dir $scratch/sessions"

# Kills the host; then what it had ordered, or not.
cut()
{
	kill -9 "$host_pid"
	wait "$host_pid" 2>/dev/null
	name=$(find "$scratch/state/runsc" -name '*.state' | head -n 1)
	name=${name##*/}
	runsc --root="$scratch/state/runsc" --platform="$(cut_platform)" --network=none \
		--ignore-cgroups "$1" "${name%%_sandbox*}" >"$scratch/out" 2>&1
}

cut_platform()
{
	sed 's/ .*//' "$scratch/state/gvisor-platform"
}

says()
{
	timeout 60 "$sbctl" host tool --params '{"cmd":"echo fine"}' a bash 2>&1 | head -n 1
}

start_host $disk --container-runtime gvisor --no-resume
"$sbctl" host create --empty --id a >/dev/null
[ "$(says)" = fine ] || skip_all "gVisor does not work here: $(says)"
"$sbctl" host pause a
check "the host is killed right after it resumed" cut resume
start_host $disk --container-runtime gvisor --no-resume
check "the session can be resumed" timeout 60 "$sbctl" host resume a
is "and runs" "$(says)" fine
check "the host is killed right after it paused" cut pause
start_host $disk --container-runtime gvisor --no-resume
is "a session that is active runs" "$(says)" fine
check "and can be paused" timeout 60 "$sbctl" host pause a
check "and resumed" timeout 60 "$sbctl" host resume a
"$sbctl" host destroy --force a
stop_host
finish
