#!/bin/sh
# SPDX-License-Identifier: MIT
# What git obeys is not reached from a sandbox, whatever way its tree changes;
# tests/hostile/canary.sh does the same with random plans.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need git
sbsync=$(cd "${SB_TOP_BUILDDIR:-.}" && pwd)/sbsync
HOME=$scratch/home
SBSYNC_STATE_DIR=$scratch/state
GIT_CONFIG_NOSYSTEM=1
export HOME SBSYNC_STATE_DIR GIT_CONFIG_NOSYSTEM
mkdir "$HOME"
git config --global user.email t@example.com
git config --global user.name t
git config --global init.defaultBranch main
git config --global protocol.file.allow always
cd "$scratch" || exit 1
ran=$scratch/ran

# A repository in ws, and a session with rt.
fresh()
{
	rm -rf ws rt state ran
	git init -q ws
	echo one >ws/file
	git -C ws add -A
	git -C ws commit -qm one
}

begin()
{
	"$sbsync" start -q --name g ws rt
}

# A git directory that runs the canary, at $1.
armed()
{
	mkdir -p "$1/objects" "$1/refs/heads" "$1/hooks" "$1/info"
	echo 'ref: refs/heads/main' >"$1/HEAD"
	printf '[core]\n\tfsmonitor = touch %s; false\n[pager]\n\tlog = touch %s\n' "$ran" "$ran" \
		>"$1/config"
	printf '#!/bin/sh\ntouch %s\n' "$ran" >"$1/hooks/post-index-change"
	for h in pre-commit reference-transaction pre-auto-gc; do
		cp "$1/hooks/post-index-change" "$1/hooks/$h"
	done
	chmod +x "$1"/hooks/*
	: >"$1/refs/heads/.keep"
	: >"$1/objects/.keep"
}

# git works at $1; nothing of the sandbox ran.
calm()
{
	git -C "$1" status >/dev/null 2>&1
	git -C "$1" add -A >/dev/null 2>&1
	git -C "$1" commit -qm more --allow-empty >/dev/null 2>&1
	git -C "$1" update-ref refs/heads/more "$(git -C ws rev-parse HEAD)" >/dev/null 2>&1
	git -C "$1" gc -q >/dev/null 2>&1
	[ ! -e "$ran" ] || { rm -f "$ran"; return 1; }
}

# A sync that keeps something aside and says how to take it.
sync_aside()
{
	"$sbsync" sync "$@" g >out 2>&1
	code=$?
	[ $code -eq 3 ] && grep -q trust-git-config out || { echo "exit $code"; cat out; return 1; }
}

# A1: a directory that moves carries guarded files.
fresh
mkdir ws/sub
echo x >ws/sub/x
begin
armed rt/data
check "data that looks like a git directory" sync_aside
mv rt/data rt/sub/.git
check "a directory moved to .git" sync_aside
check "git in it runs nothing" calm ws/sub
check "its configuration is not there" test ! -e ws/sub/.git/config
fresh
begin
mkdir -p rt/p/git
for f in config hooks; do
	armed rt/tmp
	mv "rt/tmp/$f" rt/p/git/
	rm -rf rt/tmp
done
"$sbsync" sync -q g
check "parts of it come, being no git directory" test -e ws/p/git/config
mv rt/p rt/q
mv rt/q/git rt/q/.git
check "its parent moved as well" sync_aside
check "git in it runs nothing" calm ws/q
fresh
begin
armed rt/data
"$sbsync" sync -q g
mkdir -p rt/.git/modules
mv rt/data rt/.git/modules/lib
check "a directory moved into .git/modules" sync_aside
check "no configuration is there" test ! -e ws/.git/modules/lib/config
fresh
mkdir ws/sub
begin
"$sbsync" mirror -q --rsh "$scratch/rsh" ws box:"$scratch/mt" 2>/dev/null
printf '#!/bin/sh\nshift\nexec sh -c "$*"\n' >rsh
chmod +x rsh
"$sbsync" mirror -q --rsh ./rsh ws "box:$scratch/mt"
mkdir mt/data
armed mt/tmp
mv mt/tmp/config mt/tmp/hooks mt/data/
rm -rf mt/tmp
"$sbsync" mirror -q --rsh ./rsh "box:$scratch/mt" ws
check "a mirror brings it as data" test -e ws/data/config
mv mt/data mt/sub/.git
must_fail "a mirror does not move it to .git" 3 "$sbsync" mirror --rsh ./rsh "box:$scratch/mt" ws
check "no configuration is there" test ! -e ws/sub/.git/config
rm -rf mt

# A2: an ancestor of a guarded path becomes something else, or goes.
lib()
{
	fresh
	git clone -q ws src
	(cd ws && git submodule -q add "$scratch/src" lib && git commit -qm lib)
	rm -rf src
	begin
	armed rt/data/lib
	cp rt/data/lib/config rt/data/config
	"$sbsync" sync -q g >/dev/null 2>&1
}
for what in modules modules/lib info objects objects/info hooks; do
	lib
	rm -rf "rt/.git/$what"
	case $what in
	*/*) ln -s ../../data "rt/.git/$what" ;;
	*) ln -s ../data "rt/.git/$what" ;;
	esac
	check ".git/$what becomes a link" sync_aside
	check "it is a directory still" test -d "ws/.git/$what" -a ! -L "ws/.git/$what"
	check "git runs nothing" calm ws/lib
