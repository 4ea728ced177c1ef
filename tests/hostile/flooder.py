#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A remote shell (sbsync --rsh) whose far side tells the largest lie the wire has room for.

  flooder.py CASE HOST COMMAND
  flooder.py --make CASE

It is a whole agent of its own, so what it announces need not be anywhere. $HOSTILE_TOLD is a file
that appears once the lie is out. Lies that take a while to think of are made beforehand, with
--make, and lie in $HOSTILE_LIES.
"""
import pickle
import os
import re
import struct
import sys
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
from wire import *  # noqa: E402

EMPTY = bytes.fromhex("99aa06d3014798d86001c324468d497f")
BLOB = 512 << 10


def digest(data):
    p = Proof()
    p.add(data)
    return p.payload()[16:]


def seal(data):
    return data + struct.pack("<Q", XX.XXH3_64bits(data, len(data)))


def record(kind, mode, mtime, size, dig, name):
    return struct.pack("<BHqQ", kind, mode, mtime, size) + dig + struct.pack("<H", len(name)) + name


def fronted(names, before=b""):
    """Names, each without what it has in common with the one before."""
    out = []
    for n in names:
        same = len(os.path.commonprefix([before, n]))
        out.append(varint(same) + text(n[same:]))
        before = n
    return b"".join(out)


class Tree:
    """Directories that all hold the same: cheap to say, dear to take."""

    def __init__(self, dirs, files, size=0, dig=EMPTY, depth=1, name=b"d"):
        names = [b"%s%07d" % (name, i) for i in range(dirs)]
        inner = [b"f%06d" % i for i in range(files)]
        col = lambda data: struct.pack("<Q", len(data)) + data
        leaf = digest(b"".join(record(2, 0o644, 0, size, dig, n) for n in inner))
        for _ in range(depth - 1):
            leaf = digest(record(1, 0o755, 0, 0, leaf, b"x" * 255))
        root = digest(b"".join(record(1, 0o755, 0, 0, leaf, n) for n in names))
        self.id = digest(root + bytes(16))
        self.count = dirs * (depth - 1 + 1) + dirs * files
        entries = self.count
        counts = varint(dirs) + (varint(1) * dirs) * (depth - 1) + varint(files) * dirs
        out = b"SBMT\x01\x00" + varint(entries) + varint(1 + dirs * depth) + varint(0)
        out += varint(0o755) + svarint(0)
        out += col(counts)
        out += col(
            fronted(names) + fronted([b"x" * 255]) * dirs * (depth - 1) + fronted(inner) * dirs
        )
        # The first of each type brings its mode, the others have the same.
        kinds = b"\x01" + b"\x21" * (dirs * depth - 1)
        kinds += b"\x02" + b"\x22" * (dirs * files - 1) if files else b""
        out += col(kinds)
        out += col(varint(0o755) + (varint(0o644) if files else b""))
        out += col(b"\0" * entries)
        out += col(varint(size) * (dirs * files))
        out += col(dig * (dirs * files))
        out += col(b"") * 3
        out = seal(out)
        self.raw, self.z = len(out), compress(out, 1)


def changes():
    """The base that the controller has is known; what is new is all else there can be."""
    dirs, files = 16384, 512
    meta = varint(0o644) + svarint(0) + varint(0)
    names = [b"d0000000"] + [b"d0000000/f%03d" % i for i in range(files)]
    inner = b"".join(
        b"\x0a" + fronted([n], b) + meta for b, n in zip(names, names[1:])
    )
    rows, before = [], b""
    for i in range(dirs):
        name = b"d%07d" % i
        rows.append(b"\x01" + fronted([name], before) + varint(0o755) + svarint(0) + inner)
        before = name + b"/f%03d" % (files - 1)
    rows = b"".join(rows)
    return seal(b"SBDF\x01" + varint(dirs * (files + 1)) + rows)


def falling(n=300_000):
    """A listing in which each name goes before all that were there."""
    return varint(n) + b"".join(
        b"\x02" + text(b"%08d" % (n - i)) + struct.pack("<H", 0o644) + svarint(0) + EMPTY + b"\0"
        for i in range(n)
    )


MANY = 8_000_000
TREES = {
    "honest": lambda: Tree(1, 1),
    "manifest": lambda: Tree(16384, 512),
    "empties": lambda: Tree(2000, 450),
    "dirs": lambda: Tree(250000, 0),
    "deep": lambda: Tree(1, 200000, depth=4000),
    "data": lambda: Tree(1, 1, 6 << 30, b"q" * 16),
    "rows": lambda: Tree(1, 1, 100, b"q" * 16),
    "data-end": lambda: Tree(1, 1, 100, b"q" * 16),
    # All hole: the file costs nothing to send, and 60 GiB to hash.
    "sparse": lambda: Tree(1, 1, 60 << 30, b"q" * 16),
    "patches": lambda: Tree(200, 500, 64, b"q" * 16),
    # An old version of the file that a push brings.
    "old": lambda: Tree(1, 1, 150000, b"q" * 16),
}
BLOB_LIES = {
    "changes": changes,
    "list": falling,
    "skipped": lambda: varint(MANY) + (text(b"a") + b"\x01") * MANY,
    "skipped-tail": lambda: varint(1) + text(b"a") + b"\x01" + bytes(200 << 20),
    "have": lambda: varint(MANY) + (b"h" * 16 + b"\x01") * MANY,
    "need": lambda: varint(MANY) + text(b"d0000000/f000000") * MANY,
    "result": lambda: varint(0) * 5
    + b"i" * 16
    + varint(MANY)
    + (text(b"d0000000/f000000") + b"\0") * MANY,
}


class Packed:
    def __init__(self, data):
        self.raw, self.z = len(data), compress(data, 1)


def lie(case):
    """The tree or the blob of a case, made once."""
    path = os.path.join(os.environ["HOSTILE_LIES"], case)
    if not os.path.exists(path):
        made = TREES[case]() if case in TREES else Packed(BLOB_LIES[case]())
        with open(path + ".new", "wb") as f:
            pickle.dump(made, f)
        os.rename(path + ".new", path)
    with open(path, "rb") as f:
        return pickle.load(f)


class Far:
    def __init__(self, case):
        self.case = case
        self.proof = Proof()
        self.out = sys.stdout.buffer
        self.files = []

    # ---- the wire ----

    def raw(self, data):
        self.out.write(data)
        self.out.flush()

    def send(self, kind, payload=b""):
        f = frame(kind, payload)
        self.proof.add(f)
        self.raw(f)

    def send_z(self, kind, raw, z):
        z = struct.pack("<QQ", raw, len(z)) + z
        for i in range(0, len(z), BLOB):
            self.send(kind, bytes([i + BLOB >= len(z)]) + z[i : i + BLOB])

    def blob(self, kind, data):
        self.send_z(kind, len(data), compress(data, 1))

    def packed(self, kind, p):
        """A lie, its proof, and no more. Its first bytes may be the last that are listened to."""
        self.told()
        self.send_z(kind, p.raw, p.z)
        self.prove()
        self.wait()

    def prove(self):
        self.send(PROOF, self.proof.payload())

    def told(self):
        open(os.environ["HOSTILE_TOLD"], "w").close()

    def read(self, n):
        data = sys.stdin.buffer.read(n)
        if len(data) != n:
            os._exit(0)
        return data

    def next(self):
        """The next message: blobs whole and unpacked, life signs and proofs left out."""
        z = b""
        while True:
            n, kind = struct.unpack("<IB", self.read(5))
            p = self.read(n)
            if kind in (PING, PROOF):
                continue
            if kind not in BLOBS and kind != 29:
                return kind, p
            z += p[1:]
            if p[0]:
                return kind, decompress(z[16:], struct.unpack("<Q", z[:8])[0])

    # ---- what is honest ----

    def scan(self, count=0, id=bytes(16), flags=0):
        self.send(
            SCAN,
            struct.pack("<I", flags)
            + varint(count)
            + varint(0)
            + id
            + self.identity
            + varint(1 << 40)
            + svarint(0)
            + struct.pack("<H", 0o755)
            + svarint(0)
            + varint(0),
        )

    def empty_id(self):
        return digest(digest(b"") + bytes(16))

    def wait(self):
        """Nothing more to say; the other side has to end by itself."""
        self.told()
        while os.read(0, 65536):
            pass
        os._exit(0)

    def run(self, command):
        found = re.findall(r" ([0-9a-f]{24}) [0-9a-f]{32} (\d+)", command)
        if not found or self.case.startswith("shell-"):
            return self.shell(command)
        self.raw(b"\nsbsync:%s:ready\n" % found[-1][0].encode() + MARKER)
        if self.case == "welcome":
            self.send(WELCOME, struct.pack("<III", 1, 1, 0) + text(b"x" * (4 << 20)))
            self.wait()
        if self.case == "ping":
            self.flood(frame(PING, b"x" * (4 << 20)))
        if self.case == "error":
            self.send(ERROR, svarint(-1) + svarint(5) + text(b"x" * (4 << 20)))
            self.wait()
        self.send(WELCOME, struct.pack("<III", 1, 1, 1) + text(b"flooder"))
        while True:
            kind, p = self.next()
            if kind == BEGIN:
                at = 4
                while p[at] & 0x80:
                    at += 1
                self.identity = p[at + 17 : at + 33]
                self.base = p[at + 33 : at + 49]
            elif kind == RULES:
                if self.case in TREES:
                    self.offer(lie(self.case))
                else:
                    getattr(self, "on_" + self.case.replace("-", "_"))()
            elif kind in (END, BYE, REMEMBER):
                pass
            else:
                self.other(kind, p)

    def flood(self, data):
        self.told()
        while True:
            self.raw(data)

    def other(self, kind, p):
        name = "%s_%d" % (self.case.replace("-", "_"), kind)
        if hasattr(self, name):
            getattr(self, name)(p)
        elif kind == GETTREE and not hasattr(self, "tree"):
            self.wait()
        elif kind == GETTREE:
            self.send_z(MANIFEST, self.tree.raw, self.tree.z)
            self.prove()
            self.told()
        elif kind == SIGREQ:
            self.blob(SIGS, b"\0" * p[0])
            self.prove()
        elif kind == COMMIT and hasattr(self, self.case.replace("-", "_") + "_commit"):
            getattr(self, self.case.replace("-", "_") + "_commit")()

    def offer(self, tree):
        """A tree, taken whole: where there are hard links no descent is made."""
        self.tree = tree
        if tree.count > 1 << 20:
            self.told()  # the number alone may end it
        self.scan(tree.count, tree.id, 1 << 6)
        self.prove()
        self.told()

    # ---- lies of SCAN and of what follows it ----

    def on_scan(self):
        self.told()
        self.scan(2**64 - 1, b"i" * 16)
        self.prove()
        self.wait()

    def on_proof(self):
        self.scan()
        self.flood(frame(PROOF, b"x" * (4 << 20)))

    def on_changes(self):
        self.told()
        self.scan(16384 * 513, b"i" * 16, 1)
        self.packed(CHANGES, lie("changes"))

    def on_list(self):
        self.scan(1_000_000, b"i" * 16)
        self.prove()

    def list_19(self, p):
        self.packed(MANIFEST, lie("list"))

    def on_list_deep(self):
        self.scan(1_000_000, b"i" * 16)
        self.prove()

    def list_deep_19(self, p):
        self.told()
        self.blob(
            MANIFEST,
            varint(1)
            + b"\x01"
            + text(b"x" * 255)
            + struct.pack("<H", 0o755)
            + svarint(0)
            + b"e" * 16
            + varint(1),
        )
        self.prove()

    def on_skipped(self):
        self.scan(0, self.empty_id(), 4)
        self.packed(SKIPPED, lie("skipped"))

    def on_shown(self):
        """Not too many to be believed, but to be printed."""
        n = 5000
        self.scan(0, self.empty_id(), 4)
        self.blob(SKIPPED, varint(n) + b"".join(text(b"a%05d" % i) + b"\x02" for i in range(n)))
        self.prove()
        self.told()

    def on_skipped_tail(self):
        self.scan(0, self.empty_id(), 4)
        self.packed(SKIPPED, lie("skipped-tail"))

    def on_have(self):
        self.scan(0, self.empty_id(), 2)
        self.packed(HAVE, lie("have"))

    # ---- lies of the data ----

    def data_22(self, p):
        head = struct.pack("<100s8s8s8s12s12s8s1s100s6s2s247x", b"d0000000/f000000", b"0000644\0",
                           b"0000000\0", b"0000000\0", b"60000000000\0"[:12], b"00000000000\0",
                           b" " * 8, b"0", b"", b"ustar\0", b"00")
        head = head[:148] + b"%06o\0 " % sum(head) + head[156:]
        self.send(DATA, b"\0" + struct.pack("<I", 512) + head)
        z = compress(bytes(4 << 20))
        block = b"\1" + struct.pack("<I", 4 << 20) + z
        self.told()
        while True:
            self.send(DATA, block)

    def rows_22(self, p):
        self.told()
        while True:
            self.send(ROWS, b"\0" * (4 << 20))

    def data_end_22(self, p):
        self.flood(frame(DATA_END))

    def pax(self, name, size, attrs):
        recs = b""
        for k, v in attrs:
            body = b" SCHILY.xattr.user.sbsync.%s=%s\n" % (k, v)
            n = len(body) + 1
            while len(b"%d" % n) + len(body) != n:
                n += 1
            recs += b"%d" % n + body
        return (
            self.ustar(b"PaxHeader/x", len(recs), b"x")
            + recs
            + bytes(-len(recs) % 512)
            + self.ustar(name, size, b"0")
        )

    def ustar(self, name, size, kind):
        head = struct.pack("<100s8s8s8s12s12s8s1s100s6s2s247x", name, b"0000644\0", b"0000000\0",
                           b"0000000\0", b"%011o\0" % size, b"00000000000\0", b" " * 8, kind, b"",
                           b"ustar\0", b"00")
        return head[:148] + b"%06o\0 " % sum(head) + head[156:]

    def sparse_22(self, p):
        runs = varint(60 << 30) + varint(0)
        tar = self.pax(
            b"d0000000/f000000",
            len(runs),
            [(b"kind", b"sparse"), (b"size", b"%d" % (60 << 30))],
        )
        tar += runs + bytes(-len(runs) % 512) + bytes(1024)
        self.send(ROWS, b"\0")
        self.send(DATA, b"\0" + struct.pack("<I", len(tar)) + tar)
        self.send(DATA_END)
        self.prove()
        self.wait()

    def patches_22(self, p):
        # A patch on what nobody has, for each of them.
        count, at = 0, 0
        self.told()
        body = b"x" * 8
        for d in range(200):
            tar = b"".join(
                self.pax(
                    b"d%07d/f%06d" % (d, f),
                    len(body),
                    [(b"kind", b"patch"), (b"size", b"64"), (b"base", b"ab" * 16)],
                )
                + body
                + bytes(504)
                for f in range(500)
            )
            self.send(ROWS, b"\0" * 500)
            self.send(DATA, b"\1" + struct.pack("<I", len(tar)) + compress(tar, 1))
        self.send(DATA, b"\0" + struct.pack("<I", 1024) + bytes(1024))
        self.send(DATA_END)
        self.prove()

    # ---- lies to a push ----

    def on_sigs(self):
        self.push_tree()

    def push_tree(self):
        """What it has is an old version of the file that comes."""
        self.offer(lie("old"))

    def sigs_23(self, p):
        z = bomb(1 << 30)
        self.send_z(SIGS, 1 << 30, z)
        self.prove()
        self.wait()

    def on_need(self):
        self.push_tree()

    def need_commit(self):
        self.packed(NEED, lie("need"))

    def on_need_twice(self):
        self.push_tree()
        self.asked = 0

    def need_twice_commit(self):
        self.asked += 1
        self.blob(NEED, varint(1) + text(b"d0000000/f000000"))
        self.prove()
        self.told()

    def on_result(self):
        self.push_tree()

    def result_commit(self):
        self.packed(RESULT, lie("result"))

    def finish_push(self, counts=(1, 0, 0, 0, 1), id=None, rows=b"\0"):
        self.blob(RESULT, b"".join(map(varint, counts)) + (id or b"i" * 16) + rows)
        self.prove()
        self.told()

    def on_result_id(self):
        self.push_tree()

    def result_id_commit(self):
        self.finish_push()

    def on_result_counts(self):
        self.push_tree()

    def result_counts_commit(self):
        self.finish_push((2**64 - 1, 0, 0, 0, 0), rows=varint(1) + text(b"d0000000") + b"\1")

    def on_result_early(self):
        self.push_tree()

    def result_early_26(self, p):
        self.send_z(MANIFEST, self.tree.raw, self.tree.z)
        self.prove()
        self.finish_push()

    # ---- a watch that never rests ----

    def on_changed(self):
        self.scan(0, self.empty_id())
        self.prove()

    def changed_commit(self):
        self.blob(RESULT, varint(0) * 5 + self.empty_id() + varint(0))
        self.prove()

    def changed_29(self, p):
        with open(os.environ["HOSTILE_TOLD"], "ab") as f:
            f.write(b".")
        self.send(73, b"\0")

    def changed_30(self, p):
        self.send(74, b"\0")
        self.prove()

    # ---- a machine without an agent ----

    def shell(self, command):
        nonce = re.findall(r" ([0-9a-f]{24}) ", command)[-1].encode()
        say = lambda s: self.raw(b"\nsbsync:%s:%s\n" % (nonce, s))
        if "agent-" in command and "each()" in command:
            say(b"failed run 126 no")
            return
        if "find . -xdev" in command:
            say(b"list printf 1700000000 gnu")
            self.raw(b"d 755 0 1.0 1.0 1 \0\0")
            getattr(self, self.case.replace("-", "_"))()
            say(b"end 0")
            return
        if "tar" in command:
            say(b"tar")
            getattr(self, self.case.replace("-", "_") + "_tar")()
            return
        say(b"none")

    def shell_count(self):
        self.told()
        rows = b"".join(b"f 644 0 1.0 1.0 2 f%07d\0\0" % i for i in range(10000))
        for k in range(3000):
            self.raw(rows.replace(b" f", b" %04d" % k))

    def shell_depth(self):
        # Just not too deep: refused it would be at once.
        path = b""
        for i in range(4000):
            path += b"/d" if path else b"d"
            self.raw(b"d 755 0 1.0 1.0 2 " + path + b"\0\0")
        self.told()

    def shell_mode(self):
        """Nothing but the root, which is 0755."""

    def shell_huge(self):
        self.told()
        self.raw(b"f 644 %d 1.0 1.0 2 huge\0\0" % (1 << 50))

    def shell_huge_tar(self):
        self.endless(1 << 50)

    def shell_endless(self):
        self.told()
        self.raw(b"f 644 %d 1.0 1.0 2 huge\0\0" % (8 << 30))

    def shell_endless_tar(self):
        self.endless(8 << 30)

    def endless(self, size):
        self.told()
        self.raw(self.tar(b"./huge", size))
        zero = bytes(1 << 20)
        while True:
            self.raw(zero)

    def tar(self, name, size):
        recs = b""
        for k, v in ((b"size", b"%d" % size), (b"path", name)):
            body = b" %s=%s\n" % (k, v)
            n = len(body) + 1
            while len(b"%d" % n) + len(body) != n:
                n += 1
            recs += b"%d" % n + body
        out = self.ustar(b"./PaxHeaders/x", len(recs), b"x") + recs + bytes(-len(recs) % 512)
        head = self.ustar(name, 0, b"0")
        head = head[:136] + b"00000000001\0" + b" " * 8 + head[156:]
        return out + head[:148] + b"%06o\0 " % sum(head) + head[156:]

    def shell_sparse(self):
        self.raw(b"f 644 %d 1.0 1.0 2 huge\0\0" % (6 << 30))

    def shell_sparse_tar(self):
        # 6 GiB of hole in one old GNU sparse header.
        self.told()
        size = 6 << 30
        h = bytearray(self.ustar(b"./huge", 512, b"S"))
        h[257:265] = b"ustar  \0"
        h[136:148] = b"00000000001\0"
        h[345:] = bytes(167)
        h[386:398] = b"%011o\0" % (size - 512)
        h[398:410] = b"%011o\0" % 512
        h[483:495] = b"%011o\0" % size
        h[148:156] = b" " * 8
        h[148:156] = b"%06o\0 " % sum(h)
        self.raw(bytes(h) + b"x" * 512 + bytes(1024))


if __name__ == "__main__":
    if sys.argv[1] == "--make":
        if sys.argv[2] in TREES or sys.argv[2] in BLOB_LIES:
            lie(sys.argv[2])
        sys.exit(0)
    try:
        Far(sys.argv[1]).run(sys.argv[-1])
    except (BrokenPipeError, ConnectionResetError, ValueError):
        os._exit(0)
