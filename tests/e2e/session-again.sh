#!/bin/sh
# SPDX-License-Identifier: MIT
# A session that was stopped and started again goes on where it ended: what both sides had in
# common is still known.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/shim.sh"

build=${SB_TOP_BUILDDIR:-.}
case $build in /*) ;; *) build=$PWD/$build ;; esac
sbsync=$build/sbsync
export SBSYNC_STATE_DIR="$scratch/state"
cd "$scratch" || exit 1

mkdir -p ws/d && for f in a b c d/x d/y; do echo one >ws/$f; done
check "start" "$sbsync" start -q --name s ws rt
check "stop" "$sbsync" stop -q s
echo here >>ws/a && echo there >>rt/b && rm ws/c && rm rt/d/x && echo new >ws/e
check "start again" "$sbsync" start -q --name s ws rt
is "an edit here went there" "$(tail -n 1 rt/a)" here
check "a deletion here, too" test ! -e rt/c
is "an edit there stays" "$(tail -n 1 rt/b)" there
check "a turn without conflicts" "$sbsync" sync -q s
is "brings the edit" "$(tail -n 1 ws/b)" there
check "and the deletion" test ! -e ws/d/x
is "no conflicts" "$(find ws rt -name '*conflict*')" ""
is "equal" "$(diff -r ws rt)" ""

# Under the name that is made from the directory, too.
check "stop" "$sbsync" stop -q s
check "start by another name" "$sbsync" start -q ws rt
check "stop" "$sbsync" stop -q ws
echo more >>ws/a
check "and again" "$sbsync" start -q ws rt
is "the edit went there" "$(tail -n 1 rt/a)" more
check "stop" "$sbsync" stop -q ws

# Another sandbox at that place knows nothing: it gets everything.
rm -r rt && mkdir rt
check "start with a new sandbox" "$sbsync" start -q ws rt
is "all of it is there" "$(diff -r ws rt)" ""
check "stop" "$sbsync" stop -q ws
find rt -mindepth 1 -delete
check "start with an emptied one" "$sbsync" start -q ws rt
is "all of it is there, too" "$(diff -r ws rt)" ""
check "stop" "$sbsync" stop -q ws
mkdir rt2
check "start with another place" "$sbsync" start -q --name ws ws rt2
is "all of it is in that place" "$(diff -r ws rt2)" ""
check "stop" "$sbsync" stop -q ws

# A start again that dies has brought something, or not: a file with one writer never conflicts.
: >wrong
for at in 5 15 20 25 30 35 40 50; do
	for i in 1 2 3; do
		echo "$at" >>ws/w$i
	done
	truncate -s 0 calls && truncate -s 64 calls
	LD_PRELOAD="$shim" FAULT_WHO=agent FAULT_N=$at FAULT_HOW=kill FAULT_LOG="$PWD/calls" \
		"$sbsync" start -q --name ws ws rt2 >killed.out 2>&1
	for i in 1 2 3; do
		echo "$at again" >>ws/w$i
	done
	"$sbsync" start -q --name ws ws rt2 >again.out 2>&1 || grep -q 'is open' again.out ||
		echo "$at: exit $?: $(cat again.out)" >>wrong
	"$sbsync" sync -q ws >>again.out 2>&1 || echo "$at: $(cat again.out)" >>wrong
	"$sbsync" stop -q ws
done
is "a start that was killed leaves no conflict" "$(cat wrong)" ""
is "and both are equal" "$(diff -r ws rt2)" ""
finish
