#!/bin/sh
# SPDX-License-Identifier: MIT
# --gitignore leaves out what git would, and nothing that git tracks: `git ls-files` decides.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need git
need python3
sbsync=$(cd "${SB_TOP_BUILDDIR:-.}" && pwd)/sbsync
HOME=$scratch/home
SBSYNC_STATE_DIR=$scratch/state
GIT_CONFIG_NOSYSTEM=1
LC_ALL=C
unset XDG_CONFIG_HOME GIT_CONFIG_GLOBAL
export HOME SBSYNC_STATE_DIR GIT_CONFIG_NOSYSTEM LC_ALL sbsync
mkdir "$HOME"
git config --global user.email t@example.com
git config --global user.name t
git config --global protocol.file.allow always
cd "$scratch" || exit 1

# What git knows of, or would add, and is there.
known()
{
	git -C "$1" -c core.quotePath=off ls-files -c -o --exclude-standard | sort -u |
		while IFS= read -r f; do
			[ ! -f "$1/$f" ] || printf '%s\n' "$f"
		done
}

there()
{
	(cd "$1" && find . -name .git -prune -o -type f -print | sed 's,^\./,,' | sort)
}

# A mirror of $1 holds what git knows.
equal()
{
	rm -rf rt
	"$sbsync" mirror -q --gitignore "$1" rt || return 1
	known "$1" >want
	there rt >got
	diff want got
}

fresh()
{
	rm -rf ws rt
	git init -q ws
	mkdir -p ws/build/deep ws/src
	echo 1 >ws/src/a.c
	echo 1 >ws/src/a.o
	echo 1 >ws/build/kept
	echo 1 >ws/build/deep/kept
	echo 1 >ws/build/junk
	echo 1 >ws/build/deep/junk
	printf 'build/\n*.o\n' >ws/.gitignore
}

fresh
git -C ws add src/a.c
check "nothing ignored is tracked" equal ws
check "ignored files are left out" test ! -e rt/build
git -C ws add -f src/a.o build/kept build/deep/kept
check "tracked files go, ignored or not" equal ws
check "a tracked file in an ignored directory" test -e rt/build/deep/kept
check "beside it nothing else" test ! -e rt/build/deep/junk
check "git sees nothing deleted over there" \
	sh -c 'test -z "$(git -C rt status --porcelain | grep "^.D")"'
for v in 2 3 4; do
	git -C ws add -N src/a.o 2>/dev/null
	git -C ws update-index --index-version $v
	check "an index of version $v" equal ws
done
git -C ws update-index --split-index
echo 1 >ws/late.o
git -C ws add -f late.o
check "an index in two parts" equal ws
git -C ws update-index --no-split-index

fresh
printf 'local\n' >ws/.git/info/exclude
printf 'global\n!local2\n' >excl
git config --global core.excludesFile "$scratch/excl"
for f in local local2 global; do echo 1 >ws/$f; done
check "info/exclude and core.excludesFile" equal ws
check "they are left out" test ! -e rt/local -a ! -e rt/global -a -e rt/local2
printf '!global\n' >>ws/.gitignore
check ".gitignore is stronger" equal ws
printf '[include]\n\tpath = more\n' >"$HOME/.gitconfig.new"
printf '[core]\n\texcludesFile = ~/excl2\n' >"$HOME/more"
printf 'late\n' >"$HOME/excl2"
git config --global --unset core.excludesFile
cat "$HOME/.gitconfig.new" >>"$HOME/.gitconfig"
echo 1 >ws/late
check "a configuration that another includes" equal ws
git config --global --unset include.path
mkdir -p "$HOME/.config/git"
printf 'usual\n' >"$HOME/.config/git/ignore"
echo 1 >ws/usual
check "the usual place" equal ws
rm -rf "$HOME/.config"

fresh
git -C ws config core.ignorecase true
printf '/Upper\n[A-C]x\n[[:upper:]]_\nDoc/*.HTML\n' >>ws/.gitignore
mkdir ws/doc ws/BUILD
for f in upper UPPER ax Dx z_ 1_ doc/a.html doc/b.txt BUILD/x X.O; do echo 1 >ws/$f; done
check "core.ignorecase" equal ws
git -C ws config core.ignorecase false
check "and without it" equal ws

fresh
git init -q sub
echo 1 >sub/in.o
echo 1 >sub/a
printf '*.o\n' >sub/.gitignore
git -C sub add -f -A
git -C sub commit -qm one
git -C ws submodule -q add "$scratch/sub" lib
check "a tracked file of a submodule" sh -c \
	'"$sbsync" mirror -q --gitignore ws rt && test -e rt/lib/in.o'
