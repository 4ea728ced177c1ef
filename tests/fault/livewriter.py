#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A user of one tree, for live.py: edits files at random and knows exactly what it replaced.

What it puts in place of something else it exchanges with it, what it deletes it moves out of the
tree first, so that it can look at what it had in its hands. So it can tell which versions it made
(complete ones only) and which it ended, whatever a sync does to the tree in the same moment.

As a program it is driven by lines on stdin: "go" begins, "pause" ends what it is at and answers
with one line of JSON: all that happened since the last pause.
"""
import ctypes
import errno
import hashlib
import json
import os
import random
import select
import shutil
import stat
import sys
import time

STAGE = b".sbsync-stage"
IGNORED = b".ign"
NAMES = [b"n%d" % i for i in range(6)]
DEPTH = 3

libc = ctypes.CDLL(None, use_errno=True)
NOREPLACE, EXCHANGE = 1, 2


def rename(a, b, flags):
    if libc.renameat2(-100, a, -100, b, flags) < 0:
        n = ctypes.get_errno()
        raise OSError(n, os.strerror(n), a)


def version(data, link=False):
    return hashlib.sha1((b"link " if link else b"file ") + data).hexdigest()[:16]


def is_file(path):
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def version_at(path):
    """The version that a path holds; None: it holds none (a directory, a fifo, nothing)."""
    try:
        st = os.lstat(path)
        if stat.S_ISLNK(st.st_mode):
            return version(os.readlink(path), True)
        if not stat.S_ISREG(st.st_mode):
            return None
        with open(path, "rb") as f:
            return version(f.read())
    except OSError:
        return None


def walk(top):
    """Every path below `top`, without the stage; what cannot be entered is left out."""
    for d, dirs, files in os.walk(top):
        if STAGE in dirs:
            dirs.remove(STAGE)
        for n in dirs + files:
            yield os.path.join(d, n)


class Writer:
    def __init__(self, root, tmp, side, areas, seed):
        self.root, self.tmp, self.side = os.fsencode(root), os.fsencode(tmp), side
        self.areas = [os.fsencode(a) for a in areas]
        self.r = random.Random(seed)
        self.n = 0
        self.made, self.ended, self.touched, self.out = [], [], [], []
        self.seen = []  # by the step that is under way
        os.makedirs(self.tmp, exist_ok=True)

    # -- what happened ------------------------------------------------------------------------

    def report(self):
        """Looks at what was taken out of the tree only now: a sync may have been at it."""
        for x in self.out:
            self.end_below(x)
            discard(x)
        got = {"made": self.made, "ended": self.ended, "touched": self.touched}
        self.made, self.ended, self.touched, self.out = [], [], [], []
        return got

    def end_below(self, x):
        for p in [x] + list(walk(x)):
            v = version_at(p)
            if v:
                self.ended.append(v)

    def spare(self):
        self.n += 1
        return os.path.join(self.tmp, b"%d.%d" % (os.getpid(), self.n))

    # -- what there is to do ------------------------------------------------------------------

    def dirs(self):
        got = []
        for a in self.areas:
            got.append(os.path.join(self.root, a))
            for p in walk(got[-1]):
                if os.path.isdir(p) and not os.path.islink(p):
                    if p.count(b"/") - self.root.count(b"/") <= DEPTH:
                        got.append(p)
        return sorted(got)

    def some_path(self, beside=None):
        """A name in some directory, there or not; `beside`: in the same area as that."""
        dirs = self.dirs()
        if beside:
            area = beside[len(self.root) + 1:].split(b"/")[0]
            dirs = [d for d in dirs if d[len(self.root) + 1:].split(b"/")[0] == area]
        d = self.r.choice(dirs)
        return self.look(os.path.join(d, self.r.choice(NAMES)))

    def look(self, p):
        self.seen.append(p.decode())
        return p

    def some_file(self):
        """A file that is there, also one that a sync put beside another."""
        all_ = []
        for a in self.areas:
            for p in walk(os.path.join(self.root, a)):
                if not p.endswith(IGNORED) and is_file(p):
                    all_.append(p)
        return self.look(self.r.choice(sorted(all_))) if all_ else None

    def text(self, size=None):
        self.n += 1
        head = b"%s %d %d\n" % (self.side.encode(), self.n, self.r.getrandbits(40))
        size = size if size is not None else self.r.choice((0, 10, 300, 300, 300, 5000, 70000))
        line = b"line of %d\n" % (self.n % 7)
        return head + (line * (size // len(line) + 1))[:size]

    def new_file(self):
        t, data = self.spare(), self.text()
        with open(t, "wb") as f:
            f.write(data)
        os.chmod(t, self.r.choice((0o644, 0o644, 0o755, 0o600)))
        return t, version(data)

    def put(self, t, v, p):
        """`t` takes the place of what is at `p`, which is kept to look at."""
        for _ in range(20):
            try:
                rename(t, p, EXCHANGE)
                self.out.append(t)
                break
            except FileNotFoundError:
                try:
                    rename(t, p, NOREPLACE)
                    break
                except FileExistsError:
                    continue
        else:
            raise OSError(errno.EBUSY, "it comes and goes", p)
        if v:
            self.made.append((v, p.decode()))

    def replace(self):
        t, v = self.new_file()
        self.put(t, v, self.some_path() if self.r.random() < 0.4 else self.some_file() or
                 self.some_path())

    def new_link(self):
        t = self.spare()
        target = b"to %d" % self.r.getrandbits(40)
        os.symlink(target, t)
        self.put(t, version(target, True), self.some_path())

    def new_dir(self):
        t = self.spare()
        os.mkdir(t)
        for n in self.r.sample(NAMES, 2):
            data = self.text(20)
            with open(os.path.join(t, n), "wb") as f:
                f.write(data)
            self.made.append((version(data), "in a directory"))
        p = self.some_path()
        try:
            self.put(t, None, p)
        except OSError:
            self.out.append(t)  # with what is in it
            raise

    def in_place(self):
        """Writes into the file itself, so into all its names."""
        p = self.some_file()
        if not p:
            return
        fd = os.open(p, os.O_RDWR | os.O_NOFOLLOW)
        try:
            st = os.fstat(fd)
            old = b""
            while True:
                b = os.pread(fd, 1 << 20, len(old))
                if not b:
                    break
                old += b
            how = self.r.randrange(3)
            head = self.text(0)
            if how == 0:  # all of it
                data = self.text()
                os.ftruncate(fd, 0)
                os.pwrite(fd, data, 0)
            elif how == 1:  # as long as before, where that is possible
                data = head + old[len(head):]
                os.pwrite(fd, head, 0)
            else:
                data = old + head
                os.pwrite(fd, head, len(old))
            self.ended.append(version(old))
            now = os.lstat(p)
            # A sync that took the file away first has the old version of it.
            if (now.st_dev, now.st_ino) == (st.st_dev, st.st_ino):
                self.made.append((version(data), p.decode()))
        finally:
            os.close(fd)

    def delete(self):
        p = self.some_file() if self.r.random() < 0.8 else self.some_path()
        if p:
            t = self.spare()
            rename(p, t, NOREPLACE)
            self.out.append(t)

    def move(self):
        p = self.some_file() if self.r.random() < 0.6 else self.some_path()
        if p:
            rename(p, self.some_path(beside=p), NOREPLACE)

    def link(self):
        p = self.some_file()
        if p:
            os.link(p, self.some_path(beside=p))

    def chmod(self):
        p = self.some_file()
        if not p:
            return
        fd = os.open(p, os.O_PATH | os.O_NOFOLLOW)
        try:
            if stat.S_ISREG(os.fstat(fd).st_mode):  # a sync may have put a directory there
                os.chmod("/proc/self/fd/%d" % fd, self.r.choice((0o644, 0o755, 0o600, 0o444)))
        finally:
            os.close(fd)

    def touch(self):
        p = self.some_file()
        if p:
            os.utime(p)

    OPS = (
        [(replace, 8), (in_place, 6), (delete, 3), (move, 3), (new_dir, 2), (new_link, 1)]
        + [(chmod, 1), (touch, 1), (link, 1)]
    )
    LINKS = [(link, 6), (in_place, 5), (replace, 3), (delete, 3), (chmod, 3), (move, 2), (touch, 1)]

    def step(self, links=False):
        ops = self.LINKS if links else self.OPS
        op = self.r.choices([o for o, _ in ops], [w for _, w in ops])[0]
        begin = time.monotonic()
        self.seen = []
        try:
            op(self)
            how = "done"
        except OSError as e:
            how = e.strerror  # a sync, or a mode, was in the way
        self.touched.append((begin, time.monotonic(), op.__name__, how, self.seen))


def discard(x):
    if os.path.isdir(x) and not os.path.islink(x):
        for d, _, _ in os.walk(x):
            os.chmod(d, 0o700)
        shutil.rmtree(x, ignore_errors=True)
    elif os.path.lexists(x):
        os.unlink(x)


def main():
    if len(sys.argv) > 7:
        os.setgroups([])
        os.setresgid(*[int(sys.argv[7])] * 3)
        os.setresuid(*[int(sys.argv[7])] * 3)
    w = Writer(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4].split(","), sys.argv[5])
    links = sys.argv[6] == "links"
    going = False
    pace = random.Random(sys.argv[5])
    while True:
        if select.select([0], [], [], 0 if going else None)[0]:
            word = os.read(0, 100).decode().split()
            if not word:
                return
            going = word[-1] == "go"
            if not going:
                os.write(1, json.dumps(w.report()).encode() + b"\n")
            continue
        w.step(links)
        time.sleep(pace.choice((0, 0.001, 0.004, 0.02)))


if __name__ == "__main__":
    main()
