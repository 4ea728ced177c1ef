#!/bin/sh
# SPDX-License-Identifier: MIT
# The demo of ./quickstart does what it says.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"

check "every promise of the demo holds" "${SB_TOP_SRCDIR:-.}/demo/demo.sh" "${SB_TOP_BUILDDIR:-build}"
finish
