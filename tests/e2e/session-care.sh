#!/bin/sh
# SPDX-License-Identifier: MIT
# What people do with sessions besides syncing: look, pause, watch in the background, edit, resolve
# by hand, and the questions that catch slips.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/json.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/tmux.sh"
sbsync=$(cd "${SB_TOP_BUILDDIR:-.}" && pwd)/sbsync
export SBSYNC_STATE_DIR="$scratch/state"
export PATH="$(dirname "$sbsync"):$PATH"
at_exit '"$sbsync" pause -q p 2>/dev/null'
cd "$scratch" || exit 1

# says DESCRIPTION PATTERN COMMAND...: it succeeds and prints a line like that.
says()
{
	what=$1 pattern=$2
	shift 2
	"$@" >"$scratch/out" 2>&1 </dev/null || echo "exit $?" >>"$scratch/out"
	if grep -qE -e "$pattern" "$scratch/out"; then
		ok "$what"
	else
		not_ok "$what" "no line like $pattern in:
$(cat "$scratch/out")"
	fi
}
ended() { ! kill -0 "$1" 2>/dev/null; }
watcher() { "$sbsync" status --json p | json 'o["watcher"]'; }

mkdir p
echo one >p/file
says "start -v names files, direction and time" '^[0-9:]{8} -> create  file$' \
	"$sbsync" start -v --label team=core --label ci=no p far
says "ls has a header" '^SESSION +STATE +LAST SYNC +CONFLICTS +WATCHER +LOCAL <-> REMOTE$' \
	"$sbsync" ls
says "and the session" "^p +active +[0-9-]+ [0-9:]+ +0 +- +$scratch/p <-> $scratch/far\$" \
	"$sbsync" ls --label team --label ci=no
is "a label that it has not" "$("$sbsync" ls --label team=other)" ""

echo two >p/mine
echo three >far/theirs
says "status counts what is pending each way" \
	'^pending   1 to the other side, 1 from it, 0 conflicts$' "$sbsync" status p
says "and says what to type" '^next      sbsync sync p  \(sbsync diff p lists what\)$' \
	"$sbsync" status p
says "offline asks nothing" '^next      sbsync watch p, or sbsync stop p$' \
	"$sbsync" status --offline p
is "for programs when they ask" \
	"$("$sbsync" status --json --pending p | json 'o["pending"]["from_runtime"]')" 1
says "diff --content of what goes" '^\+two$' "$sbsync" diff --content p
says "... and of what comes" '^\+\+\+ theirs \(runtime\)' "$sbsync" diff --content p
says "of two directories" '^\+two$' "$sbsync" diff --content p far
says "sync -v" '^[0-9:]{8} <- create  theirs$' "$sbsync" sync -v p
says "both sides are the same" '^pending   nothing: both sides are the same$' "$sbsync" status p
says "the log" '^[0-9-]{10} [0-9:]{8}  turn +2 files, 0 deleted, 0 moved, 0 conflicts, 0 errors' \
	"$sbsync" log p
says "log -v names them" '^    <- create  theirs$' "$sbsync" log -v p
is "log --json is for programs" \
	"$("$sbsync" log --json p | tail -n 1 |
		json 'sorted((c["side"], c["path"]) for c in o["changes"])')" \
	"[('local', 'theirs'), ('runtime', 'mine')]"
is "sync --json lists what was done" \
	"$(echo more >p/more; "$sbsync" sync --json p | json '[c["path"] for c in o["changes"]]')" \
	"['more']"

# Pause keeps the base: a deletion made meanwhile is one afterwards.
says "pause" '^session p is paused; next: sbsync resume p$' "$sbsync" pause p
rm far/more
must_fail "nothing syncs it" 1 "$sbsync" sync p
is "and says why" "$output" "sbsync: session 'p' is paused: sbsync resume p"
says "recover leaves it alone" '^p: paused$' "$sbsync" recover -v p
says "status tells" '^state     active, paused since ' "$sbsync" status --offline p
says "resume" '^session p goes on; next: sbsync sync p$' "$sbsync" resume p
check "it syncs" "$sbsync" sync p
check "the deletion came over" test ! -e p/more

says "watch --detach" '^process [0-9]+ watches session p; ' "$sbsync" watch --detach p
pid=$(watcher)
check "its number is on record" kill -0 "$pid"
echo live >p/live
check "it syncs by itself" wait_for 30 test -e far/live
must_fail "a second one is refused" 4 "$sbsync" watch --detach p
is "with the way out" "$output" "sbsync: process $pid watches session 'p' already; 'sbsync stop p'\
 or 'sbsync pause p' ends it"
must_fail "in front, too" 4 "$sbsync" watch p
kill -9 "$pid"
check "one that was killed is not shown" wait_for 10 sh -c \
	"'$sbsync' status --json p | grep -q '\"watcher\":0'"
check "and another can watch" "$sbsync" watch --detach p
pid=$(watcher)
check "pause ends it" "$sbsync" pause p
check "it is gone" wait_for 10 ended "$pid"
check "resume for what follows" "$sbsync" resume p

