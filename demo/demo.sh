#!/bin/sh
# SPDX-License-Identifier: MIT
# A short tour of what is built, on throw-away folders. Usage: demo.sh [BUILD]. Called by ./quickstart. Each part is a
# function that says what it does and why it matters, does it, shows the outcome, and checks it: a demo that
# does not do what it says fails. Add new parts at the end, and to the list below.
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
	step "A project with 200 sources and a 20 MB file, copied into a box"
	make_project
	show sbsync mirror --gitignore proj box
	must "build/, which .gitignore names, stayed here" test ! -e box/build

	step "Again, with nothing changed"
	tell "Cost follows what changed, not what exists: one round trip, a few hundred bytes."
	show sbsync mirror --gitignore --stats proj box

	step "Five bytes inside the big file, and a folder renamed"
	tell "Only the difference travels, and what is there under another name is not sent again."
	printf 'hello' | dd of=proj/model.bin bs=1 seek=9000000 conv=notrunc 2>/dev/null
	mv proj/doc proj/notes
	show sbsync mirror --gitignore --stats proj box
	must "the two are equal" diff -r --exclude=build proj box
}

part_crash()
{
	step "A crash in the middle"
	tell "New content is collected in .sbsync-stage and checked; only then is it renamed into place." \
		"The sync below is slowed down and killed half way."
	cp -a box before
	head -c 20000000 /dev/urandom >proj/model.bin
	echo "A better plan." >proj/notes/plan.txt
	printf '   $ sbsync mirror --bwlimit 4M proj box &   kill -9\n'
	sbsync mirror --quiet --bwlimit 4M --gitignore proj box &
	pid=$!
	sleep 2
	kill -9 $pid 2>/dev/null || true
	wait $pid 2>/dev/null || true
	must "every file of the box still has its old content" diff -r --exclude=.sbsync-stage before box
	tell "What had arrived is not sent again."
	show sbsync mirror --gitignore --stats proj box
	must "run again, it finished: the two are equal" diff -r --exclude=build proj box
}

part_brake()
{
	step "A slip of the hand"
	tell "A source that suddenly lacks most of its files is more likely an accident than a wish."
	mv proj/src .
	show sbsync mirror --gitignore proj box
	must "refused (exit status 5)" test $status -eq 5
	must "nothing was deleted" test -e box/src/file0.c
	mv src proj/
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
else
	tell "libsbsync and libsandbox are built; the command sbsync is not part of this version yet."
fi
printf '\nNext: ./quickstart test runs every test; sbsync is in %s; doc/sbsync.1 is its manual.\n' "$build"
