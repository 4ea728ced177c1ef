#!/bin/sh
# SPDX-License-Identifier: MIT
# What a session leaves out: patterns of one run, of the session, and of ignore files that are
# edited while it is open. No change of rules deletes anything on either side.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"

sbsync=${SB_TOP_BUILDDIR:-.}/sbsync
export SBSYNC_STATE_DIR="$scratch/state"
cd "$scratch" || exit 1

mkdir -p ws/logs && for f in a.c a.o b.log logs/x keep; do echo one >ws/$f; done
check "start" "$sbsync" start -q -x '*.o' --name s ws rt
check "what is excluded stays here" test ! -e rt/a.o -a -e rt/b.log

# For one run only.
echo two >ws/b.log && echo two >ws/keep
check "a sync with --exclude" "$sbsync" sync -q -x '*.log' s
is "leaves that out" "$(cat rt/b.log rt/keep)" "one
two"
is "diff, too" "$("$sbsync" diff -x '*.log' s)" ""
check "the next one brings it, without a conflict" "$sbsync" sync -q s
is "indeed" "$(cat rt/b.log)" two
echo three >rt/b.log && echo '*.log' >pats
check "a sync with --exclude-from" "$sbsync" sync -q --exclude-from pats s
is "leaves it out as well" "$(cat ws/b.log)" two
check "and again it comes with the next" "$sbsync" sync -q s
is "from there, too" "$(cat ws/b.log)" three
rm ws/logs/x && check "a deletion that was left out" "$sbsync" sync -q -x logs/ s
check "did not happen" test -e rt/logs/x
check "is made up for" "$sbsync" sync -q s
check "later" test ! -e rt/logs/x
must_fail "a stop that would leave something there" 2 "$sbsync" stop -x '*.log' s
must_fail "gitignore in the middle of a session" 2 "$sbsync" sync --gitignore s
must_fail "also of a watch" 2 "$sbsync" watch --gitignore s

# For the session.
is "the rules can be seen" "$("$sbsync" ignore list s)" "session      *.o"
check "one more" "$sbsync" ignore add '*.log' s
is "is among them" "$("$sbsync" ignore list --json s | grep -o '"pattern":"[^"]*"' | tr '\n' ' ')" \
	'"pattern":"*.o" "pattern":"*.log" '
rm rt/b.log && echo four >ws/keep
check "a sync" "$sbsync" sync -q s
is "deletes nothing of what is left out now" "$(cat ws/b.log rt/keep)" "three
four"
check "also not here" sh -c 'rm ws/b.log && "$1" sync -q s && echo five >rt/b.log' sh "$sbsync"
check "one less" "$sbsync" ignore rm '*.log' s
must_fail "not twice" 1 "$sbsync" ignore rm '*.log' s
check "what is no longer left out" "$sbsync" sync -q s
is "comes" "$(cat ws/b.log)" five
must_fail "an unknown word" 2 "$sbsync" ignore forget x s
must_fail "a pattern too few" 2 "$sbsync" ignore add

# By an ignore file that is edited here.
echo keep >ws/.sbsyncignore && echo six >ws/keep
check "a sync after an edit of .sbsyncignore" "$sbsync" sync -q s
is "goes by it, and deletes nothing" "$(cat rt/keep ws/keep)" "four
six"
is "it is shown" "$("$sbsync" ignore list s | tail -n 1)" "sbsyncignore keep"
check "also by the next process" sh -c 'rm rt/keep; "$1" sync -q s' sh "$sbsync"
check "nothing is deleted here" test -e ws/keep
: >ws/.sbsyncignore
check "emptied" "$sbsync" sync -q s
is "it counts no more" "$(cat rt/keep)" six
# One that comes from the sandbox changes nothing.
echo '*.c' >rt/.sbsyncignore && echo seven >rt/a.c
"$sbsync" sync -q s >/dev/null 2>&1
is "a sandbox's own ignore file hides nothing" "$(cat ws/a.c)" seven
"$sbsync" stop -q s >/dev/null 2>&1
finish
