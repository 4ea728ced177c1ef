# SPDX-License-Identifier: MIT
"""Trees: entries, their digests, manifests, differences and listings, as sbsync-protocol(5) has
them."""
import io
import os
import stat
import struct
import tarfile

import xxhash

from wire import Broken, Cursor, put_bytes, svarint, varint

DIR, FILE, LINK = 1, 2, 3
STAGE = b".sbsync-stage"
UNHASHED, LINKED, LEADS, SAME_MODE = 8, 4, 16, 32


def digest(data):
    return xxhash.xxh3_128(data).digest()


def order(path):
    """A directory before what is in it, and that before its neighbours."""
    return path.split(b"/") if path else []


class Entry:
    def __init__(self, type, mode, mtime, size=0, digest=bytes(16), target=None):
        self.type, self.mode, self.mtime = type, mode, mtime
        self.size, self.digest, self.target = size, digest, target
        self.leader = None
        self.inode = None

    def key(self):
        return (
            self.type,
            self.mode if self.type != LINK else 0,
            self.mtime,
            0 if self.type == DIR else self.size,
            bytes(16) if self.type == DIR else self.digest,
            self.leader,
        )


class Tree:
    """What is beneath a directory; `top` None: nothing."""

    def __init__(self, top, excluded):
        self.specials = self.hashed = 0
        self.excluded = excluded
        self.entries = {b"": Entry(DIR, 0, 0)}
        if top is not None:
            st = os.stat(top)
            self.entries[b""] = Entry(DIR, stat.S_IMODE(st.st_mode), st.st_mtime_ns)
            self.walk(top, b"")
        self.excluded = None
        self.root = self.entries[b""]
        self.children = {}
        for path in self.entries:
            if path:
                up, _, name = path.rpartition(b"/")
                self.children.setdefault(up, []).append(name)
        for names in self.children.values():
            names.sort()
        self.find_groups()
        self.id = digest(self.hash_dir(b"") + self.hash_links())

    def walk(self, top, at):
        full = os.path.join(top, at) if at else top
        for name in sorted(os.listdir(full)):
            path = at + b"/" + name if at else name
            st = os.lstat(os.path.join(top, path))
            is_dir = stat.S_ISDIR(st.st_mode)
            if path == STAGE or self.excluded(path, is_dir):
                continue
            if name.endswith(b".lock") and os.path.basename(at) == b".git":
                continue
            mode = stat.S_IMODE(st.st_mode)
            if is_dir:
                self.entries[path] = Entry(DIR, mode, st.st_mtime_ns)
                self.walk(top, path)
            elif stat.S_ISLNK(st.st_mode):
                t = os.readlink(os.path.join(top, path))
                self.entries[path] = Entry(LINK, 0o777, st.st_mtime_ns, len(t), digest(t), t)
            elif stat.S_ISREG(st.st_mode):
                with open(os.path.join(top, path), "rb") as f:
                    data = f.read()
                self.hashed += len(data)
                e = Entry(FILE, mode, st.st_mtime_ns, len(data), digest(data))
                e.inode = (st.st_dev, st.st_ino) if st.st_nlink > 1 else None
                self.entries[path] = e
            else:
                self.specials += 1

    def find_groups(self):
        names = {}
        for path in sorted(self.entries, key=order):
            if self.entries[path].inode:
                names.setdefault(self.entries[path].inode, []).append(path)
        self.groups = [v for v in names.values() if len(v) > 1]
        for group in self.groups:
            for path in group:
                self.entries[path].leader = group[0]

    def paths_in(self, at):
        return [at + b"/" + n if at else n for n in self.children.get(at, [])]

    def hash_dir(self, at):
        out = b""
        for path in self.paths_in(at):
            e, name = self.entries[path], path.rpartition(b"/")[2]
            if e.type == DIR:
                e.digest = self.hash_dir(path)
            out += struct.pack(
                "<BHqQ",
                e.type,
                0 if e.type == LINK else e.mode,
                e.mtime,
                0 if e.type == DIR else e.size,
            )
            out += e.digest + struct.pack("<H", len(name)) + name
        return digest(out)

    def hash_links(self):
        if not self.groups:
            return bytes(16)
        number = {p: i + 1 for i, g in enumerate(self.groups) for p in g}
        return digest(
            b"".join(
                struct.pack("<I", number[p]) + p + b"\0" for p in sorted(number, key=order)
            )
        )

    def total(self, at):
        return sum(
            1 + (self.total(p) if self.entries[p].type == DIR else 0) for p in self.paths_in(at)
        )


def seal(data):
    return data + struct.pack("<Q", xxhash.xxh3_64_intdigest(data))


def shared(a, b):
    return len(os.path.commonprefix([a, b]))


def levels(tree):
    """All directories, level by level."""
    now = [b""]
    while now:
        yield from now
        now = [p for d in now for p in tree.paths_in(d) if tree.entries[p].type == DIR]