done
lib
rm -rf rt/.git/modules/lib
check ".git/modules/lib goes" sync_aside
check "it stays here" test -e ws/.git/modules/lib/config
fresh
begin
ln -sf "$scratch/victim" rt/.git/COMMIT_EDITMSG
echo mine >victim
check "a link that git would write through" sync_aside
check "git runs nothing" calm ws
check "nothing was written through it" grep -q mine victim
fresh
begin
ln -f rt/.git/config rt/.git/COMMIT_EDITMSG
"$sbsync" sync -q g >/dev/null 2>&1
check "the configuration gets no second name" test "$(stat -c %h ws/.git/config)" = 1

# A3: git directories of other names.
fresh
git clone -q --separate-git-dir ws/side.git ws ws/side 2>/dev/null
echo 'gitdir: ../side.git' >ws/side/.git
mkdir ws/linked
cp -r ws/.git ws/store
ln -s ../store ws/linked/.git
begin
for g in side.git store; do
	armed "rt/$g"
done
check "what a .git file or link leads to" sync_aside
check "git runs nothing behind a .git file" calm ws/side
check "git runs nothing behind a .git link" calm ws/linked
mv rt/store rt/elsewhere
check "what a link leads to moves away" sync_aside
check "it stays here" test -e ws/store/config
fresh
begin
armed rt/planted
check "a bare repository is planted" sync_aside
check "git in it runs nothing" calm ws/planted
check "its data came" test -e ws/planted/HEAD
fresh
begin
armed rt/parts
rm rt/parts/HEAD
"$sbsync" sync -q g
check "without HEAD it is data" test -e ws/parts/config
echo 'ref: refs/heads/main' >rt/parts/HEAD
check "HEAD comes later" sync_aside
check "git in it runs nothing" calm ws/parts
for way in . ../other; do
	fresh
	begin
	armed rt/parts
	armed rt/tmp
	mkdir rt/other
	mv rt/tmp/config rt/tmp/hooks rt/other/
	rm -rf rt/tmp rt/parts/HEAD rt/parts/objects rt/parts/refs
	echo $way >rt/parts/commondir
	"$sbsync" sync -q g
	check "one that leads to $way is data" test -e ws/parts/commondir
	for d in parts other; do
		cp -r rt/.git/objects rt/.git/refs rt/.git/HEAD rt/$d/
	done
	check "the rest of it comes later" sync_aside
	check "git in it runs nothing" calm ws/parts
	check "git where it leads runs nothing" calm ws/other
done
fresh
git init -q --separate-git-dir=ws/conf ws/inner
printf '[include]\n\tpath = ../gitconfig\n' >>ws/.git/config
echo >ws/gitconfig
begin
armed rt/tmp
mv rt/tmp/config rt/gitconfig
rm -rf rt/tmp
check "a file that the configuration includes" sync_aside
check "git runs nothing" calm ws
fresh
printf '[include] path = ../one ; the first\n' >>ws/.git/config
printf '[include]\n\tpath = "two"\n' >ws/one
: >ws/two
begin
armed rt/tmp
mv rt/tmp/config rt/two
rm -rf rt/tmp
check "a file that an included file includes" sync_aside
check "git runs nothing" calm ws

