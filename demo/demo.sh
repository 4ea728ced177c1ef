#!/bin/sh
# SPDX-License-Identifier: MIT
# A short tour of what is built, on throw-away folders. Usage: demo.sh [BUILD]. Called by
# ./quickstart. Each part is a function that says what it does and why it matters, does it, shows
# the outcome, and checks it: a demo that does not do what it says fails. Add new parts at the
# end, and to the list below.
set -eu

build=$(cd "${1:-build}" && pwd)
PATH=$build:$PATH
place=$(mktemp -d "${TMPDIR:-/tmp}/sbsync-demo.XXXXXX")
trap 'chmod -R u+rwX "$place"; rm -rf "$place"' EXIT
trap 'exit 130' INT TERM
export SBSYNC_STATE_DIR="$place/state"
cd "$place"

step()
{
	printf '\n== %s\n' "$*"
}

# What and why.
tell()
{
	printf '   %s\n' "$@"
}

# A command as one would type it, and what it prints. Its exit status is in $status.
show()
{
	printf '   $ %s\n' "$*"
	status=0
	"$@" >out 2>&1 || status=$?
	sed 's/^/     /' out
}

# must WHAT COMMAND...: the promise the text above makes.
must()
{
	what=$1
	shift
	if ! "$@" >out 2>&1; then
		sed 's/^/     /' out
		echo "demo: this should hold and does not: $what" >&2
		exit 1
	fi
	tell "-> $what"
}

make_project()
{
	mkdir -p proj/src proj/doc proj/build
	i=0
	while [ $i -lt 200 ]; do
		seq $i $((i + 400)) >"proj/src/file$i.c"
		i=$((i + 1))
	done
	echo "The plan." >proj/doc/plan.txt
	head -c 20000000 /dev/urandom >proj/model.bin
	head -c 3000000 /dev/zero >proj/build/junk.o
	echo "build/" >proj/.gitignore
}

part_mirror()
{
	step "A project with 200 sources and a 20 MB file, copied into a sandbox"
	make_project
	show sbsync mirror --gitignore proj sandbox
	must "build/, which .gitignore names, stayed here" test ! -e sandbox/build

	step "Again, with nothing changed"
	tell "Cost follows what changed, not what exists: one round trip, a few hundred bytes."
	show sbsync mirror --gitignore --stats proj sandbox

	step "Five bytes inside the big file, and a folder renamed"
	tell "Only the difference travels, and what is there under another name is not sent again."
	printf 'hello' | dd of=proj/model.bin bs=1 seek=9000000 conv=notrunc 2>/dev/null
	mv proj/doc proj/notes
	show sbsync mirror --gitignore --stats --delta always proj sandbox
	must "the two are equal" diff -r --exclude=build proj sandbox
}

part_crash()
{
	step "A crash in the middle"
	tell "New content is collected in .sbsync-stage and checked; only then is it renamed into" \
		"place. The sync below is slowed down and killed half way."
	cp -a sandbox before
	head -c 20000000 /dev/urandom >proj/model.bin
	echo "A better plan." >proj/notes/plan.txt
	printf '   $ sbsync mirror --bwlimit 4M proj sandbox &   kill -9\n'
	sbsync mirror --quiet --bwlimit 4M --gitignore proj sandbox &
	pid=$!
	sleep 2
	kill -9 $pid 2>/dev/null || true
	wait $pid 2>/dev/null || true
	must "every file of the sandbox still has its old content" \
		diff -r --exclude=.sbsync-stage before sandbox
	tell "What had arrived is not sent again."
	show sbsync mirror --gitignore --stats proj sandbox
	must "run again, it finished: the two are equal" diff -r --exclude=build proj sandbox
}

part_brake()
{
	step "A slip of the hand"
	tell "A source that suddenly lacks most of its files is more likely an accident" \
		"than a wish."
	mv proj/src .
	show sbsync mirror --gitignore proj sandbox
	must "refused (exit status 5)" test $status -eq 5
	must "nothing was deleted" test -e sandbox/src/file0.c
	mv src proj/
}

