#!/bin/sh
# SPDX-License-Identifier: MIT
# The rules of the tree that a machine can check (tests/lib/lint.py). Each is first run on a small
# tree that breaks it, so that a rule which finds nothing is known to be able to find something.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3

src=${SB_TOP_SRCDIR:-.}
build=${SB_TOP_BUILDDIR:-$src/build}
bad=$scratch/bad
lint="python3 $src/tests/lib/lint.py"
export PYTHONDONTWRITEBYTECODE=1

mkdir -p "$bad/lib/base" "$bad/lib/sb" "$bad/lib/host" "$bad/sync/tree" "$bad/sync/scan" \
	"$bad/sync/codec" "$bad/lib/attic" "$bad/bin/bad" "$bad/doc" "$bad/tests"
cat >"$bad/sync/tree/bad.c" <<'BAD'
#include <sb/host.h>
int
bad_name(void)
{
	sb_auto(sb_buf) struct sb_buf b;

	return system("x");
}
int
sb_bad(void)
{
}
struct sb_twin {
};
BAD
touch "$bad/lib/sb/host.h" "$bad/lib/host/host-int.h"
echo '#include <host/host-int.h>' >"$bad/lib/base/bad.h"
echo '#include <host/host-int.h>' >"$bad/bin/bad/bad.h"
touch "$bad/sync/codec/pack.h" "$bad/lib/attic/old.c"
echo '#include <sync/codec/pack.h>' >"$bad/sync/scan/scan.h"
{
	printf 'static void\nlong_one(void)\n{\n'
	seq -f '	f(%g);' 81
	printf '}\n'
	seq -f '/* %g */' 800
	printf 'void g(void) { printf("x"); /* TO%s */ }\n' DO
	printf 'int\nsb_bad(void)\n{\n}\nstruct sb_twin {\n};\n'
	printf '/* %0100d */\n' 0
} >"$bad/lib/long.c"
# shellcheck disable=SC2006
echo 'Call `sb_no_such_thing` of `lib/base/none.c`.' >"$bad/doc/bad.md"
cat >"$bad/doc/SEEDS.md" <<'BAD'
<!-- seeds -->
| `Thing` | `lib/long.c` `sb_none` | |
<!-- end -->
BAD
cat >"$bad/doc/ARCHITECTURE.md" <<'BAD'
<!-- rooms -->
    lib/base/     above
    sync/tree/    below
<!-- end -->
<!-- where -->
| a thing | `lib/none.c` | `sb_none` |
| a thing | `lib/long.c` | `sb_none` |
<!-- end -->
## The life of a thing
`lib/long.c`: `no_such_function`.
## The end
BAD

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

# Parts of a rule that one finding could hide.
finds()
{
	is "the rule $2 finds $1" "$($lint "$2" "$bad" | grep -c -e "$3")" "$4"
}

finds "an include that points up" layers 'lib/base may not include lib/host' 1
finds "an include that points sideways" layers 'sync/scan may not include sync/codec' 1
finds "a name without the noun of its file" names bad_name 1
finds "a function defined twice" twice 'sb_bad is defined in' 1
finds "a tag defined twice" twice 'tag sb_twin' 1
finds "a row whose file is not there" whereto 'lib/none.c is not there' 1
finds "a row whose file lacks the symbol" whereto 'does not hold sb_none' 1
finds "a walk that names no such function" walks 'defines no_such_function' 1
finds "a folder without a rank" drawing 'lib/attic: holds code and has no rank' 1

rule "no banned calls" banned
rule "what is cleaned up has a value by then" cleanup
rule "libraries neither exit nor print" library
rule "includes point down the ranks, and not sideways" layers
rule "programs include public headers only" programs
rule "drawing, folders and ranks are the same" drawing
rule "external names carry the noun of their file" names
rule "no name and no tag is defined twice" twice
rule "every source says what it is for" opening
rule "private headers are called so and stay in their room" private
rule "no line past 100 columns" columns
rule "where things go: each file is there and holds the symbol" whereto
rule "seeds: each symbol has its place and its test" seeds
rule "the walks name functions where they are defined" walks
rule "no function past 80 lines" functions
rule "no file past 800 lines" files
rule "every source names its licence" spdx
rule "symbols named in doc are in the headers" symbols
rule "paths named in doc are there" paths
rule "the tarball has every source file" dist
rule "nothing left behind, no path of one machine" leftovers

# The protocol's manual has everything that travels; in a copy with one thing more of each kind
# the check finds just these.
protocol="python3 $src/tests/lib/lint_protocol.py"
more=$scratch/more
mkdir -p "$more/doc" "$more/sync"
cp "$src/doc/sbsync-protocol.5" "$more/doc"
for room in wire scan tree codec replica; do
	mkdir "$more/sync/$room" && cp "$src/sync/$room"/*.[ch] "$more/sync/$room"
done
sed -i -e 's/SB_MSG_BYE = 28,/&\n\tSB_MSG_MORE = 31,/' \
	-e 's/SB_BEGIN_CROSS = 1 << 4,/&\n\tSB_BEGIN_MORE = 1 << 9,/' \
	-e 's/uint64_t specials;/&\n\tuint64_t more_bytes;/' \
	-e 's/SB_WHY_EXISTS,/&\n\tSB_WHY_MORE,/' "$more/sync/wire/proto.h"
sed -i 's/COL_DEVS,/&\n\tCOL_MORE_BITS,/' "$more/sync/tree/manifest-codec-priv.h"
sed -i 's/#define SB_PACK_ATTR_BASE .*/&\n#define SB_PACK_ATTR_MORE "user.sbsync.more"/' \
	"$more/sync/codec/pack-priv.h"
is "the check of the protocol's manual finds what is missing" "$($protocol "$more" |
	sed -n 's/.*\(MORE (31)\|more ([0-9]*)\|more_bytes\|more_bits\|sbsync.more\).*/\1/p' |
	sort | tr '\n' ' ')" "MORE (31) more (5) more (512) more_bits more_bytes sbsync.more "
is "the protocol's manual has everything that travels" "$($protocol "$src")" ""

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
	"$($lint manual "$bad" "$scratch/page.1" "$scratch/page.help" "$scratch/page.old" |
		grep -c -e --new -e --gone)" 2

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
	command=$(find "$build/$name" "$build/bin" -name "$name" -type f -perm -u+x \
		-not -path '*/.libs/*' 2>/dev/null | head -n 1)
	if [ -n "$command" ]; then
		manual_matches "$name" "$page" "$command"
	else
		skip "--help of $name against its manual" "$name is not built"
	fi
done
finish
