#!/bin/sh
# SPDX-License-Identifier: MIT
# The local provider against the conformance suite, as who we are and as an ordinary user.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"

build=${SB_TOP_BUILDDIR:-.}
TMPDIR=$scratch
export TMPDIR

suite()
{
	timeout 200 "$@" "$build/sbprovider-check" -b local
}

check "the local provider passes" suite env
if [ "$(id -u)" != 0 ]; then
	skip "as an ordinary user" "we are one"
elif ! setpriv --reuid 4321 --regid 4321 --clear-groups "$build/sbprovider-check" \
	--version >/dev/null 2>&1; then
	skip "as an ordinary user" "another user cannot run what was built here"
else
	chmod 1777 "$scratch"
	check "as an ordinary user" suite setpriv --reuid 4321 --regid 4321 --clear-groups
fi
finish
