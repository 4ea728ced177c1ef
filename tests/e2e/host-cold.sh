#!/bin/sh
# SPDX-License-Identifier: MIT
# Deep pause and deep resume on storage overlay.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/loop.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/hosttests.sh"

[ -z "${SB_COLD_FS-}" ] || [ -n "${SB_COLD_FULL-}" ] ||
	skip_all "slow: say SB_COLD_FULL=1"
loop_mount "${SB_COLD_FS:-ext4}" || skip_all "$loop_why"
export SB_TEST_STORAGE="${SB_COLD_STORAGE:-overlay}" SB_TEST_PLACE="$place"
relay test-host-cold
finish
