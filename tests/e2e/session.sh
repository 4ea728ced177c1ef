#!/bin/sh
# SPDX-License-Identifier: MIT
# Sessions between two local directories: start, turn, stop, crash and recovery;
# nothing either side did is lost.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3 git

sbsync=${SB_TOP_BUILDDIR:-.}/sbsync
trees="python3 ${SB_TOP_SRCDIR:-.}/tests/lib/trees.py"
export SBSYNC_STATE_DIR="$scratch/state"
cd "$scratch" || exit 1

# A workspace with history: 260 files, a git repository.
mkdir ws && (
	cd ws || exit 1
	git init -q -b main .
	git config user.email u@example.com
	git config user.name u
	for d in a b c d; do
		mkdir -p src/$d
		for i in $(seq 1 65); do
			printf 'file %s/%s\nline two\nline three\n' $d $i >src/$d/f$i
		done
	done
	git add -A && git commit -qm first
)

# The story: the agent edits 200 files, deletes 50, renames a directory and commits; the user edits
# 20, 5 of them the same; everything is killed; recover.
(sleep 1000 & echo $! >owner)
owner=$(cat owner)
at_exit 'kill $owner 2>/dev/null'
check "start" "$sbsync" start -q --name story --owner "$owner" ws runtime
check "the sandbox has it all" \
	sh -c "cd ws && find . -type f ! -path './.git/*' -exec cmp {} ../runtime/{} \;"
(
	cd runtime || exit 1
	for d in a b c; do
		for i in $(seq 1 65); do echo "agent" >>src/$d/f$i; done
	done
	for i in $(seq 1 5); do echo "agent" >>src/d/f$i; done
	for i in $(seq 16 65); do rm src/d/f$i; done
	mv src/b src/renamed
	# (git's configuration would not be taken from a sandbox)
	git add -A && git -c user.email=a@example.com -c user.name=a commit -qm "agent's work"
)
(
	cd ws || exit 1
	for i in $(seq 1 5); do echo "user" >>src/a/f$i; done
	for i in $(seq 6 15); do echo "user" >>src/d/f$i; done
	for i in $(seq 1 5); do echo "user" >new$i; done
)
out=$("$sbsync" recover --all -v)
is "recovery leaves an owned session alone" "$out" "story: owned"
kill -9 "$owner"
wait_for 10 sh -c "! kill -0 $owner"
"$sbsync" recover --all --json >rec.json
is "recovery syncs back" "$(grep -o '"result":"[a-z]*"' rec.json)" '"result":"done"'
is "5 conflicts" "$("$sbsync" conflicts --json story | grep -o '"path"' | wc -l)" 5
for i in $(seq 1 5); do
	grep -q user ws/src/a/f$i && grep -q agent ws/src/a/f$i.runtime-conflict-story ||
		echo "a/f$i" >>lost
	grep -q user ws/new$i || echo "new$i" >>lost
	grep -q agent ws/src/d/f$i || echo "d/f$i" >>lost
done
for i in $(seq 6 15); do grep -q user ws/src/d/f$i || echo "d/f$i" >>lost; done
for i in $(seq 16 65); do [ ! -e ws/src/d/f$i ] || echo "not deleted d/f$i" >>lost; done
for i in $(seq 6 65); do
	grep -q agent ws/src/a/f$i && grep -q agent ws/src/renamed/f$i &&
		grep -q agent ws/src/c/f$i || echo "f$i" >>lost
done
[ ! -d ws/src/b ] || echo "src/b is still there" >>lost
is "every edit is present" "$(cat lost 2>/dev/null)" ""
check "git fsck" git -C ws fsck --strict
is "the agent's commit is here" "$(git -C ws log -1 --format=%s)" "agent's work"
find ws -type f -exec md5sum {} + | sort >before
check "a second recovery" "$sbsync" recover --all
find ws -type f -exec md5sum {} + | sort >after
check "changes nothing" cmp before after
check "the session can still be stopped" "$sbsync" stop -q story
must_fail "and only once" 1 "$sbsync" stop story

# Turns: both ways, equal afterwards; deletion against edit; mode against content.
mkdir t && $trees random t/ws 11 150 && cd t || exit 1
check "start a second" "$sbsync" start -q --name two ws runtime
for turn in 1 2 3 4; do
	$trees mutate ws $((turn * 7)) 12
	$trees mutate runtime $((turn * 7 + 1)) 12
	"$sbsync" sync -q --max-delete 100000 two >/dev/null 2>&1
	code=$?
	[ $code -eq 0 ] || [ $code -eq 3 ] || not_ok "turn $turn" "exit $code"
	$trees same ws runtime >cmp.out
	is "turn $turn: equal but for the root's own time" \
		"$(grep -c '^b' cmp.out)" "$(grep -c "^b''" cmp.out)"
	check "turn $turn: nothing left to do" sh -c "test -z \"\$('$sbsync' diff -q two)\""
done
mkdir ws/e runtime/e 2>/dev/null
printf 'one\n' >ws/e/del && printf 'one\n' >ws/e/mode && "$sbsync" sync -q two >/dev/null 2>&1
rm ws/e/del && echo edit >>runtime/e/del && chmod 755 ws/e/mode && echo edit >>runtime/e/mode
"$sbsync" sync -q two
is "an edit survives a deletion" "$(cat ws/e/del)" "one
edit"
is "mode of one, content of the other" \
	"$(stat -c %a runtime/e/mode) $(tail -n 1 ws/e/mode)" "755 edit"

# Guards.
echo evil >>runtime/.git-not && mkdir -p runtime/.git/hooks ws/.git/hooks &&
	echo evil >runtime/.git/hooks/pre-commit
"$sbsync" sync -q two >/dev/null 2>&1
is "hooks from a sandbox do not come through" "$?" 3
check "but are kept aside" grep -q evil ws/.git/hooks/pre-commit.runtime-conflict-two
check "and not in place" test ! -e ws/.git/hooks/pre-commit
git init -q runtime/sub && git -C runtime/sub config core.fsmonitor /bin/evil
"$sbsync" sync -q two >/dev/null 2>&1
check "a new repository comes without its configuration" test -d ws/sub/.git/objects \
	-a ! -e ws/sub/.git/config -a -e ws/sub/.git/config.runtime-conflict-two
check "and without hooks" test ! -e ws/sub/.git/hooks
mv runtime kept && mkdir runtime
must_fail "an emptied sandbox is noticed" 5 "$sbsync" sync two
check "by its identity" sh -c "printf '%s' \"$output\" | grep -q 'not the sandbox'"
check "and nothing was deleted" test -e ws/e/mode
rmdir runtime && mv kept runtime && find runtime -mindepth 1 -delete
must_fail "an emptied root stops at the brake" 5 "$sbsync" stop two
check "nothing was deleted here either" test -e ws/e/mode
is "the session waits" \
	"$("$sbsync" status --json two | grep -o '"state":"[a-z]*"')" '"state":"unsynced"'
must_fail "an open session is not forgotten" 1 "$sbsync" rm two
must_fail "not even to be discarded, unless someone says yes" 1 "$sbsync" rm --discard two
check "and is told what would stay there" \
	sh -c "printf '%s' \"$output\" | grep -q 'were not synced back\|cannot be asked'"
check "unless it is meant" "$sbsync" rm --discard --yes two
must_fail "a session that is not there" 1 "$sbsync" status two
finish
