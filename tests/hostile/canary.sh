#!/bin/sh
# SPDX-License-Identifier: MIT
# Random hostile trees, real git: a few rounds, the same each time; make check-canary does
# thousands, others with each CANARY_SEED.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need git
need python3
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
build=$(cd "${SB_TOP_BUILDDIR:-.}" && pwd)
canary()
{
	python3 "${SB_TOP_SRCDIR:-.}/tests/hostile/canary.py" "$build/sbsync" "$@"
}

check "git runs nothing that a sandbox planted" \
	canary "$scratch/on" "${CANARY_ROUNDS:-15}" "${CANARY_SEED:-1}"
check "without the guard it does" canary "$scratch/off" 50 1 off
finish
