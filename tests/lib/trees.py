#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trees for tests.

  trees.py odd DIR [--user]       a tree of every odd thing a sync must carry
  trees.py retype DIR             change the odd tree: types, names, case, modes
  trees.py random DIR SEED [N]    a random tree of N entries
  trees.py mutate DIR SEED [N]    N random edits: content, add, delete, rename, chmod, touch, retype
  trees.py same A B               exit 1 and tell the first differences, unless A and B are equal in
                                  names, types, modes, mtimes (ns), contents, targets and hard links
  trees.py sparse A B             B has no more blocks than A (plus a little) for files with holes
"""
import hashlib
import os
import random
import stat
import sys

OLD = 1_600_000_000_123_456_789


def put(path, data=b"x", mode=0o644, mtime=OLD):
    with open(path, "wb") as f:
        f.write(data)
    os.chmod(path, mode)
    os.utime(path, ns=(mtime, mtime))


def odd(top, user=False):
    b = os.fsencode(top)
    os.makedirs(b, exist_ok=True)
    j = lambda *p: os.path.join(b, *p)
    names = [
        b"plain",
        b"with space",
        b"new\nline",
        b"tab\tname",
        b"\xff\xfe invalid utf8",
        "ünïcode".encode(),
        b"-dash",
        b"*glob?[x]",
        b"back\\slash",
        b"quote'\"`$HOME;|&",
        b"\x01\x02ctl",
        b"n" * 255,
        b".hidden",
        b"#comment",
        b"!bang",
        b"trailing ",
        b"dot.",
    ]
    os.makedirs(j(b"names"))
    for n in names:
        put(j(b"names", n), n)
        os.makedirs(j(b"names", n[:200] + b".d"))
        put(j(b"names", n[:200] + b".d", b"in"), b"inside")
    os.makedirs(j(b"empty dir", b"deeper"))
    put(j(b"zero"), b"")
    put(j(b"readonly"), b"ro", 0o444)
    put(j(b"noaccess"), b"na", 0o000 if not user else 0o400)
    put(j(b"exec"), b"#!/bin/sh\n", 0o755)
    put(j(b"setuid"), b"s", 0o4755)
    put(j(b"future"), b"f", mtime=4_000_000_000_000_000_001)
    put(j(b"past"), b"p", mtime=-1_000_000_000 + 5)
    put(j(b"ns"), b"n", mtime=1_700_000_000_000_000_001)
    os.makedirs(j(b"rodir"))
    put(j(b"rodir", b"file"), b"in a read-only directory")
    os.makedirs(j(b"rodir", b"sub"))
    put(j(b"rodir", b"sub", b"f"), b"deeper")
    os.makedirs(j(b"links"))
    for n, t in [
        (b"rel", b"../plain"),
        (b"dangling", b"nowhere"),
        (b"abs", b"/etc/passwd"),
        (b"out", b"../../../../etc"),
        (b"self", b"self"),
        (b"dir", b"../names"),
        (b"long", b"x" * 4000),
        (b"odd", b"a\nb\xff"),
    ]:
        os.symlink(t, j(b"links", n))
        os.utime(j(b"links", n), ns=(OLD, OLD + 7), follow_symlinks=False)
    put(j(b"hard1"), b"linked")
    os.link(j(b"hard1"), j(b"hard2"))
    os.makedirs(j(b"hd"))
    os.link(j(b"hard1"), j(b"hd", b"hard3"))
    with open(j(b"sparse"), "wb") as f:
        f.truncate(8 << 20)
        f.seek(3 << 20)
        f.write(b"data in the middle")
    with open(j(b"allhole"), "wb") as f:
        f.truncate(1 << 20)
    put(j(b"big"), random.Random(7).randbytes(3 << 20))
    put(j(b"text"), b"line of text\n" * 200000)
    put(j(b"exactly1m"), b"m" * (1 << 20))
    put(j(b"1m and one"), b"m" * ((1 << 20) + 1))
    os.makedirs(j(b"case"))
    put(j(b"case", b"File"), b"upper")
    put(j(b"case", b"file"), b"lower")
    put(j(b"d-e"), b"sorts before d/e")
    os.makedirs(j(b"d"))
    put(j(b"d", b"e"), b"sorts after d-e")
    put(j(b"d.e"), b"and this")
    # Deeper than PATH_MAX.
    fd = os.open(j(b""), os.O_RDONLY)
    cwd = os.open(".", os.O_RDONLY)
    os.fchdir(fd)
    for _ in range(24):
        os.mkdir(b"d" * 200)
        os.chdir(b"d" * 200)
    put(b"bottom", b"deep")
    os.fchdir(cwd)
    os.mkfifo(j(b"fifo"))
    for d in [b"rodir/sub", b"rodir"]:
        os.utime(j(d), ns=(OLD, OLD + 11))
        os.chmod(j(d), 0o555)
    os.utime(j(b"empty dir", b"deeper"), ns=(OLD, OLD + 3))
    os.utime(j(b"empty dir"), ns=(OLD, OLD + 5))


def retype(top):
    b = os.fsencode(top)
    j = lambda *p: os.path.join(b, *p)
    os.chmod(j(b"rodir"), 0o755)
    os.chmod(j(b"rodir", b"sub"), 0o755)
    os.unlink(j(b"zero"))
    os.makedirs(j(b"zero", b"was", b"file"))
    put(j(b"zero", b"was", b"file", b"x"), b"now a directory")
    os.unlink(j(b"names", b"plain.d", b"in"))
    os.rmdir(j(b"names", b"plain.d"))
    put(j(b"names", b"plain.d"), b"was a directory")
    os.unlink(j(b"links", b"rel"))
    put(j(b"links", b"rel"), b"was a link")
    os.unlink(j(b"exec"))
    os.symlink(b"readonly", j(b"exec"))
    os.unlink(j(b"links", b"dir"))
    os.makedirs(j(b"links", b"dir"))
    os.rename(j(b"names", b"tab\tname"), j(b"names", b"TAB\tname"))
    os.rename(j(b"case", b"File"), j(b"case", b"FILE"))
    os.rename(j(b"hd"), j(b"hd moved"))
    os.rename(j(b"big"), j(b"links", b"big moved"))
    os.chmod(j(b"text"), 0o600)
    os.unlink(j(b"hard2"))
    put(j(b"hard2"), b"linked")
    os.unlink(j(b"rodir", b"file"))
    put(j(b"rodir", b"sub", b"f"), b"edited", 0o400)
    with open(j(b"text"), "r+b") as f:
        f.seek(1000000)
        f.write(b"EDITED")
    for d in [b"rodir/sub", b"rodir"]:
        os.chmod(j(d), 0o555)


def listing(top):
    """path -> everything about it; walks by descriptors, so depth does not matter."""
    out, inodes = {}, {}

    def walk(fd, rel):
        for name in sorted(os.listdir(os.fsencode("/proc/self/fd/%d" % fd))):
            st = os.stat(name, dir_fd=fd, follow_symlinks=False)
            path = rel + b"/" + name if rel else name
            mode, extra = stat.S_IMODE(st.st_mode), None
            if name == b".sbsync-stage":
                extra = "STAGE LEFT BEHIND"
            if stat.S_ISDIR(st.st_mode):
                sub = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=fd)
                try:
                    walk(sub, path)
                finally:
                    os.close(sub)
                out[path] = ("dir", mode, st.st_mtime_ns, extra)
            elif stat.S_ISLNK(st.st_mode):
                out[path] = ("link", None, st.st_mtime_ns, os.readlink(name, dir_fd=fd))
            elif stat.S_ISREG(st.st_mode):
                h = hashlib.sha1()
                f = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=fd)
                while True:
                    data = os.read(f, 1 << 20)
                    if not data:
                        break
                    h.update(data)
                os.close(f)
                if st.st_nlink > 1:
                    inodes.setdefault(st.st_ino, []).append(path)
                out[path] = ("file", mode, st.st_mtime_ns, st.st_size, h.hexdigest())

    fd = os.open(top, os.O_RDONLY)
    st = os.fstat(fd)
    walk(fd, b"")
    os.close(fd)
    out[b""] = ("dir", stat.S_IMODE(st.st_mode), st.st_mtime_ns, None)
    for paths in inodes.values():
        for p in paths:
            out[p] += (tuple(paths) if len(paths) > 1 else None,)
    return out


def same(a, b):
    la, lb = listing(a), listing(b)
    bad = 0
    for p in sorted(set(la) | set(lb)):
        if la.get(p) != lb.get(p):
            bad += 1
            if bad <= 10:
                print("%r\n  %r\n  %r" % (p[:200], la.get(p), lb.get(p)))
    if bad:
        print("%d differences" % bad)
    return 1 if bad else 0


def sparse(a, b):
    for p, e in listing(a).items():
        if e[0] == "file" and e[3] >= 65536:
            x, y = (os.stat(os.path.join(os.fsencode(t), p)) for t in (a, b))
            if x.st_blocks * 512 < x.st_size // 2 and y.st_blocks > x.st_blocks + 64:
                print("%r: %d blocks became %d" % (p, x.st_blocks, y.st_blocks))
                return 1
    return 0


WORDS = (
    b"int char return if else while for struct static const void size_t buf len err path name data"
).split()


def content(r):
    k = r.random()
    if k < 0.05:
        return b""
    if k < 0.1:
        return r.randbytes(r.randint(1, 200000))
    return b" ".join(r.choices(WORDS, k=r.randint(1, 800))) + b"\n"


def random_tree(top, seed, n):
    r = random.Random(seed)
    os.makedirs(top, exist_ok=True)
    dirs = [top]
    for i in range(n):
        d = r.choice(dirs)
        p = os.path.join(d, "%s%d" % (r.choice("abcdefgh"), r.randint(0, 3 * n)))
        if os.path.lexists(p):
            continue
        k = r.random()
        if k < 0.2:
            os.mkdir(p)
            dirs.append(p)
        elif k < 0.27:
            os.symlink(r.choice(["a", "../b", "/tmp", "x/y/z"]), p)
        else:
            put(p, content(r), r.choice([0o644, 0o644, 0o755, 0o600]), OLD + r.randint(0, 10**15))


def mutate(top, seed, n):
    r = random.Random(seed)
    for _ in range(n):
        files, dirs = [], []
        for d, ds, fs in os.walk(top):
            if ".sbsync-stage" in ds:
                ds.remove(".sbsync-stage")
            dirs += [os.path.join(d, x) for x in ds if not os.path.islink(os.path.join(d, x))]
            files += [
                os.path.join(d, x)
                for x in fs + [y for y in ds if os.path.islink(os.path.join(d, y))]
            ]
        k = r.random()
        regular = [f for f in files if not os.path.islink(f)]
        if k < 0.3 and regular:
            f = r.choice(regular)
            os.chmod(f, 0o644)
            with open(f, "r+b") as h:
                h.seek(r.randint(0, max(0, os.path.getsize(f))))
                h.write(content(r)[:500])
        elif k < 0.45:
            p = os.path.join(r.choice(dirs + [top]), "new%d" % r.randint(0, 10**9))
            put(p, content(r))
        elif k < 0.55 and files:
            os.unlink(r.choice(files))
        elif k < 0.65 and files:
            os.rename(
                r.choice(files),
                os.path.join(r.choice(dirs + [top]), "moved%d" % r.randint(0, 10**9)),
            )
        elif k < 0.72 and dirs:
            d, to = r.choice(dirs), r.choice(dirs + [top])
            if not (to + "/").startswith(d + "/"):
                os.rename(d, os.path.join(to, "mdir%d" % r.randint(0, 10**9)))
        elif k < 0.78 and regular:
            os.chmod(r.choice(regular), r.choice([0o644, 0o755, 0o400]))
        elif k < 0.84 and regular:
            os.utime(r.choice(regular), ns=(OLD, OLD + r.randint(0, 10**12)))
        elif k < 0.9 and files:
            f = r.choice(files)
            os.unlink(f)
            os.mkdir(f)
            put(os.path.join(f, "inner"), content(r))
        elif k < 0.95 and dirs:
            d = r.choice(dirs)
            import shutil

            shutil.rmtree(d)
            if r.random() < 0.5:
                put(d, content(r))
        else:
            os.symlink(
                "t%d" % r.randint(0, 99),
                os.path.join(r.choice(dirs + [top]), "ln%d" % r.randint(0, 10**9)),
            )


def main(argv):
    cmd, top = argv[1], argv[2]
    if cmd == "odd":
        odd(top, "--user" in argv)
    elif cmd == "retype":
        retype(top)
    elif cmd == "same":
        return same(top, argv[3])
    elif cmd == "sparse":
        return sparse(top, argv[3])
    elif cmd == "random":
        random_tree(top, int(argv[3]), int(argv[4]) if len(argv) > 4 else 200)
    elif cmd == "mutate":
        mutate(top, int(argv[3]), int(argv[4]) if len(argv) > 4 else 20)
    else:
        sys.exit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
