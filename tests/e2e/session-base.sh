#!/bin/sh
# SPDX-License-Identifier: MIT
# What a sync brought is common knowledge, however the sync ended: a file that only one side writes
# never becomes a conflict, whenever the run before was killed, cut off or refused. SB_BASE_KILLS
# says at how many moments the run is killed (10; 0: at every call that changes something).
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/shim.sh"
need python3

build=${SB_TOP_BUILDDIR:-.}
case $build in /*) ;; *) build=$PWD/$build ;; esac
sbsync=$build/sbsync
export SBSYNC_STATE_DIR="$scratch/state"
cd "$scratch" || exit 1

calls()
{
	python3 -c 'print(int.from_bytes(open("calls", "rb").read(8), "little"))'
}

# fault WHO N HOW SPAN COMMAND...
fault()
{
	truncate -s 0 calls && truncate -s 64 calls
	who=$1 at=$2 how=$3 span=$4
	shift 4
	LD_PRELOAD="$shim" FAULT_WHO=$who FAULT_N=$at FAULT_HOW=$how FAULT_SPAN=$span \
		FAULT_LOG="$scratch/calls" "$@" >killed.out 2>&1
}

# Only the runtime writes f, only the user writes g; twice each, with a run that dies in between.
mkdir -p ws/d && echo one >ws/f && echo one >ws/g && echo one >ws/d/gone && echo one >ws/d/left
check "start" "$sbsync" start -q --name s ws rt
n=0
twice()
{
	n=$((n + 1))
	echo "r$n" >>rt/f
	echo "l$n" >>ws/g
	echo "r$n" >rt/new$n
	fault $1 $2 $3 0 "$sbsync" sync -q --timeout 20s s
	code=$?
	echo "r$n again" >>rt/f
	echo "l$n again" >>ws/g
	echo "r$n again" >>rt/new$n
	"$sbsync" sync -q s >after.out 2>&1 ||
		echo "$1 $3 $2: the next sync exits $?: $(cat after.out)" >>wrong
	cmp -s ws/f rt/f && cmp -s ws/g rt/g && cmp -s ws/new$n rt/new$n &&
		[ "$(tail -n 1 ws/f)" = "r$n again" ] && [ "$(tail -n 1 rt/g)" = "l$n again" ] &&
		[ "$(tail -n 1 ws/new$n)" = "r$n again" ] ||
		echo "$1 $3 $2: a second edit got lost" >>wrong
	for f in ws/*conflict* rt/*conflict*; do
		[ ! -e "$f" ] || echo "$1 $3 $2: $f" >>wrong
	done
	rm -f ws/*conflict* rt/*conflict*
}
: >wrong
for who in controller agent; do
	twice $who 0 kill
	all=$(calls)
	kills=${SB_BASE_KILLS:-10}
	[ "$kills" -gt 0 ] || kills=$all
	[ "$kills" -lt "$all" ] || kills=$all
	i=1
	while [ $i -le "$kills" ]; do
		twice $who $((i * all / kills)) kill
		i=$((i + 1))
	done
	is "one writer, no conflict: the $who killed at $kills of $all calls" "$(cat wrong)" ""
	: >wrong
done
# The push fails for good (the runtime's disk takes nothing), the pull before it was fine.
twice agent 1 28
is "the same when the push was refused" "$(cat wrong)" ""
[ $code -ne 0 ] && ok "which is a failure" || not_ok "which is a failure" "exit $code"

# A deletion that was brought is not one of ours to repeat.
rm rt/d/gone
echo x >>ws/g
fault agent 1 28 0 "$sbsync" sync -q s
check "it was brought before the push" test ! -e ws/d/gone
echo anew >rt/d/gone
check "a file made anew where one was deleted" "$sbsync" sync -q s
is "arrives" "$(cat ws/d/gone)" anew
# The local side changes what was just brought: nobody else did.
echo mine >>rt/d/left
echo y >>ws/g
fault agent 1 28 0 "$sbsync" sync -q s
echo yours >>ws/d/left
check "an edit of what was just brought" "$sbsync" sync -q s
is "is no conflict" "$(tail -n 1 rt/d/left)$(ls ws/d rt/d | grep conflict)" yours

# disturbed N ACTION: a sync that stops at its N-th call (behind the scan), while ACTION happens.
disturbed()
{
	rm -f pause.here pause.go
	FAULT_PAUSE="$scratch/pause" fault controller $1 pause 1 "$sbsync" sync s &
	pid=$!
	wait_for 20 test -e pause.here
	eval "$2"
	touch pause.go
	wait $pid
}

# A directory becomes a file, and the file is gone before it comes: the directory stays whole until
# it is known what comes instead, here and there.
for side in rt ws; do
	case $side in rt) other=ws ;; ws) other=rt ;; esac
	: >wrong
	fault controller 0 kill 1 "$sbsync" sync -q s
	for k in 4 10 11 14 17 20; do
		mkdir -p $side/p/d/sub && echo one >$side/p/d/a && echo one >$side/p/d/sub/b
		echo one >$side/p/d/c
		"$sbsync" sync -q s
		mv $side/p/d/c $side/p/moved
		rm -r $side/p/d
		seq 1000 >$side/p/d
		ln $side/p/d $side/p/e
		disturbed $k "rm -r $side/p; echo file >$side/p"
		"$sbsync" sync -q s
		[ "$(cat $other/p 2>&1)" = file ] && [ -z "$(find ws rt -name '*conflict*')" ] ||
			echo "$k: $(cat killed.out) $(find ws rt -path '*/p*')" >>wrong
		rm -rf ws/p* rt/p*
		"$sbsync" sync -q s
	done
	is "$side: a directory that was to become something else stays" "$(cat wrong)" ""
done

# All that both had is deleted on one side, before it was ever looked at a second time here.
for side in rt ws; do
	echo one >ws/only && cp -p ws/only rt/only
	check "$side: both have it" "$sbsync" sync -q s
	rm -r $side/*
	check "$side: the last file is deleted" "$sbsync" sync -q --max-delete 100 s
	is "$side: it stays deleted" "$(ls ws rt)" "rt:

ws:"
done
finish
