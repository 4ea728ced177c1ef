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

# A name goes here, by the runtime's word, while another name of that file is on its way there.
mkdir ws/x ws/y && echo two >ws/x/in && echo one >ws/y/f
check "a sync" "$sbsync" sync -q s
rm -r ws/x && ln ws/y/f ws/x
echo three >rt/x/in && rm rt/y/f
must_fail "a name goes while another one is sent: a conflict" 3 "$sbsync" sync -q s
is "that is the only one" "$(find ws rt -name '*conflict*' | sort)" "rt/x.runtime-conflict-s
ws/x.runtime-conflict-s"
is "with all in it" "$(cat rt/x rt/x.runtime-conflict-s/in)" "one
three"
is "equal" "$(diff -r ws rt)" ""
mkdir ws/v && echo two >ws/v/in && echo four >ws/w
check "a sync" "$sbsync" sync -q s
rm -r ws/v && ln ws/w ws/v
echo three >rt/v/in && rm rt/w && mkdir rt/w
check "a directory takes its place" sh -c \
	'"$1" sync --json s >out; [ $? = 3 ] && grep -q "\"errors\":\[\]" out' _ "$sbsync"
is "one conflict is told" "$(grep -o saved_as out | wc -l)" 1
is "equal" "$(diff -r ws rt)" ""

# The same where the commit does something to each of the names.
mkdir ws/u && echo two >ws/u/in && echo four >ws/w2 && echo four >ws/t
check "a sync" "$sbsync" sync -q s
rm -r ws/u ws/t && ln ws/w2 ws/t && ln ws/w2 ws/u
echo three >rt/u/in && echo edited >rt/w2
check "several names, one is edited there" sh -c \
	'"$1" sync --json s >out; [ $? = 3 ] && grep -q "\"errors\":\[\]" out' _ "$sbsync"
is "one conflict is told" "$(grep -o saved_as out | wc -l)" 1
is "its version is saved once" "$(find ws rt -name 'u.*' | sort)" "rt/u.runtime-conflict-s
ws/u.runtime-conflict-s"
is "equal" "$(diff -r ws rt)" ""
check "stop" "$sbsync" stop -q s
finish
