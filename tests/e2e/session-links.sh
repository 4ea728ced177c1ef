#!/bin/sh
# SPDX-License-Identifier: MIT
# Files with several names: what a sync does to one name is no change by somebody else when it
# comes to the next.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"

build=${SB_TOP_BUILDDIR:-.}
case $build in /*) ;; *) build=$PWD/$build ;; esac
sbsync=$build/sbsync
export SBSYNC_STATE_DIR="$scratch/state"
cd "$scratch" || exit 1

# names DIR: which names of it are one file, as text
names()
{
	(cd "$1" && for f in *; do printf '%s %s\n' "$(stat -c %i "$f")" "$f"; done | sort |
		awk '{ v[$1] = v[$1] " " $2 } END { for (i in v) print v[i] }' | sort)
}

mkdir ws && echo one >ws/a && ln ws/a ws/b && ln ws/a ws/c && ln ws/a ws/d
check "start" "$sbsync" start -q --name s ws rt

touch -d '2001-02-03 04:05:06' ws/b && rm ws/d
check "a name goes, the others get another time" "$sbsync" sync -q s
is "equal" "$(diff -r ws rt)" ""
is "one file" "$(names rt)" " a b c"
is "of that time" "$(stat -c %y rt/c)" "$(stat -c %y ws/c)"

chmod 600 ws/a && rm ws/c && echo two >ws/c
check "a name is another file, the others get another mode" "$sbsync" sync -q s
is "equal" "$(diff -r ws rt)" ""
is "two files" "$(names rt)" "$(printf ' a b\n c')"
is "of that mode" "$(stat -c %a rt/b)" 600

ln rt/a rt/e && touch -d '2002-02-03 04:05:06' rt/a && rm rt/b && mv rt/e rt/f
check "the same from there, with a move" "$sbsync" sync -q s
is "equal" "$(diff -r ws rt)" ""
is "two files here" "$(names ws)" "$(printf ' a f\n c')"
is "no conflicts" "$(find ws rt -name '*conflict*')" ""
check "stop" "$sbsync" stop -q s
finish