part_session()
{
	step "A session: you here, an agent in the sandbox"
	mkdir work && printf 'one\ntwo\nthree\n' >work/notes.txt && seq 1 50 >work/list.txt
	sleep 600 &
	owner=$!
	show sbsync start --owner $owner --name demo work sandbox
	tell "The agent edits there, you edit here, one file both of you."
	echo "the agent's line" >>sandbox/notes.txt
	echo "found by the agent" >sandbox/result.txt
	echo "your line" >>work/notes.txt
	echo "yours" >work/idea.txt
	step "The program that owned the session is killed"
	kill -9 $owner
	wait $owner 2>/dev/null || true
	tell "Recovery needs no thinking; a timer can do it. Nothing of either side is lost."
	show sbsync recover --all
	must "your edit is in place" grep -q "your line" work/notes.txt
	must "the agent's version of it is beside" \
		grep -q "the agent's line" work/notes.txt.runtime-conflict-demo
	must "the agent's new file came back" grep -q "found by the agent" work/result.txt
	must "your new file is still there" grep -q yours work/idea.txt
	show sbsync conflicts demo
}

drop_host()
{
	set +e
	for id in ${host:+demo second}; do
		sbctl host destroy -f $id >/dev/null 2>&1
	done
	[ -z "$host" ] || { kill $host; wait $host; } 2>/dev/null
	chmod -R u+rwX "$place"
	rm -rf "$place"
}

part_snapshot()
{
	step "A sandbox host: snapshot, disaster, rollback, fork"
	host=
	if [ "$(id -u)" != 0 ]; then
		tell "Left out: it needs root. (Without it sessions are plain directories.)"
		return 0
	fi
	mkdir -p bases/img
	seq 1 1000 >bases/img/work.txt
	export SANDBOX_HOST="unix:$place/host.sock"
	trap drop_host EXIT
	sbhostd --listen "$SANDBOX_HOST" --state-dir "$place/hostd" --bases-dir "$place/bases" \
		--default-base img --container-runtime none >host.log 2>&1 &
	host=$!
	n=0
	until sbctl host health >/dev/null 2>&1; do
		n=$((n + 1))
		[ $n -lt 100 ] || { cat host.log; return 1; }
		sleep 0.1
	done
	if sbctl host capabilities | grep -q local-disk; then
		tell "Left out: no storage with snapshots works here."
		return 0
	fi
	tell "Each session is a copy-on-write workspace of its own, on the disk that you have."
	show sbctl host create --time --id demo
	must "it has the base image's files" sbctl host exec demo 'test -s work.txt'
	sbctl host exec demo 'echo an hour of work >result.txt' >/dev/null
	show sbctl host snapshot --time demo good
	tell "A slip: rm -rf in the workspace."
	sbctl host exec demo 'rm -rf work.txt result.txt' >/dev/null
	show sbctl host diff demo good
	show sbctl host rollback --time demo good
	must "everything is back" sbctl host exec demo 'grep "an hour of work" result.txt'
	show sbctl host fork --time --snapshot good --id second demo
	must "the fork has it, too" sbctl host exec second 'grep "an hour of work" result.txt'
	show sbctl host timeline demo
	show sbctl host ls
}

has()
{
	sbsync --help 2>/dev/null | grep -q "^  $1 "
}

printf 'This tour takes a few seconds. It works in %s, which is removed at the end.\n' "$place"
if has mirror; then
	part_mirror
	part_crash
	part_brake
	if has start; then part_session; fi
	if command -v sbhostd >/dev/null && command -v sbctl >/dev/null; then part_snapshot; fi
else
	tell "libsbsync and libsandbox are built;" \
		"the command sbsync is not part of this version yet."
fi
printf '\nNext: ./quickstart test runs every test; sbsync is in %s; doc/sbsync.1 is its manual.\n' \
	"$build"