# Hooks and programs of the tree that the user's own configuration names.
hook()
{
	mkdir -p "$(dirname "$1")"
	printf '#!/bin/sh\ntouch %s\ncat\n' "$ran" >"$1"
	chmod +x "$1"
}
for path in .githooks ./a/../.githooks .; do
	for where in local global worktree; do
		fresh
		mkdir ws/a
		case $where in
		worktree)
			git -C ws config extensions.worktreeConfig true
			git -C ws config --worktree core.hooksPath $path
			;;
		*) git -C ws config --$where core.hooksPath $path ;;
		esac
		begin
		hook "rt/$path/pre-commit"
		check "hooks in $path by the $where configuration" sync_aside
		check "git runs nothing" calm ws
		git config --global --unset core.hooksPath
	done
done
fresh
git config --global core.hooksPath .githooks
begin
mkdir rt/sub
git init -q rt/sub
rm -rf rt/sub/.git/config rt/sub/.git/hooks rt/sub/.git/info
hook rt/sub/.githooks/reference-transaction
check "hooks beside a new repository" sync_aside
git init -q ws/sub
check "git runs nothing there" calm ws/sub
git config --global --unset core.hooksPath
fresh
git -C ws config filter.x.clean 'tools/clean.sh %f'
git -C ws config core.fsmonitor ./watch
mkdir ws/tools
printf '#!/bin/sh\ncat\n' >ws/tools/clean.sh
chmod +x ws/tools/clean.sh
begin
echo '* filter=x' >rt/.gitattributes
hook rt/tools/clean.sh
hook rt/watch
check "programs that the configuration names" sync_aside
check "git runs nothing" calm ws
mv rt/tools rt/elsewhere
ln -s elsewhere rt/tools
check "their directory becomes a link" sync_aside
check "git runs nothing" calm ws

# A4: half-done operations.
fresh
begin
for s in rebase-merge rebase-apply sequencer; do
	mkdir -p "rt/.git/$s"
	echo "exec touch $ran" >"rt/.git/$s/git-rebase-todo"
done
for s in BISECT_LOG BISECT_NAMES info/grafts objects/info/alternates commondir remotes/origin; do
	mkdir -p "rt/.git/${s%/*}" 2>/dev/null
	rm -rf "rt/.git/$s"
	case $s in */*) mkdir -p "rt/.git/${s%/*}" ;; esac
	echo "'; touch $ran'" >"rt/.git/$s"
done
check "half-done operations" sync_aside
for s in rebase-merge rebase-apply sequencer BISECT_LOG BISECT_NAMES info/grafts \
	objects/info/alternates commondir remotes/origin; do
	check ".git/$s is not there" test ! -e "ws/.git/$s"
done
fresh
mkdir ws/.git/rebase-merge
echo pick >ws/.git/rebase-merge/git-rebase-todo
begin
rm -rf rt/.git/rebase-merge
check "the end of an operation comes" "$sbsync" sync g
check "it is gone" test ! -e ws/.git/rebase-merge

# A5: resolve does not install it.
fresh
begin
armed rt/tmp
cp rt/tmp/config rt/.git/config
cp rt/tmp/hooks/* rt/.git/hooks/
rm -rf rt/tmp
echo two >rt/file
echo three >ws/file
check "a conflict and guarded files" sync_aside
must_fail "resolve --take runtime --all decides the others" 3 \
	"$sbsync" resolve --name g --take runtime --all
check "it says the way out" echo "$output"
check "the conflict is decided" grep -q two ws/file
check "git runs nothing" calm ws
check "the sandbox's version is kept" test -e ws/.git/config.runtime-conflict-g
check "with consent it is taken" "$sbsync" resolve --name g --take runtime --all --trust-git-config
check "it is there then" grep -q fsmonitor ws/.git/config

# Only a time changed: nothing to decide.
fresh
begin
touch -d @1 rt/.git/config
check "a touched configuration is no conflict" "$sbsync" sync g
finish
