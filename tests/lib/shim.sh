# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Source it: $shim is what LD_PRELOAD names for the library of the fault tests (tests/fault/shim.c).
# An instrumented program wants the library of its sanitizer before every other one.
shim=$(cd "${SB_TOP_BUILDDIR:-.}" && pwd)/tests/fault/.libs/shim.so
shim="$(ldd "${SB_TOP_BUILDDIR:-.}/sbsync" | sed -n 's/.*=> \(.*lib[at]san[^ ]*\) .*/\1 /p')$shim"
