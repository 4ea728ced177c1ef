#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2086
# Machines where no agent can run: busybox alone in a root whose places to write are all
# noexec, and GNU tools without a place to execute from. Mirrors both ways, diff and a session
# work with sh, find and tar.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3 ssh-keygen busybox

src=${SB_TOP_SRCDIR:-.}
build=${SB_TOP_BUILDDIR:-.}
sbsync=$build/sbsync
trees="python3 $src/tests/lib/trees.py"
export SBSYNC_STATE_DIR="$scratch/state"
cd "$scratch" || exit 1
chmod 711 "$scratch" # the user has to get to its home

cat >alike.py <<'PY'
# Same names, types, modes, contents and targets; times of files to the second. Root and
# directory times are left out.
import os, stat, sys
def tree(top):
    out = {}
    for d, ds, fs in os.walk(os.fsencode(top)):
        for n in ds + fs:
            p = os.path.join(d, n)
            s = os.lstat(p)
            k = os.path.relpath(p, os.fsencode(top))
            if k.startswith(b'.sbsync-'):
                continue
            if stat.S_ISLNK(s.st_mode):
                out[k] = ('l', os.readlink(p))
            elif stat.S_ISDIR(s.st_mode):
                out[k] = ('d', s.st_mode & 0o777)
            elif stat.S_ISREG(s.st_mode):
                out[k] = ('f', s.st_mode & 0o777, int(s.st_mtime), open(p, 'rb').read())
    return out
a, b = tree(sys.argv[1]), tree(sys.argv[2])
bad = [k for k in sorted(a.keys() | b.keys()) if a.get(k) != b.get(k)]
for k in bad[:5]:
    print(k, str(a.get(k))[:200], str(b.get(k))[:200])
sys.exit(1 if bad else 0)
PY
alike="python3 $scratch/alike.py"

python3 - <<'PY'
import os
os.makedirs('tree/d/deep'); os.makedirs('tree/empty'); os.makedirs('tree/ro')
def put(p, t, mode=0o644):
    with open(p, 'w') as f: f.write(t)
    os.chmod(p, mode); os.utime(p, ns=(1_700_000_000_123_456_789, 1_700_000_000_123_456_789))
for i in range(40): put(f'tree/d/f{i}', f'file {i}\n' * (i * 7))
put('tree/zero', '')
put('tree/exec', '#!/bin/sh\n', 0o755)
put("tree/odd 'name' -$x\n", 'odd')
put('tree/-dash', 'dash')
put('tree/d/deep/x.log', 'left out')
put('tree/ro/inside', 'in a read-only directory', 0o444)
os.symlink('../zero', 'tree/d/link'); os.symlink('nowhere', 'tree/dangling')
os.chmod('tree/ro', 0o555)
# Files of this very second are read again, and busybox tells no fractions:
# nothing to do is for older ones.
for d, ds, fs in os.walk('tree', topdown=False):
    for f in fs + ['.']:
        t = os.lstat(os.path.join(d, f)).st_mtime_ns - 3600 * 10**9
        os.utime(os.path.join(d, f), ns=(t, t), follow_symlinks=False)
PY

# place NAME SETUP [LINE]...: a server with a user of its own in whose
# places nothing can be executed.
place()
{
	name=$1
	SSHD_SETUP=$2
	SSHD_ACCOUNT=sbtester
	export SSHD_SETUP SSHD_ACCOUNT
	shift 2
	dir=$scratch/$name
	why=$(sh "$src/tests/lib/sshd.sh" start "$dir" "$@") || return
	at_exit "sh $src/tests/lib/sshd.sh stop $dir"
	SSHD_KEYS=$dir
	export SSHD_KEYS
	port=$(cat "$dir/port")
	opts="--known-hosts $dir/known_hosts -i $dir/id_ed25519 -F /dev/null -p $port"
	there=sbtester@127.0.0.1:$dir/home
}

mirrors()
{
	far=$dir/home/far
	"$sbsync" mirror -v $opts -x '*.log' tree "$there/far" >out 2>&1 || { cat out; return 1; }
	grep -q 'without an agent there, with sh, find and tar' out ||
		{ echo "not said"; cat out; return 1; }
	cp -a tree want && rm want/d/deep/x.log
	$alike want "$far" || return
	# What is excluded stays, also in a directory that goes.
	touch -r "$far/d/deep" ref
	echo kept >"$far/d/deep/y.log" && chown 4321 "$far/d/deep/y.log"
	touch -r ref "$far/d/deep"
	"$sbsync" diff $opts -x '*.log' tree "$there/far" >out 2>&1 || { cat out; return 1; }
	[ ! -s out ] || { echo "differs already"; cat out; return 1; }
	"$sbsync" mirror --json $opts -x '*.log' tree "$there/far" >json 2>out ||
		{ cat out; return 1; }
	grep -q '"files_synced":0' json || { cat json; return 1; }
}

