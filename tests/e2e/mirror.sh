#!/bin/sh
# SPDX-License-Identifier: MIT
# `sbsync mirror` of two local directories: after it the trees are equal, whatever is in them and
# whatever changed. With MIRROR_PART=user (mirror-user.sh) without the large trees.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3 rsync git

sbsync=${SB_TOP_BUILDDIR:-.}/sbsync
trees="python3 ${SB_TOP_SRCDIR:-.}/tests/lib/trees.py"
export SBSYNC_STATE_DIR="$scratch/state"
cd "$scratch" || exit 1

# mirrored SRC DST [OPTION]...: mirrors, then nothing differs, and a second run finds nothing to do.
# (rsync does not see paths beyond PATH_MAX; trees.py does.)
mirrored()
{
	"$sbsync" mirror -q "$@" && $trees same "$1" "$2" &&
		test -z "$(rsync -anicH --no-D --delete --exclude='/dddddddd*' "$1/" "$2/" 2>&1 |
			grep -v 'skipping non-regular')" &&
		test -z "$("$sbsync" diff -q "$1" "$2")"
}

# What may not be read is named, and the rest comes.
user=
if [ "$(id -u)" != 0 ]; then
	user=--user
	mkdir -p shut/dir && echo r >shut/readable && echo n >shut/none && echo i >shut/dir/in &&
		chmod 0 shut/none shut/dir
	must_fail "an unreadable file and directory" 1 "$sbsync" mirror -q shut shutd
	is "are named" "$(printf '%s\n' "$output" | sort | tr '\n' ' ')" \
		"error: dir: permission denied error: none: permission denied "
	is "and the rest is here" "$(ls -A shutd)" readable
	chmod 644 shut/none && chmod 755 shut/dir
	check "until they can be read" mirrored shut shutd
	chmod 0 shut/none shut/dir
	must_fail "what cannot be read any more" 1 "$sbsync" mirror -q shut shutd
	is "is not taken for deleted" \
		"$(ls -A shutd | tr '\n' ' ')$(cat shutd/dir/in)" "dir none readable i"
	chmod 700 shut/dir
fi

# A tree of every odd thing, then the same with every type changed.
$trees odd odd $user
check "every odd thing arrives" mirrored odd dst
check "holes stay holes" $trees sparse odd dst
$trees retype odd
check "type changes, renames, case, links, read-only directories" mirrored odd dst
check "everything deleted but one" \
	sh -c "chmod -R u+rwx odd 2>/dev/null; rm -rf odd/*; echo x >odd/left"
must_fail "the brake stops a mass deletion" 5 "$sbsync" mirror odd dst
check "and says how to go on" sh -c "printf '%s' \"$output\" | grep -q -- --max-delete"
check "with --max-delete it goes on" mirrored odd dst --max-delete 1000000

# Random trees and edits; each round starts from the state of the last.
seeds="1 2 3 4 5 6"
[ "${MIRROR_PART-}" != user ] || seeds="7 8"
for seed in $seeds; do
	$trees random r$seed $seed 300
	check "random tree $seed" mirrored r$seed d$seed
	$trees mutate r$seed $((seed + 100)) 40
	check "random edits $seed" mirrored r$seed d$seed --max-delete 100000
	$trees mutate d$seed $((seed + 200)) 25
	check "edits at the destination $seed are undone" mirrored r$seed d$seed --max-delete 100000
	rm -rf state
	$trees mutate r$seed $((seed + 300)) 15
	check "without any state $seed" mirrored r$seed d$seed --max-delete 100000
done

# What real trees hold.
mirror_of()
{
	mirrored "$1" "real" --max-delete 100000000
}
for dir in /usr/include /usr/share/doc; do
	[ "${MIRROR_PART-}" != user ] && [ -d $dir ] && check "$dir" mirror_of $dir
done

# An npm install, once for a build. SB_NPM_PACKAGE names another package.
npm_tree()
{
	package=${SB_NPM_PACKAGE:-express@4}
	npm=${SB_TOP_BUILDDIR:-.}/tests/e2e/npm-$package
	if [ ! -e "$npm/done" ]; then
		command -v npm >/dev/null || { npm_why="npm is not installed" && return 1; }
		mkdir -p "$npm" && echo '{"private":true}' >"$npm/package.json"
		(
			cd "$npm" && timeout 150 npm install --ignore-scripts --no-audit --no-fund \
				--fetch-retries=0 --cache ./cache "$package" >npm.log 2>&1
		) ||
			{ npm_why="npm install $package: $(tail -n 1 "$npm/npm.log")" && return 1; }
		rm -rf "$npm/cache"
		: >"$npm/done"
	fi
}
if [ "${MIRROR_PART-}" = user ]; then
	:
