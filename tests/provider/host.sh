#!/bin/sh
# SPDX-License-Identifier: MIT
# The host provider against the conformance suite: the host in the process itself, and a sandbox host (sbhostd) elsewhere.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"

TMPDIR=$scratch
XDG_STATE_HOME=$scratch
SBSYNC_AGENT=$build/sbsync-agent
export TMPDIR XDG_STATE_HOME SBSYNC_AGENT

# All 46 checks take minutes: SB_PROVIDER_FULL=1.
some="-c prepare -c state -c destroy -c find -c reattach -c sync-deletions"
[ -z "${SB_PROVIDER_FULL:-}" ] || some=
suite()
{
	# shellcheck disable=SC2086
	timeout 280 "$build/sbprovider-check" -b host $some "$@" >"$scratch/out" 2>&1
	status=$?
	[ $status -eq 0 ] || grep -v '^ok' "$scratch/out"
	return $status
}

check "embedded, without isolation" suite -o runtime=none
is "and nothing is left of it" "$(ls "$scratch/sandboxes/host" 2>/dev/null)" ""
if suite -c prepare >/dev/null -o runtime=bwrap; then
	ok "embedded, in namespaces"
else
	skip "embedded, in namespaces" "$(grep -m 1 '^#' "$scratch/out")"
fi
start_host_for local-disk --container-runtime none
check "a host elsewhere" suite -o "url=unix:$host_socket"
is "and no session is left there" "$("$sbctl" host ls --json)" '{"Sessions":[],"NextAfter":""}'
stop_host
finish
