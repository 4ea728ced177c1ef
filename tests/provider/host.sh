#!/bin/sh
# SPDX-License-Identifier: MIT
# The host provider against the conformance suite: all of it, with the host in the process itself.
# Its other forms, in part: host-forms.sh.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"

TMPDIR=$scratch
XDG_STATE_HOME=$scratch
SBSYNC_AGENT=$build/sbsync-agent
export TMPDIR XDG_STATE_HOME SBSYNC_AGENT

# suite [ARGUMENT]...: only "hang" may be left out. All of it takes a minute: once in bwrap (else
# without isolation), in every form with SB_PROVIDER_FULL=1.
suite()
{
	timeout 280 "$build/sbprovider-check" -b host "$@" >"$scratch/out" 2>&1
	status=$?
	grep -v '^ok' "$scratch/out"
	[ $status -eq 0 ] || tail -n 1 "$scratch/out"
	if grep SKIP "$scratch/out" | grep -v 'hang #'; then
		status=1
	fi
	return $status
}
some="-c prepare -c prepare-refuses -c state -c destroy -c find -c reattach -c sync-deletions"
some="$some -c persist -c labels -c snapshot -c capabilities -c told -c version"
few="-c prepare -c prepare-refuses -c sync-deletions -c persist"
[ -z "${SB_PROVIDER_FULL:-}" ] || some='' few=''

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

# The program that the remote shell is named after is not needed: a place and a PATH without it.
alone()
{
	real=$build/.libs/sbprovider-check
	[ -x "$real" ] || real=$build/sbprovider-check
	mkdir -p "$scratch/alone" &&
		cp "$real" "$build/sb-box" "$build/sb-files" "$scratch/alone" || return 1
	if ! PATH=/usr/bin:/bin LD_LIBRARY_PATH=$(cd "$build" && pwd)/.libs timeout 280 \
		"$scratch/alone/sbprovider-check" -b host -o runtime=none -c prepare \
		-c sync-deletions -c reattach -c destroy >"$scratch/out" 2>&1; then
		cat "$scratch/out"
		return 1
	fi
	! grep SKIP "$scratch/out"
}
if [ -z "${FORMS:-}" ] && PATH=/usr/bin:/bin command -v sbctl >/dev/null; then
	skip "without sbctl on the disk" "it is installed here"
elif [ -z "${FORMS:-}" ]; then
	check "without sbctl on the disk" alone
fi

whole=none
missing bwrap || whole=bwrap
for runtime in none bwrap gvisor; do
	if [ -n "${FORMS:-}" ] && missing $runtime; then
		skip "embedded, $runtime" "$runtime does not work here"
		skip "a host elsewhere, $runtime" "$runtime does not work here"
		continue
	fi
	[ -n "${FORMS:-}" ] || [ $runtime = $whole ] || continue
	which=$few
	[ $runtime != none ] || which=$some
	elsewhere=$which
	[ -n "${FORMS:-}" ] || which=''
	# shellcheck disable=SC2086
	check "embedded, $runtime${which:+, a part}" suite -o runtime=$runtime $which
	is "and nothing is left of it" "$(ls "$scratch/sandboxes/host" 2>/dev/null)" ""
	[ -n "${FORMS:-}" ] || continue
	start_host_for local-disk --container-runtime $runtime --allow-host-network
	# shellcheck disable=SC2086
	check "a host elsewhere, $runtime${elsewhere:+, a part}" \
		suite -o "url=unix:$host_socket" $elsewhere
	is "and no session is left there" \
		"$("$sbctl" host ls --json)" '{"Sessions":[],"NextAfter":""}'
	stop_host
done
finish
