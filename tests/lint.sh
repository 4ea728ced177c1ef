#!/bin/sh
# SPDX-License-Identifier: MIT
# The rules of the tree that a machine can check (tests/lib/lint.py). Each is first run on a small
# tree that breaks
# it, so that a rule which finds nothing is known to be able to find something.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3

src=${SB_TOP_SRCDIR:-.}
build=${SB_TOP_BUILDDIR:-$src/build}
bad=$scratch/bad
lint="python3 $src/tests/lib/lint.py"
export PYTHONDONTWRITEBYTECODE=1

mkdir -p "$bad/lib/base" "$bad/lib/sb" "$bad/lib/control" "$bad/sync" "$bad/doc" "$bad/tests"
cat >"$bad/sync/bad.c" <<'BAD'
#include <sb/host.h>
int
main(void)
{
	sb_auto(sb_buf) struct sb_buf b;

	return system("x");
}
BAD
touch "$bad/lib/sb/host.h" "$bad/lib/control/node.h"
echo '#include <control/node.h>' >"$bad/lib/base/bad.h"
{
	printf 'static void\nlong_one(void)\n{\n'
	seq -f '	f(%g);' 101
	printf '}\n'
	seq -f '/* %g */' 800
	printf 'void g(void) { printf("x"); /* TO%s */ }\n' DO
} >"$bad/lib/long.c"
# shellcheck disable=SC2006
echo 'Call `sb_no_such_thing` of `lib/base/none.c`.' >"$bad/doc/bad.md"

rule()
{
	what=$1
	name=$2
	if [ -z "$($lint "$name" "$bad")" ]; then
		not_ok "$what" "the rule finds nothing in a tree that breaks it"
		return
	fi
	is "$what" "$($lint "$name" "$src" 2>&1)" ""
}

rule "no banned calls" banned
rule "what is cleaned up has a value by then" cleanup
rule "libraries neither exit nor print" library
rule "includes point down: base <- sync <- provider, session, host <- control <- bin" layers
rule "no function past 100 lines" functions
rule "no file past 800 lines" files
rule "every source names its licence" spdx
rule "symbols named in doc are in the headers" symbols
rule "paths named in doc are there" paths
rule "the tarball has every source file" dist
rule "nothing left behind, no path of one machine" leftovers

# Manuals: well-formed, and telling the same options as --help.
if command -v mandoc >/dev/null; then
	for page in "$src"/doc/*.[1-8]; do
		[ -e "$page" ] || continue
		is "mandoc has nothing to say about ${page##*/}" \
			"$(mandoc -Tlint -Wwarning "$page" 2>&1)" ""
	done
else
	skip "manual pages are well-formed" "mandoc is not installed"
fi

printf '.It Cm old\n.It Fl -gone\n' >"$scratch/page.1"
printf 'usage\n  old   x\n' >"$scratch/page.help"
echo ' --new  x' >"$scratch/page.old"
is "the manual check finds both differences" \
	"$($lint manual "$bad" "$scratch/page.1" "$scratch/page.help" "$scratch/page.old" | grep -c -e --new -e --gone)" 2

manual_matches()
{
	name=$1 page=$2 help=$scratch/help/$1
	mkdir -p "$help"
	"$3" --help >"$help/all"
	"$3" --version >/dev/null 2>&1 && echo " --version" >>"$help/all"
	for verb in $($lint verbs "$src" "$help/all"); do
		"$3" "$verb" --help >"$help/verb-$verb" 2>&1
	done
	differs=$($lint manual "$src" "$page" "$help"/* 2>&1)
	is "--help of $name against its manual" "$(echo "$differs" | grep -v '^later: ')" ""
	later=$(echo "$differs" | sed -n 's/^later: //p' | tr '\n' ' ')
	[ -z "$later" ] || skip "all that the manual of $name describes is there" "not yet: $later"
	is "--help of $name fits 80 columns" "$(cat "$help"/* | awk 'length > 80')" ""
}

for page in "$src"/doc/sb*.[18]; do
	[ -e "$page" ] || continue
	name=${page##*/}
	name=${name%.*}
	command=$(find "$build/$name" "$build/bin" -name "$name" -type f -perm -u+x -not -path '*/.libs/*' \
		2>/dev/null | head -n 1)
	if [ -n "$command" ]; then
		manual_matches "$name" "$page" "$command"
	else
		skip "--help of $name against its manual" "$name is not built"
	fi
done
finish
