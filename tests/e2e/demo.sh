#!/bin/sh
# SPDX-License-Identifier: MIT
# The demo of ./quickstart does what it says.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"

check "every promise of the demo holds" \
	"${SB_TOP_SRCDIR:-.}/demo/demo.sh" "${SB_TOP_BUILDDIR:-build}"
if [ "$(id -u)" = 0 ]; then
	is "rollback and fork tell their milliseconds" \
		"$(grep -c -E 'sbctl: (rollback|fork) took [0-9.]+ ms' "$scratch/.tap")" 2
else
	skip "rollback and fork tell their milliseconds" "the host part needs root"
fi
finish
