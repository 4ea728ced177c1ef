#!/bin/sh
# SPDX-License-Identifier: MIT
# Each message kind with the largest lie the wire has room for: small memory, a quick end.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3

build=${SB_TOP_BUILDDIR:-.}
TMPDIR=$scratch
export TMPDIR
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
python3 -c 'import ctypes; [ctypes.CDLL(x) for x in ("libxxhash.so.0", "libzstd.so.1")]' \
	2>/dev/null || skip_all "no libxxhash.so.0 or libzstd.so.1"
if nm "$build/sbsync" 2>/dev/null | grep -qE '__[at]san_init'; then
	SB_SANITIZED=1
	export SB_SANITIZED
fi
python3 "${SB_TOP_SRCDIR:-.}/tests/hostile/flood.py" "$build/sbsync"
