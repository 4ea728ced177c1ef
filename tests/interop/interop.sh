#!/bin/sh
# SPDX-License-Identifier: MIT
# sbsync against an agent that was written from sbsync-protocol(5) alone, in Python.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3
# The packages are there for the system's Python, which need not be the first one.
py=
for p in python3 /usr/bin/python3; do
	[ -n "$py" ] || ! $p -c 'import xxhash, zstandard' 2>/dev/null || py=$p
done
[ -n "$py" ] || skip_all "no python3-xxhash or python3-zstandard"

here=$(cd "${SB_TOP_SRCDIR:-.}/tests/interop" && pwd)
trees="python3 $here/../lib/trees.py"
sbsync=$(cd "${SB_TOP_BUILDDIR:-.}" && pwd)/sbsync
cd "$scratch" || exit 1
PYTHONDONTWRITEBYTECODE=1
SBSYNC_STATE_DIR=$scratch/state
INTEROP_STATE=$scratch/remembered
INTEROP_LOG=$scratch/log
export PYTHONDONTWRITEBYTECODE SBSYNC_STATE_DIR INTEROP_STATE INTEROP_LOG
mkdir remembered far here

sb() { : >log && verb=$1 && shift && "$sbsync" "$verb" --rsh "$py $here/agent.py" "$@"; }
push() { sb mirror -q "$@" here "h:$scratch/far" && same here far; }
same() { $trees same "$1" "$2"; }
said() { grep -qx "$1" log; }
silent() { ! grep -q "$1" log; }

mkdir -p here/dir/sub here/empty here/old
echo one >here/file && echo two >here/dir/sub/deep && : >here/nothing
ln -s ../file here/dir/link && ln -s nowhere here/dangling
chmod 755 here/file && chmod 555 here/dir/sub
echo linked >here/hard1 && ln here/hard1 here/dir/hard2
python3 -c '
import os
for n in (b"tab\there", b"new\nline", b"\xff\xfe", "\u00e4\u00f6".encode(), b"n" * 200, b"-dash"):
    with open(b"here/" + n, "wb") as f:
        f.write(n * 3)
at = os.open("here/old", os.O_RDONLY)
for _ in range(30):
    os.mkdir(b"d" * 90, dir_fd=at)
    at = os.open(b"d" * 90, os.O_RDONLY, dir_fd=at)
os.close(os.open("end", os.O_CREAT | os.O_WRONLY, dir_fd=at))'
python3 -c 'import random; random.seed(1); open("here/big", "wb").write(random.randbytes(300000))'
for i in $(seq 300); do echo "text $i" >here/dir/t$i; done

check "cold push" push
check "the stream came" said "entry whole"
check "hard links are hard links there" test far/hard1 -ef far/dir/hard2
check "a sync with nothing to do" push
check "needs no plan" silent "plan"
check "and no listing" silent "GETTREE\|LIST"

echo edited >here/file
printf EDIT | dd of=here/big bs=1 seek=150000 conv=notrunc 2>dd
chmod 600 here/nothing
check "edit" push
check "two files came" sh -c 'test $(grep -c "^entry" log) -eq 2'
check "one as a patch on what was there" said "entry patch"
truncate -s 3000000 here/holes && echo end >>here/holes
check "a file with a hole" push
check "comes without it" said "entry sparse"
mv here/big here/moved && mv here/old here/new && mv here/dir/t5 here/dir/t5-moved
check "move" push
check "files and directories move, nothing is sent" sh -c 'test $(grep -c "^plan 3" log) -eq 3 &&
	! grep -q "^entry" log'
cp -p here/moved here/copy
check "copy" push
check "is made there" said "plan 2 copy"
rm -rf here/new here/dir/t1* here/dangling
check "delete" push --max-delete 1000
rm here/hard1 && echo alone >here/hard1 && ln here/file here/dir/second && ln here/moved here/third
check "hard links come and go" push
check "as such" said "plan 6 third"
rm here/nothing && mkdir here/nothing && echo in >here/nothing/in
rm -rf here/empty && ln -s x here/empty
check "types change" push
rm -rf remembered/* && echo again >here/dir/t20
check "without a common base" push
check "by lists or the whole" sh -c 'grep -q "GETTREE\|LIST" log'
for f in $(find here -links +1 -type f); do cp -p "$f" x && rm "$f" && mv x "$f"; done
check "links become files" push
rm -rf state remembered/* && echo again >here/dir/t21
check "no state at all, and a tree that is worth a descent" push
check "level by level" said LIST
check "random edits" sh -c "$trees mutate here 7 40"
check "arrive" push --max-delete 10000 --max-entries 1000

mkdir back
check "pull" sh -c "'$sbsync' mirror -q --rsh '$py $here/agent.py' 'h:$scratch/far' back &&
	$trees same far back"
echo 'from there' >far/file && rm -rf far/empty && mkdir far/made && echo x >far/made/x
check "pull of changes" sh -c ": >log; '$sbsync' mirror -q --rsh '$py $here/agent.py' \
	'h:$scratch/far' back && $trees same far back"
check "is a difference" silent "GETTREE\|LIST"

mkdir ws box && echo 1 >ws/a && echo 2 >ws/b && mkdir ws/d && echo 3 >ws/d/c && echo no >ws/x.o
check "session: start" sb start -q -x '*.o' --name s ws "h:$scratch/box/w"
check "what is excluded stays here" sh -c "test ! -e box/w/x.o && cat box/w/d/c"
turn() { : >log && "$sbsync" sync -q s; }
echo mine >ws/a && echo theirs >box/w/b && echo new >box/w/d/n && rm box/w/d/c && echo z >box/w/z.o
check "session: a turn" turn
is "the sandbox's edit is here" "$(cat ws/b ws/d/n)" "theirs
new"
is "ours is there" "$(cat box/w/a)" mine
check "its deletion, too" test ! -e ws/d/c
check "what it has of the excluded is not here" test ! -e ws/z.o
mv box/w/d box/w/dd && mv ws/a ws/aa
check "session: moves" turn
check "of both" sh -c "cat ws/dd/n && cat box/w/aa && test ! -e ws/d && test ! -e box/w/a"
check "session: nothing to do" turn
check "is one round" silent "plan\|GETTREE\|LIST\|WANT"
echo L >ws/b && echo R >box/w/b
must_fail "session: a conflict" 3 "$sbsync" sync s
is "keeps both" "$(cat ws/b ws/b.runtime-conflict-s)" "L
R"
echo last >box/w/last
check "session: stop" "$sbsync" stop -q s
is "brings the rest" "$(cat ws/last)" last
check "session: another" sb start -q --name t ws "h:$scratch/box/t"
rm -rf box/t remembered/* && mkdir box/t
must_fail "a sandbox that is another one is refused" 5 "$sbsync" sync t
must_fail "a root that is not there is told" 1 \
	"$sbsync" mirror --rsh "$py $here/agent.py" "h:$scratch/nowhere" back
finish
