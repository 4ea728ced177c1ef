#!/bin/sh
# SPDX-License-Identifier: MIT
# A part of the fault sweep that fits into `make check`; `make fault` runs all of it.
build=${SB_TOP_BUILDDIR:-.}
exec python3 "${SB_TOP_SRCDIR:-.}/tests/fault/sweep.py" --seconds "${FAULT_SECONDS:-25}" "$build/sbsync" "$build/tests/fault/.libs/shim.so"