git -C ws add -A
git -C ws commit -qm one
git -C ws worktree add -q ../wt
echo 1 >wt/x.o
echo 1 >wt/y.o
git -C wt add -f x.o
check "a working tree whose git directory is elsewhere" sh -c \
	'rm -rf rt && "$sbsync" mirror -q --gitignore wt rt && test -e rt/x.o -a ! -e rt/y.o'

# Sessions: what git tracks is looked up at each run, patterns are those of the start.
fresh
git -C ws add -f build/kept
check "a session starts" "$sbsync" start -q --gitignore --name g ws rt
check "with tracked files" test -e rt/build/kept -a ! -e rt/build/junk
echo 2 >rt/build/kept
git -C ws add -f build/junk
check "a sync" "$sbsync" sync -q g
check "the edit came" grep -q 2 ws/build/kept
check "what is tracked since went" test -e rt/build/junk
rm ws/build/junk
check "a sync" "$sbsync" sync -q g
check "its deletion went, too" test ! -e rt/build/junk
git -C ws rm -q --cached build/kept
check "a sync" "$sbsync" sync -q g
check "what is no longer tracked stays on both sides" test -e ws/build/kept -a -e rt/build/kept
"$sbsync" stop -q g
"$sbsync" rm g >/dev/null

# Odd files stop no sync.
fresh
git -C ws add src/a.c
awk 'BEGIN { for (i = 0; i < 5000; i++) printf "x"; print "\n*.tmp" }' >>ws/.gitignore
echo 1 >ws/a.tmp
check "a pattern of more than 4 KiB" sh -c \
	'rm -rf rt; "$sbsync" mirror --gitignore ws rt >out 2>&1 || { cat out; false; }'
check "it is told" grep -q "4096" out
check "the other patterns count" test ! -e rt/a.tmp -a -e rt/src/a.c
echo nonsense >ws/.git/index
check "a damaged index" sh -c \
	'rm -rf rt; "$sbsync" mirror --gitignore ws rt >out 2>&1 || { cat out; false; }'
check "it is told" grep -q "not known" out

# Random trees, patterns and indexes.
cat >random.py <<'EOF'
import os, random, subprocess, sys
rng = random.Random(int(sys.argv[1]))
names = ["a", "b", "build", "x.o", "x.c", "doc", "Core", "core", "t"]
fold = rng.random() < 0.5
paths = set()
for _ in range(40):
    # To git with core.ignorecase two names that differ in case alone are one.
    paths.add("/".join(rng.choice(names[: 7 if fold else 9]) for _ in range(rng.randint(1, 4))))
for p in sorted(paths):
    try:
        os.makedirs(os.path.dirname("ws/" + p) or ".", exist_ok=True)
        open("ws/" + p, "x").write(p)
    except OSError:
        pass
def text():
    out = []
    for _ in range(rng.randint(1, 5)):
        t = "/".join(rng.choice(names + ["*", "**", "*.o"]) for _ in range(rng.randint(1, 2)))
        out.append(rng.choice(["", "", "!", "/"]) + t + rng.choice(["", "", "/"]))
    return "\n".join(out) + "\n"
dirs = [d for d, _, _ in os.walk("ws") if ".git" not in d.split("/")]
for d in rng.sample(dirs, min(len(dirs), 3)) + ["ws"]:
    open(d + "/.gitignore", "w").write(text())
open("ws/.git/info/exclude", "w").write(text())
open("excl", "w").write(text())
files = [os.path.join(d, f)[3:] for d, _, fs in os.walk("ws") for f in fs]
files = sorted(f for f in files if not f.startswith(".git/"))
some = rng.sample(files, len(files) // 3)
subprocess.run(["git", "-C", "ws", "add", "-f", "--"] + some, check=True)
if fold:
    subprocess.run(["git", "-C", "ws", "config", "core.ignorecase", "true"], check=True)
EOF
git config --global core.excludesFile "$scratch/excl"
random_trees()
{
	first=${GITIGNORE_SEED:-1}
	for seed in $(seq "$first" $((first + ${GITIGNORE_TREES:-40} - 1))); do
		rm -rf ws rt
		git init -q ws
		python3 random.py "$seed" || return 1
		equal ws || { echo "seed $seed"; return 1; }
	done
}
check "random trees are as git says" random_trees
finish
