#!/bin/sh
# SPDX-License-Identifier: MIT
# A part of the fault sweep that fits into `make check`; `make fault` runs all of it.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3

tests=${SB_TOP_SRCDIR:-.}/tests/fault
sbsync=${SB_TOP_BUILDDIR:-.}/sbsync
shim=${SB_TOP_BUILDDIR:-.}/tests/fault/.libs/shim.so
FAULT_DIR=$scratch
export FAULT_DIR

# Both print TAP of their own: their comments are passed on, their failures counted once.
passed()
{
	python3 "$@" >"$scratch/out" 2>&1
	code=$?
	diag <"$scratch/out"
	return $code
}

# The same ones each time; FAULT_SEED draws others.
if passed "$tests/sweep.py" --seed "${FAULT_SEED:-1}" --seconds "${FAULT_SECONDS:-25}" \
	"$sbsync" "$shim"; then
	ok "faults"
else
	not_ok "faults"
fi
if passed "$tests/races.py" --rounds 6 "$sbsync" "$shim"; then ok "races"; else not_ok "races"; fi
finish
