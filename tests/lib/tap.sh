# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
# TAP for shell tests. Source it first:
#     . "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
# then call check, must_fail, skip, ... and end with `finish`. $scratch is an empty folder
# that is removed at the end (kept when SB_KEEP is set); commands registered with at_exit run
# before that, last one first.

tap_n=0
tap_failed=0
tap_exit=
scratch=$(mktemp -d "${TMPDIR:-/tmp}/sbtest.XXXXXX") || exit 1

tap_cleanup()
{
	tap_status=$?
	trap - EXIT HUP INT TERM
	eval "$tap_exit"
	if [ -n "${SB_KEEP-}" ]; then
		echo "# kept $scratch"
	else
		chmod -R u+rwX "$scratch" 2>/dev/null
		rm -rf "$scratch"
	fi
	exit $tap_status
}
trap tap_cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# at_exit 'COMMAND': a line of shell that runs when the test ends, however it ends.
at_exit()
{
	tap_exit="$1
$tap_exit"
}

# Each line of stdin as a TAP comment.
diag()
{
	sed 's/^/# /'
}

# ok DESCRIPTION / not_ok DESCRIPTION [WHY]
ok()
{
	tap_n=$((tap_n + 1))
	echo "ok $tap_n - $1"
}

not_ok()
{
	tap_n=$((tap_n + 1))
	tap_failed=$((tap_failed + 1))
	echo "not ok $tap_n - $1"
	[ $# -lt 2 ] || printf '%s\n' "$2" | diag
}

# check DESCRIPTION COMMAND...: passes when the command exits 0; prints its output when not.
check()
{
	tap_what=$1
	shift
	tap_status=0
	"$@" >"$scratch/.tap" 2>&1 </dev/null || tap_status=$?
	if [ $tap_status -eq 0 ]; then
		ok "$tap_what"
	else
		not_ok "$tap_what" "exit $tap_status from: $*"
		diag <"$scratch/.tap"
	fi
}

# must_fail DESCRIPTION STATUS COMMAND...: passes when the command exits with exactly that status.
# Death by a signal is never the failure that was asked for. What it printed is in $output then.
must_fail()
{
	tap_what=$1
	tap_want=$2
	shift 2
	tap_status=0
	"$@" >"$scratch/.tap" 2>&1 </dev/null || tap_status=$?
	output=$(cat "$scratch/.tap")
	if [ $tap_status -eq "$tap_want" ] && [ $tap_status -lt 126 ]; then
		ok "$tap_what"
	else
		not_ok "$tap_what" "exit $tap_status instead of $tap_want from: $*"
		diag <"$scratch/.tap"
	fi
}

# is DESCRIPTION GOT WANT: the two strings are equal.
is()
{
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		not_ok "$1" "got:  $2
want: $3"
	fi
}

# skip DESCRIPTION REASON
skip()
{
	tap_n=$((tap_n + 1))
	echo "ok $tap_n - $1 # SKIP $2"
}

# skip_all REASON: nothing of this file can run here.
skip_all()
{
	echo "1..0 # SKIP $1"
	exit 0
}

# need PROGRAM...: skip_all unless each is installed.
need()
{
	for tap_p; do
		command -v "$tap_p" >/dev/null 2>&1 || skip_all "$tap_p is not installed"
	done
}

# wait_for SECONDS COMMAND...: tries the command until it succeeds; fails after the time.
wait_for()
{
	tap_end=$(($(date +%s) + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -lt "$tap_end" ] || return 1
		sleep 0.05
	done
}

finish()
{
	echo "1..$tap_n"
	[ $tap_failed -eq 0 ] || exit 1
	exit 0
}
