#!/bin/sh
# SPDX-License-Identifier: MIT
# The host provider against the conformance suite: the host in the process itself, and a sandbox
# host (sbhostd) elsewhere.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"

TMPDIR=$scratch
XDG_STATE_HOME=$scratch
SBSYNC_AGENT=$build/sbsync-agent
export TMPDIR XDG_STATE_HOME SBSYNC_AGENT

# All 46 checks take minutes: SB_PROVIDER_FULL=1.
some="-c prepare -c prepare-refuses -c state -c destroy -c find -c reattach -c sync-deletions"
[ -z "${SB_PROVIDER_FULL:-}" ] || some=
suite()
{
	# shellcheck disable=SC2086
	timeout "${SB_PROVIDER_FULL:+1200}${some:+280}" "$build/sbprovider-check" \
		-b host $some "$@" >"$scratch/out" 2>&1
	status=$?
	[ $status -eq 0 ] || grep -v '^ok' "$scratch/out"
	return $status
}

# A runtime that is not here, or not for who runs this, is told by its probe.
missing()
{
	case $1 in
	gvisor) command -v runsc >/dev/null && [ "$(id -u)" = 0 ] && return 1 ;;
	bwrap) command -v bwrap >/dev/null && bwrap --unshare-user --ro-bind / / true 2>/dev/null &&
		return 1 ;;
	none) return 1 ;;
	esac
}

for runtime in none bwrap gvisor; do
	if missing $runtime; then
		skip "embedded, $runtime" "$runtime does not work here"
		skip "a host elsewhere, $runtime" "$runtime does not work here"
		continue
	fi
	check "embedded, $runtime" suite -o runtime=$runtime
	is "and nothing is left of it" "$(ls "$scratch/sandboxes/host" 2>/dev/null)" ""
	start_host_for local-disk --container-runtime $runtime --allow-host-network
	check "a host elsewhere, $runtime" suite -o "url=unix:$host_socket"
	is "and no session is left there" \
		"$("$sbctl" host ls --json)" '{"Sessions":[],"NextAfter":""}'
	stop_host
	# Minutes are not there for every runtime in every form.
	[ -n "${SB_PROVIDER_FULL:-}" ] || some="-c prepare -c prepare-refuses -c sync-deletions"
done
finish