def manifest(tree):
    names = "counts names kinds modes mtimes sizes digests targets links"
    col = {k: bytearray() for k in names.split()}
    last_mtime, modes, dirs = 0, {DIR: 0, FILE: 0}, 0
    number = {p: i for i, g in enumerate(tree.groups) for p in g}
    for at in levels(tree):
        dirs += 1
        before = b""
        col["counts"] += varint(len(tree.children.get(at, [])))
        for path in tree.paths_in(at):
            e, name = tree.entries[path], path.rpartition(b"/")[2]
            same = shared(before, name)
            col["names"] += varint(same) + put_bytes(name[same:])
            before = name
            kind = e.type | (LINKED if path in number else 0)
            if e.type != LINK and modes[e.type] == e.mode:
                kind |= SAME_MODE
            elif e.type != LINK:
                col["modes"] += varint(e.mode)
                modes[e.type] = e.mode
            col["kinds"].append(kind)
            col["mtimes"] += svarint(e.mtime - last_mtime)
            last_mtime = e.mtime
            if e.type == FILE:
                col["sizes"] += varint(e.size)
                col["digests"] += e.digest
            if e.type == LINK:
                col["targets"] += put_bytes(e.target)
            if path in number:
                col["links"] += varint(number[path])
    out = b"SBMT\x01\x00" + varint(len(tree.entries) - 1) + varint(dirs) + varint(len(tree.groups))
    out += varint(tree.root.mode) + svarint(tree.root.mtime)
    for c in list(col.values()) + [b""]:
        out += struct.pack("<Q", len(c)) + bytes(c)
    return seal(out)


def listing(tree, at):
    out = varint(len(tree.children.get(at, [])))
    for path in tree.paths_in(at):
        e, name = tree.entries[path], path.rpartition(b"/")[2]
        out += bytes([e.type]) + put_bytes(name) + struct.pack("<H", e.mode) + svarint(e.mtime)
        out += e.digest + varint(tree.total(path) if e.type == DIR else e.size)
        if e.type == LINK:
            out += put_bytes(e.target)
    return out


class Change:
    def __init__(self, path, entry):
        self.path, self.entry = path, entry  # entry None: a deletion


def compare(old, new):
    """Changes from one tree to the other, in the order of paths."""
    out = []
    gone = None
    for path in sorted(set(old.entries) | set(new.entries), key=order):
        if not path:
            continue
        a, b = old.entries.get(path), new.entries.get(path)
        if gone is not None and path.startswith(gone + b"/"):
            a = None
        if a and (not b or (a.type == DIR) != (b.type == DIR)):
            out.append(Change(path, None))
            gone = path if a.type == DIR else gone
            a = None
        if b and (not a or a.key() != b.key()):
            out.append(Change(path, b))
    return out


def difference(old, new):
    changes = compare(old, new)
    out = b"SBDF\x01" + varint(len(changes))
    before, mtime = b"", 0
    for c in changes:
        e = c.entry
        kind = e.type if e else 0
        if e and e.leader is not None:
            kind |= LEADS if e.leader == c.path else LINKED
        same = shared(before, c.path)
        out += bytes([kind]) + varint(same) + put_bytes(c.path[same:])
        before = c.path
        if not e:
            continue
        if e.type != LINK:
            out += varint(e.mode)
        out += svarint(e.mtime - mtime)
        mtime = e.mtime
        if e.type == FILE:
            out += varint(e.size) + e.digest
            if kind & LINKED:
                out += put_bytes(e.leader)
        if e.type == LINK:
            out += put_bytes(e.target)
    return seal(out)


def read_difference(data):
    if data != seal(data[:-8]) or data[:5] != b"SBDF\x01":
        raise Broken("a damaged difference")
    c = Cursor(data[5:-8])
    path, mtime = b"", 0
    for _ in range(c.varint()):
        kind = c.u8()
        path = path[: c.varint()]
        path += c.bytes()
        if not kind:
            yield Change(path, None)
            continue
        mode = c.varint() if kind & 3 != LINK else 0o777
        mtime += c.svarint()
        e = Entry(kind & 3, mode, mtime)
        if e.type == FILE:
            e.size = c.varint()
            e.digest = bytes(16) if kind & UNHASHED else c.take(16)
            if kind & LINKED:
                e.leader = c.bytes()
            if kind & LEADS:
                e.leader = path
        if e.type == LINK:
            e.target = c.bytes()
        yield Change(path, e)
    c.end()


class TarWriter:
    def __init__(self):
        self.out = io.BytesIO()

    def add(self, path, data):
        m = tarfile.TarInfo(os.fsdecode(path))
        m.size = len(data)
        try:
            head = m.tobuf(tarfile.USTAR_FORMAT, "utf-8", "surrogateescape")
        except ValueError:
            # A name that the short form has no room for. mtime and the like say nothing.
            head = self.long_name(path, m)
        self.out.write(head + data + bytes(-len(data) % 512))

    def long_name(self, path, m):
        body = b" path=" + path + b"\n"
        n = len(body) + 1
        while len(b"%d" % n) + len(body) != n:
            n += 1
        body = b"%d" % n + body
        x = tarfile.TarInfo("PaxHeader")
        x.type, x.size = tarfile.XHDTYPE, len(body)
        m.name = "long"
        return (
            x.tobuf(tarfile.USTAR_FORMAT)
            + body
            + bytes(-len(body) % 512)
            + m.tobuf(tarfile.USTAR_FORMAT)
        )

    def end(self):
        return self.out.getvalue() + bytes(1024)