edits()
{
	cp -a tree tree2
	echo new >tree2/new && rm tree2/d/f7 && mv tree2/d/f8 tree2/moved && chmod 600 tree2/d/f9 &&
		echo more >>tree2/d/f10
	rm tree2/zero && mkdir tree2/zero && echo x >tree2/zero/x && rm -r tree2/empty &&
		echo file >tree2/empty
	rm tree2/d/deep/x.log
	"$sbsync" diff $opts -x '*.log' tree2 "$there/far" >out 2>&1 || { cat out; return 1; }
	grep -q 'delete *d/f7' out || { cat out; return 1; }
	test -e "$far/d/f7" || return
	"$sbsync" mirror -q $opts -x '*.log' tree2 "$there/far" || return
	test "$(cat "$far/d/deep/y.log")" = kept || return
	rm "$far/d/deep/y.log"
	$alike tree2 "$far"
}

pulls()
{
	rm -rf back
	"$sbsync" mirror -q $opts "$there/far" back && $alike "$far" back || return
	echo changed >"$far/d/f3" && rm "$far/d/f4" && chown -R 4321 "$far"
	"$sbsync" mirror -q $opts "$there/far" back && $alike "$far" back
}

session()
{
	rm -rf local && cp -a tree local && rm local/d/deep/x.log
	"$sbsync" start -q --name "$name" $opts local "$there/runtime" || return
	$alike local "$dir/home/runtime" || return
	runtime=$dir/home/runtime
	echo theirs >"$runtime/d/f1" && echo theirs >"$runtime/both" && rm "$runtime/d/f2" &&
		chown -R 4321 "$runtime"
	echo mine >local/d/f5 && echo mine >local/both
	"$sbsync" sync -q "$name" 2>out
	[ $? = 3 ] || { cat out; return 1; }
	[ "$(cat local/both)" = mine ] &&
		[ "$(cat "local/both.runtime-conflict-$name")" = theirs ] || return
	[ "$(cat local/d/f1)" = theirs ] && [ ! -e local/d/f2 ] &&
		[ "$(cat "$runtime/d/f5")" = mine ] || return
	$alike local "$runtime" || return
	"$sbsync" sync --json "$name" >json || { cat json; return 1; }
	grep -q '"files_synced":0' json || { cat json; return 1; }
	echo last >"$runtime/last" && chown 4321 "$runtime/last"
	"$sbsync" stop -q "$name" && [ "$(cat local/last)" = last ]
}

replaced()
{
	rm -rf local2 && cp -a tree local2
	"$sbsync" start -q --name "$name-2" $opts local2 "$there/runtime2" || return
	rm -rf "$dir/home/runtime2" && mkdir "$dir/home/runtime2" && chown 4321 "$dir/home/runtime2"
	"$sbsync" sync -q "$name-2" >out 2>&1 && return 1
	grep -q 'not the sandbox this session was started with' out || { cat out; return 1; }
	[ -e local2/d/f1 ]
}

interrupted()
{
	# A shadow that got ahead of the far side by a crash is thrown away, not believed.
	for d in "$SBSYNC_STATE_DIR"/pairs/*-shadow; do
		: >"$d/dirty"
		echo ghost >"$d/tree/ghost"
	done
	rm -rf back2
	"$sbsync" mirror -q $opts "$there/far" back2 && $alike "$far" back2 && [ ! -e back2/ghost ]
}

all()
{
	check "$1: a first push, then nothing to do" mirrors
	check "$1: edits, diff first" edits
	check "$1: a pull, and changes after it" pulls
	check "$1: a session both ways, with a conflict" session
	check "$1: another sandbox in its place is refused" replaced
	check "$1: after a crash the shadow is made anew" interrupted
	rm -rf want tree2 back back2 local local2
}

# The root is a file system of its own, in the server's mount namespace only; the user's home in it,
# at its own path, is noexec.
busybox_root='mount -t tmpfs -o mode=755 none /mnt && j=/mnt/jail &&
	mkdir -p $j/bin $j/dev "$j$0/home" && cp "$(command -v busybox)" $j/bin/busybox &&
	for l in $(ldd $j/bin/busybox 2>/dev/null | grep -o "/[^ ]*"); do
		mkdir -p $j$(dirname $l) && cp $l $j$l
	done
	chroot $j /bin/busybox --install -s /bin && mknod -m 666 $j/dev/null c 1 3 &&
	mount --bind "$0/home" "$j$0/home" && mount -o remount,bind,noexec "$j$0/home" &&
	chmod -R go+rX $j/bin'
if place busybox "$busybox_root" 'ChrootDirectory /mnt/jail'; then
	all "busybox alone"
else
	[ $? = 77 ] || not_ok "a busybox-only server starts" "$why"
	skip "busybox alone in a root" "${why:-it does not start}"
fi

gnu='mount --bind "$0/home" "$0/home" && mount -o remount,bind,noexec "$0/home" &&
	mkdir -p "$0/bin" &&
	for p in sh ls id rm rmdir mkdir chmod uname head gzip cksum mv find env cat tar date \
		printf stat readlink xargs touch; do
		ln -sf "$(command -v $p)" "$0/bin/$p"
	done
	for d in /var/tmp /dev/shm; do mount -t tmpfs -o noexec,mode=1777 none $d; done'
if place gnu "$gnu" 'SetEnv TMPDIR=@DIR@/home PATH=@DIR@/bin'; then
	all "GNU tools"
else
	[ $? = 77 ] || not_ok "a server without a place for programs starts" "$why"
	skip "GNU tools" "${why:-it does not start}"
fi
finish
