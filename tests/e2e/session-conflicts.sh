#!/bin/sh
# SPDX-License-Identifier: MIT
# Conflicts of a session: merged, decided by rule, listed, resolved; undo, and undo of
# undo. No version is ever lost.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3

sbsync=${SB_TOP_BUILDDIR:-.}/sbsync
trees="python3 ${SB_TOP_SRCDIR:-.}/tests/lib/trees.py"
export SBSYNC_STATE_DIR="$scratch/state"
cd "$scratch" || exit 1

# Content, names and modes; times of directories do not count.
sums()
{
	(
		cd "$1" && find . -type f -printf '%p %m ' -exec md5sum {} \; \
			-o -type l -printf '%p %l\n' -o -type d -printf '%p\n' | sort
	)
}

lines() { seq -f "line %g" 1 20; }
mkdir -p ws/doc ws/gen
for f in clean dirty take-l take-r later-m later-l later-r; do lines >ws/$f; done
lines >ws/doc/rule && lines >ws/gen/rule && printf 'a\0b\n' >ws/binary
"$sbsync" start -q --name c --conflict-rule 'gen/=runtime' --conflict-rule '/doc=merge' \
	--conflict-rule 'take-l=local' --conflict-rule 'take-r=runtime' ws runtime
is "start" $? 0
must_fail "a rule that is none" 2 "$sbsync" start --name d --conflict-rule 'x=y' ws runtime2

edit() { sed -i "$2" "$1"; }
for f in doc/rule gen/rule take-l take-r later-m later-l later-r; do
	edit ws/$f '2s/.*/user/' && edit runtime/$f '18s/.*/agent/'
done
edit ws/dirty '2s/.*/user/' && edit runtime/dirty '2s/.*/agent/'
"$sbsync" sync -q c 2>err
is "conflicts are told" $? 3
is "a rule merges" "$(sed -n '2p;18p' ws/doc/rule | tr '\n' ' ')" "user agent "
check "on both sides" cmp ws/doc/rule runtime/doc/rule
is "a rule takes the runtime's" "$(sed -n '2p;18p' ws/gen/rule | tr '\n' ' ')" "line 2 agent "
is "a rule takes the local one" "$(sed -n '2p;18p' runtime/take-l | tr '\n' ' ')" "user line 18 "
check "nothing is left beside them" sh -c "! ls -R ws runtime | grep -q 'rule.runtime-conflict'"
is "what is left is listed" \
	"$("$sbsync" conflicts --json c | grep -o '"path":"[^"]*"' | sort | tr '\n' ' ')" \
	'"path":"dirty" "path":"later-l" "path":"later-m" "path":"later-r" '
size=$(stat -c %s ws/later-l.runtime-conflict-c)
check "with size and time" \
	sh -c "'$sbsync' conflicts c | grep -A 1 'later-l: 20' | grep -q '($size bytes)'"

# Deciding later.
must_fail "resolve without a choice" 2 "$sbsync" resolve --all
must_fail "what is no conflict" 1 "$sbsync" resolve --name c --take local ws/clean
cd ws || exit 1
check "resolve: merged" "$sbsync" resolve -q --take merged later-m
is "has both" "$(sed -n '2p;18p' later-m | tr '\n' ' ')" "user agent "
check "resolve: runtime" "$sbsync" resolve -q --take runtime later-r.runtime-conflict-c
is "has the sandbox's" "$(sed -n '2p;18p' later-r | tr '\n' ' ')" "line 2 agent "
check "resolve: local" sh -c '"$1" resolve --take local later-l >../said 2>&1' - "$sbsync"
is "... tells what became of the other version" "$(grep decided ../said)" \
	"decided: later-l: the local version stays (later-l.runtime-conflict-c is gone)"
is "has the user's" "$(sed -n '2p;18p' later-l | tr '\n' ' ')" "user line 18 "
must_fail "what does not merge is kept" 3 "$sbsync" resolve -q --take merged --all
check "both of it" test -f dirty -a -f dirty.runtime-conflict-c
check "undo takes a decision back" "$sbsync" undo -q
check "there it is again" test -f later-l.runtime-conflict-c
check "all at once" "$sbsync" resolve -q --all --take local
is "none is left" "$("$sbsync" conflicts c)" ""
cd ..
check "the decisions are carried over" "$sbsync" sync -q c
is "both sides are equal" "$(sums runtime)" "$(sums ws)"

# --conflict merge: whatever merges, is merged; binaries and the rest stay beside.
edit ws/clean '3s/.*/user/' && edit runtime/clean '15s/.*/agent/' && chmod 755 runtime/clean
edit ws/dirty '3s/.*/user/' && edit runtime/dirty '3s/.*/agent/'
printf 'a\0u\n' >ws/binary && printf 'r\0b\n' >runtime/binary
"$sbsync" sync --conflict merge --json c >out.json 2>/dev/null
is "two conflicts are left" "$(grep -o '"saved_as":"[^"]*"' out.json | sort | tr '\n' ' ')" \
	'"saved_as":"binary.runtime-conflict-c" "saved_as":"dirty.runtime-conflict-c" '
check "one was merged" grep -q '"merged":\[{"path":"clean"' out.json
is "the text has both" "$(sed -n '3p;15p' ws/clean | tr '\n' ' ')" "user agent "
is "and the mode" "$(stat -c %a ws/clean)" 755
is "on both sides" "$(sums runtime)" "$(sums ws)"
"$sbsync" resolve -q --name c --all --take local && "$sbsync" sync -q c

# Undo of a sync back with everything a sync can do, then undo of that.
$trees random ws/t 5 120 && "$sbsync" sync -q c
sums ws >before
$trees mutate runtime/t 6 40 && edit runtime/clean '9s/.*/again/' &&
	edit runtime/later-m '9s/.*/again/' &&
	rm runtime/later-l && mv runtime/doc runtime/docs && ln -s clean runtime/new-link
edit ws/clean '1s/.*/mine/'
sums ws >mine
"$sbsync" sync -q --max-delete 100000 c >/dev/null 2>&1
sums ws >after
must_differ() { ! cmp -s "$1" "$2"; }
check "the sync changed something" must_differ mine after
check "undo, only to see" sh -c "'$sbsync' undo -n c | grep -q '<- .* clean'"
is "has changed nothing" "$(sums ws)" "$(cat after)"
check "undo" "$sbsync" undo -q c
is "everything is as before" "$(sums ws)" "$(cat mine)"
check "undo again" "$sbsync" undo -q c
is "is a redo" "$(sums ws)" "$(cat after)"
check "and once more" "$sbsync" undo -q c
is "back again" "$(sums ws)" "$(cat mine)"

# Edits made since are not lost.
"$sbsync" undo -q c && edit ws/later-m '5s/.*/since/' && echo since >ws/later-l && rm -r ws/docs
cp ws/later-m kept
"$sbsync" undo -q c 2>err
is "an undo over edits is a conflict" $? 3
check "the edit stays" cmp ws/later-m kept
check "the old version is beside it" \
	sh -c "grep -q again ws/later-m && ! grep -q again ws/later-m.undo-conflict-c"
is "a file made since stays" "$(cat ws/later-l)" "since"
check "and has the old one beside it" test -f ws/later-l.undo-conflict-c
check "what the sync had renamed is back" test -f ws/doc/rule

# The last sync back may be the stop.
echo more >runtime/at-the-end
"$sbsync" stop -q c >/dev/null 2>&1
check "stopped" test -f ws/at-the-end
check "a stop can be undone" "$sbsync" undo -q c
check "it is" test ! -e ws/at-the-end
finish
