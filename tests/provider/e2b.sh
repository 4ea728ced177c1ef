#!/bin/sh
# SPDX-License-Identifier: MIT
# The E2B provider against the conformance suite: sandboxes of a real host, ours, with that API.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3
. "${SB_TOP_SRCDIR:-.}/tests/lib/e2bhost.sh"

TMPDIR=$scratch
SBSYNC_AGENT=$build/sbsync-agent
export TMPDIR SBSYNC_AGENT
runtime=$(e2b_runtime)
start_e2b_host "$runtime"

cat >"$scratch/hang.sh" <<END
case \$1 in
on) sh $src/tests/lib/freeze.sh $host_pid || exit 1 ;;
off) kill -CONT $host_pid ;;
esac
exit 0
END

# suite [ARGUMENT]...
suite()
{
	timeout 280 "$build/sbprovider-check" -b e2b -o "api_url=$e2b_url" \
		-o "sandbox_url=$e2b_url" --hang "sh $scratch/hang.sh" "$@" >"$scratch/out" 2>&1
	status=$?
	grep -v '^ok' "$scratch/out"
	return $status
}
# All of it takes a minute: SB_PROVIDER_FULL=1. Else what may differ from the ssh provider.
some="-c prepare -c state -c destroy -c find -c reattach -c crash -c persist -c labels -c sync-odd"
some="$some -c sync-deletions -c launch -c tools-terminal -c cancel -c deadline -c hang"
[ -z "${SB_PROVIDER_FULL:-}" ] || some=
# shellcheck disable=SC2086
check "the E2B provider passes, $runtime" suite $some
grep SKIP "$scratch/out" | diag
is "nothing is left over there" "$(e2b_left)" ""
finish
