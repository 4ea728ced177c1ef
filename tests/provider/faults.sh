#!/bin/sh
# SPDX-License-Identifier: MIT
# The conformance suite itself: a provider that keeps the contract passes, and one that breaks it in
# the point of a check is found out by that check.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"

build=${SB_TOP_BUILDDIR:-.}
suite=$build/sbprovider-check
FAKE_SBSYNC=$build/sbsync
SBSYNC_BOX_DIR=$scratch/places
TMPDIR=$scratch
export FAKE_SBSYNC SBSYNC_BOX_DIR TMPDIR
mkdir -p "$scratch/places/shared-root"

# whole: every check passes; only "hang" cannot be tried here.
whole()
{
	timeout 250 "$suite" --plugin "$build/tests/provider/.libs/fake.so" >"$scratch/out" ||
		{ grep -A1 '^not ok' "$scratch/out"; return 1; }
	! grep SKIP "$scratch/out" | grep -v 'hang #'
}

# found CHECK: with the fault of that name, that check fails, and the suite with it.
found()
{
	hang='' limit=4s
	case $1 in
	hang) hang='--hang true' ;;
	tools-races) limit=30s ;; # the race has to come about first
	esac
	# shellcheck disable=SC2086
	FAKE_FAULT=$1 timeout 60 "$suite" --plugin "$build/tests/provider/.libs/fake.so" -t $limit \
		-c "$1" $hang >"$scratch/out" 2>&1
	[ $? -eq 1 ] && grep -q "^not ok [0-9]* - $1: " "$scratch/out" && return
	cat "$scratch/out"
	return 1
}

check "a provider that keeps the contract passes" whole
check "nothing is left of its sandboxes" \
	test -z "$(find "$scratch/places" -mindepth 1 -maxdepth 1 ! -name shared-root)"
for name in $("$suite" --list | cut -d' ' -f1); do
	check "a provider that breaks '$name' does not" found "$name"
done
finish
