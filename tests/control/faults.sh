#!/bin/sh
# SPDX-License-Identifier: MIT
# The conformance suite of controls itself: a control that keeps the contract passes, and one that
# breaks it in the point of a check is found out by that check.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"

build=${SB_TOP_BUILDDIR:-.}
suite=$build/sbcontrol-check
fake=$build/tests/control/.libs/fake.so
TMPDIR=$scratch
export TMPDIR
listener="exec python3 -m http.server --bind 127.0.0.1 \$PORT"

# whole: every check passes; nothing is skipped.
whole()
{
	timeout 200 "$suite" --plugin "$fake" --listener "$listener" >"$scratch/out" ||
		{ cat "$scratch/out"; return 1; }
	! grep SKIP "$scratch/out"
}

# found CHECK: with the fault of that name, that check fails, and the suite with it.
found()
{
	FAKE_FAULT=$1 timeout 100 "$suite" --plugin "$fake" -t 3s -c "$1" --listener "$listener" \
		>"$scratch/out" 2>&1
	[ $? -eq 1 ] && grep -q "^not ok [0-9]* - $1: " "$scratch/out" && return
	cat "$scratch/out"
	return 1
}

check "a control that keeps the contract passes" whole
check "nothing is left of its sandboxes" \
	test -z "$(find "$scratch" -mindepth 1 -maxdepth 1 -name 'sb*')"
for name in $("$suite" --list | cut -d' ' -f1); do
	check "a control that breaks '$name' does not" found "$name"
done
must_fail "without a control there is nothing to check" 2 "$suite"
must_fail "kinds are known" 1 "$suite" --kind nosuch
is "it names those there are" "${output#*use }" "$("$suite" --kind x 2>&1 | sed 's/.*use //')"
finish