must_fail "edit wants something" 2 "$sbsync" edit p
must_fail "a label needs a value" 2 "$sbsync" edit --label team p
is "and is told how" "$output" "sbsync: 'team' is no label: write KEY=VALUE, with letters, digits,\
 '.', '_', '-' and '/' in KEY"
check "edit" "$sbsync" edit --label team= --label stage=2 --conflict local p
is "it is on record" "$("$sbsync" status --json p | json 'o["labels"], o["conflict"]')" \
	"({'ci': 'no', 'stage': '2'}, 'local')"
check "back to both" "$sbsync" edit --conflict both p

# A recovery that nobody reads tells of conflicts by its status.
mkdir r && echo base >r/f
check "a session whose owner is gone" "$sbsync" start -q --owner "$(sh -c 'echo $$')" r rfar
echo here >r/f
echo there >rfar/f
must_fail "recover --quiet after a conflict" 3 "$sbsync" recover --all --quiet
is "says nothing else" "$output" ""
check "that session is done" "$sbsync" stop -q r

# Conflicts: seen, merged by hand, and the next command at each step.
printf 'a\nb\nc\n' >p/file
printf 'a\nB\nc\n' >far/file
must_fail "a conflict" 3 "$sbsync" sync p
check "its message ends with what to type" test -n "$(echo "$output" | grep \
	'^sbsync: next: sbsync conflicts --diff p shows them, sbsync resolve decides$')"
says "conflicts --diff" '^\+B$' "$sbsync" conflicts --diff p
says "and what to type" \
	'^next: sbsync resolve --name p --take local\|runtime\|merged PATH, or --edit PATH$' \
	"$sbsync" conflicts p
printf 'bin\0ary' >p/file.runtime-conflict-p
says "what is no text is told by size" \
	'not shown \(no text, or long\): 6 B here, 7 B there$' "$sbsync" conflicts --diff p
printf 'a\nB\nc\n' >p/file.runtime-conflict-p
must_fail "without a tool" 1 env -u EDITOR -u VISUAL HOME="$scratch" \
	"$sbsync" resolve --edit p/file
is "it says what to set" "$output" "sbsync: there is no merge tool: set EDITOR, SBSYNC_MERGETOOL\
 (a command with \$LOCAL, \$REMOTE and \$MERGED) or git's merge.tool"
must_fail "a tool that fails" 1 env SBSYNC_MERGETOOL='echo no >"$MERGED"; false' \
	"$sbsync" resolve --edit p/file
is "changes nothing" "$(cat p/file)" "$(printf 'a\nb\nc')"
check "one that works" env SBSYNC_MERGETOOL='cat "$LOCAL" "$REMOTE" >"$MERGED"' \
	"$sbsync" resolve --edit p/file
is "its result is in place" "$(cat p/file)" "$(printf 'a\nb\nc\na\nB\nc')"
check "and the other version is gone" test ! -e p/file.runtime-conflict-p
check "the next sync" "$sbsync" sync p
check "carries it over" cmp p/file far/file
printf '[merge]\n\ttool = mine\n[mergetool "mine"]\n\tcmd = cp "$REMOTE" "$MERGED"\n' \
	>"$scratch/.gitconfig"
echo here >p/file
echo there >far/file
"$sbsync" sync -q p
check "git's merge tool" env HOME="$scratch" "$sbsync" resolve --edit p/file
is "took theirs" "$(cat p/file)" there
check "stop" "$sbsync" stop p
says "status of one that is stopped" "^next      sbsync start --name p $scratch/p $scratch/far\$" \
	"$sbsync" status p

# Slips.
must_fail "all of the home directory" 5 env HOME="$scratch/p" "$sbsync" start p other
is "is asked about" "$output" "sbsync: $scratch/p is all of your home directory: nobody is there to\
 ask; --yes goes on"
must_fail "all of the other machine" 5 "$sbsync" start p nowhere.invalid:/
mkdir p/node_modules
says "what tools make is hinted at" '^sbsync: hint: node_modules goes along; --gitignore leaves' \
	"$sbsync" start p other
terminal 130 12
type_in "sbsync start --name q p box"
sees "a host without its colon" \
	'box would be a new directory here \(did you mean box: on another machine\?\)\. Go on'
type_in "n"
type_in 'echo status-$?'
sees "no is no" '(^|[$] )status-5$'
check "nothing was made" test ! -e box
type_in "clear; sbsync start --name q p box"
sees "asked again" 'Go on'
type_in "y"
sees "yes is yes" 'files synced'

# Live.
type_in "clear; sbsync status --watch --every 100ms q"
sees "status --watch" '^pending   nothing'
echo new >"$scratch/p/new"
sees "shows what comes" '^pending   1 to the other side'
press C-c
type_in "clear; echo over-\$?"
sees "and ends with Ctrl-C" '(^|[$] )over-0'
finish