elif npm_tree; then
	check "an npm install" mirrored "$npm/node_modules" npm1
	is "with its links" \
		"$(find npm1 -type l | wc -l)" "$(find "$npm/node_modules" -type l | wc -l)"
	rm -rf "npm1/$(find "$npm/node_modules" -maxdepth 1 -mindepth 1 -printf '%f\n' |
		grep -v '^[.]' | head -n 1)"
	check "and what was removed from it comes again" mirrored "$npm/node_modules" npm1
else
	skip "an npm install" "$npm_why"
fi
git init -q -b main repo && (
	cd repo || exit 1
	git config user.email t@example.com
	git config user.name t
	for i in 1 2 3 4 5 6 7 8 9 10; do
		$trees random "part$i" "$i" 20
		git add -A && git commit -qm "c$i"
	done
	git branch other HEAD~3 && git gc -q
	$trees random more 77 20 && git add -A && git commit -qm more && echo dirty >>part1/dirty
)
check "a git repository" mirrored repo repo2
check "git fsck there" git -C repo2 fsck --strict
is "git status there" "$(git -C repo2 status --porcelain)" "$(git -C repo status --porcelain)"

# Moves are moves.
mkdir -p mv/a && head -c 3000000 /dev/urandom >mv/a/big && $trees random mv/tree 5 200
check "before the move" mirrored mv mvd
mv mv/tree mv/elsewhere && mv mv/a/big mv/a/bigger
out=$("$sbsync" mirror --json mv mvd)
is "a moved directory and a moved file" \
	"$(printf '%s' "$out" | grep -o '"files_moved":[0-9]*')" '"files_moved":2'
is "send nothing" \
	"$(printf '%s' "$out" | grep -o '"bytes_transferred":[0-9]*')" '"bytes_transferred":0'
check "and arrive" $trees same mv mvd
is "phases_ms has the steps of a run" \
	"$(printf '%s' "$out" | grep -o '"phases_ms":{[^}]*}' | grep -o '[a-z_]*":' | tr -d '\n')" \
	'phases_ms":connect":scan":exchange":plan":transfer":stage":verify":commit":record":'

# What an interrupted run left goes when there is nothing more to send.
mkdir -p eq && echo same >eq/same && touch -d 2020-01-01 eq
check "equal" mirrored eq eqd
mkdir -p eqd/.sbsync-stage/new && echo left >eqd/.sbsync-stage/new/f0 && touch -d 2020-01-01 eqd
check "a run with nothing to do" mirrored eq eqd
check "takes leftovers away" test ! -e eqd/.sbsync-stage

# Times beyond what nanoseconds in 64 bits can say are kept as well as they can.
mkdir -p late && echo a >late/a && touch -d 2400-01-01 late/a && echo b >late/b &&
	touch -d 1902-01-01 late/b
check "late and early times" "$sbsync" mirror -q late lated
is "with content" "$(cat lated/a lated/b)" "a
b"
echo edited >late/a && touch -d 2401-01-01 late/a
check "and again" "$sbsync" mirror -q late lated
is "with the edit" "$(cat lated/a)" edited

# Excludes are neither sent nor deleted.
mkdir -p ex/keep ex/build && echo a >ex/keep/a && echo o >ex/build/o && echo l >ex/x.log &&
	echo '*.log' >ex/.sbsyncignore
mkdir -p exd/build exd/other && echo old >exd/build/old && echo y >exd/y.log
check "excludes" "$sbsync" mirror -q -x build/ ex exd
is "excluded stay as they are" "$(cd exd && find . -type f | sort | tr '\n' ' ')" \
	"./.sbsyncignore ./build/old ./keep/a ./y.log "

# A dry run changes nothing.
cp -a ex exn && echo new >ex/new
"$sbsync" mirror -n ex exn >dry
is "a dry run tells" "$(grep -c '^-> create  *new$' dry)" 1
check "and changes nothing" test ! -e exn/new

# Bad input: one clear line, nothing changed.
must_fail "missing source" 1 "$sbsync" mirror nosuch dst
must_fail "destination inside source" 1 "$sbsync" mirror odd odd/sub
must_fail "source inside destination" 1 "$sbsync" mirror odd/.. odd
echo x >file
must_fail "a file as source" 1 "$sbsync" mirror file dst
must_fail "a file as destination" 1 "$sbsync" mirror odd file
must_fail "unknown option" 2 "$sbsync" mirror --nosuch a b
is "the way to the help is named once" "$output" "sbsync: unknown option --nosuch: see --help"
must_fail "one argument" 2 "$sbsync" mirror a
must_fail "bad level" 2 "$sbsync" mirror --compress 99 odd dst
is "the message is one line" "$(printf '%s\n' "$output" | wc -l)" 1
finish
