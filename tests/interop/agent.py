#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A second agent, written from sbsync-protocol(5) alone. It uses no code of ours.

  agent.py [OPTION]... HOST COMMAND     a remote shell (sbsync --rsh) whose far side is this agent
  agent.py agent                        the agent, on standard input and output

It keeps what it remembers in $INTEROP_STATE, and tells in $INTEROP_LOG what came, one message a
line. Simple before fast: it holds the stream in memory and scans again after a commit.
"""
import io
import os
import pickle
import re
import struct
import sys
import tarfile
import time
import traceback

import rules
import tree
import wire
from wire import Cursor, Wire, put_bytes, svarint, varint
import zstandard

BASE_KNOWN, MISSING, LINKS = 1, 8, 64
CREATE, CLAIM = 1, 64
META, DATA, CLONE, MOVE, LEFTOVER, MAKE, HARDLINK, DELETE = range(8)


def log(*words):
    if os.environ.get("INTEROP_LOG"):
        with open(os.environ["INTEROP_LOG"], "a", errors="surrogateescape") as f:
            f.write(" ".join(map(str, words)) + "\n")


class Begin:
    def __init__(self, payload):
        c = Cursor(payload)
        self.flags = c.u32()
        self.jobs = c.varint()
        self.pair = c.take(16)
        self.identity = c.take(16)
        self.base = c.take(16)
        self.rules = c.take(16)
        self.root = os.path.expanduser(c.bytes())
        c.end()


class Item:
    """A file whose content comes in the stream."""

    def __init__(self, change):
        self.change = change
        self.data = None
        self.digest = change.entry.digest
        self.status = None

    def good(self):
        return self.data is not None and tree.digest(self.data) == self.digest


class Agent:
    def __init__(self):
        self.w = Wire(sys.stdin.buffer, sys.stdout.buffer)
        self.state = os.environ.get("INTEROP_STATE", ".")

    # ---- what is remembered of a pair ----

    def state_file(self, what):
        return os.path.join(self.state, "%s-%s" % (self.begin.pair.hex(), what))

    def load_base(self):
        try:
            with open(self.state_file("base"), "rb") as f:
                return pickle.load(f)
        except FileNotFoundError:
            return None, None

    def remember(self):
        with open(self.state_file("base"), "wb") as f:
            pickle.dump((self.begin.rules, self.tree), f)

    def read_identity(self):
        try:
            return os.getxattr(self.begin.root, "user.sbsync.id")
        except OSError:
            pass
        try:
            with open(self.state_file("identity"), "rb") as f:
                return f.read()
        except FileNotFoundError:
            return bytes(16)

    def write_identity(self):
        try:
            os.setxattr(self.begin.root, "user.sbsync.id", self.begin.identity)
        except OSError:
            with open(self.state_file("identity"), "wb") as f:
                f.write(self.begin.identity)

    # ---- answers ----

    def run(self):
        self.w.start()
        kind, p = self.w.recv()
        if kind != wire.HELLO:
            raise wire.Broken("no greeting")
        c = Cursor(p)
        version, oldest = c.u32(), c.u32()
        if oldest > 1 or version < 1:
            self.w.send(wire.ERROR, svarint(-10) + svarint(0) + put_bytes(b"version 1 only"))
            return
        self.w.send(wire.WELCOME, struct.pack("<III", 1, 1, 0) + put_bytes(b"interop"))
        while True:
            kind, p = self.w.recv()
            log(wire.NAMES[kind])
            if kind == wire.BYE:
                self.w.prove()
                return
            getattr(self, "on_" + wire.NAMES[kind].lower())(p)

    def on_begin(self, p):
        self.begin = Begin(p)
        kind, p = self.w.recv()
        if kind != wire.RULES:
            raise wire.Broken("no rules")
        self.rules = rules.Rules(p)
        if self.begin.rules != tree.digest(p):
            raise wire.Broken("the digest of the rules is another one")
        self.items, self.plan, self.stream = [], [], b""
        self.missing = not os.path.isdir(self.begin.root)
        if self.missing and not self.begin.flags & CREATE:
            text = b"there is no " + self.begin.root
            self.w.send(wire.ERROR, svarint(-12) + svarint(2) + put_bytes(text))
            sys.exit(1)
        self.scan()
        self.answer_scan()

    def scan(self):
        self.tree = tree.Tree(None if self.missing else self.begin.root, self.rules.excluded)

    def answer_scan(self):
        t = self.tree
        with_rules, base = self.load_base()
        known = base and base.id == self.begin.base and with_rules == self.begin.rules
        flags = (BASE_KNOWN if known else 0) | (MISSING if self.missing else 0)
        flags |= LINKS if t.groups else 0
        free = 0
        if not self.missing:
            vfs = os.statvfs(self.begin.root)
            free = vfs.f_bavail * vfs.f_frsize
        self.w.send(
            wire.SCAN,
            struct.pack("<I", flags)
            + varint(len(t.entries) - 1)
            + varint(t.hashed)
            + t.id
            + (bytes(16) if self.missing else self.read_identity())
            + varint(free)
            + svarint(int(time.time() * 1000))
            + struct.pack("<H", t.root.mode)
            + svarint(t.root.mtime)
            + varint(t.specials),
        )
        if known and base.id != t.id:
            self.w.blob(wire.CHANGES, tree.difference(base, t))
        self.w.prove()

    def on_gettree(self, p):
        self.w.blob(wire.MANIFEST, tree.manifest(self.tree))
        self.w.prove()

    def on_list(self, p):
        self.w.blob(wire.MANIFEST, b"".join(tree.listing(self.tree, d) for d in wire.paths(p)))
        self.w.prove()

    def on_sigreq(self, p):
        self.w.blob(wire.SIGS, put_bytes(b"") * len(wire.paths(p)))
        self.w.prove()

    def on_remember(self, p):
        self.remember()

    def on_end(self, p):
        pass

    def on_proof(self, p):
        pass

    def on_want(self, p):
        """Whole files, whatever the other side has: that is always right."""
        c = Cursor(p)
        tar, rows = tree.TarWriter(), b""
        for _ in range(c.varint()):
            path = c.bytes()
            flags = c.u8()
            source = c.bytes() if flags & 16 else path
            if flags & 1:
                c.take(16), c.varint()
            if flags & 2:
                c.varint(), c.take(16)
            if flags & 4:
                c.bytes()
            entry = self.tree.entries.get(source)
            full = os.path.join(self.begin.root, source)
            if not entry or entry.type != tree.FILE or not os.path.exists(full):
                rows += b"\1"
                continue
            with open(full, "rb") as f:
                data = f.read()
            if tree.digest(data) != entry.digest:
                rows += b"\2"
                continue
            tar.add(path, data)
            rows += b"\0"
        c.end()
        self.w.send(wire.ROWS, rows)
        self.w.stream(tar.end())
        self.w.prove()

    # ---- changes ----

    def on_plan(self, p):
        c = Cursor(p)
        for change in tree.read_difference(c.bytes()):
            change.method = c.u8()
            change.source = c.bytes() if change.method in (CLONE, MOVE) else None
            self.plan.append(change)
            log("plan", change.method, os.fsdecode(change.path))
            if change.method == DATA:
                self.items.append(Item(change))
        c.end()

    def on_rows(self, p):
        c = Cursor(p)
        while not c.done():
            status = c.u8()
            item = next(i for i in self.items if i.status is None)
            item.status = status & 0x7F
            if status & 0x80:
                item.digest = c.take(16)

    def on_data(self, p):
        size = struct.unpack("<I", p[1:5])[0]
        block = zstandard.ZstdDecompressor().decompress(p[5:]) if p[0] else p[5:]
        if len(block) != size:
            raise wire.Broken("a block of another length")
        self.stream += block

    def on_data_end(self, p):
        by_path = {i.change.path: i for i in self.items}
        with tarfile.open(fileobj=io.BytesIO(self.stream), errors="surrogateescape") as tar:
            for m in tar:
                name = os.fsencode(m.name)
                by_path[name].data = self.content(m, tar.extractfile(m).read(), name)
        self.stream = b""

    def content(self, m, data, path):
        """What an entry of the stream stands for; None: to be asked for again."""
        attr = lambda k: m.pax_headers.get("SCHILY.xattr.user.sbsync." + k)
        kind = attr("kind")
        log("entry", kind or "whole")
        if kind is None:
            return data
        if kind == "patch":
            with open(os.path.join(self.begin.root, path), "rb") as f:
                base = f.read()
            if tree.digest(base).hex() != attr("base"):
                return None
            d = zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
            size = int(attr("size"))
            z = zstandard.ZstdDecompressor(dict_data=d, max_window_size=1 << 31)
            return z.decompress(data, max_output_size=size)
        if kind == "sparse":
            out, c = bytearray(int(attr("size"))), Cursor(data)
            while True:
                at, n = c.varint(), c.varint()
                if not n:
                    return bytes(out)
                out[at : at + n] = c.take(n)
        return None

    def on_commit(self, p):
        c = Cursor(p)
        c.u8()
        flags, mode, mtime = c.u8(), c.u16(), c.svarint()
        c.end()
        need = [i for i in self.items if i.status == 0 and not i.good()]
        need += [Item(ch) for ch in self.plan if ch.method == LEFTOVER]
        if need:
            for i in need:
                i.change.method = DATA
                i.status = i.data = None
            self.asked = [i for i in self.items if i not in need]
            self.items = need
            paths = [i.change.path for i in need]
            self.w.blob(wire.NEED, varint(len(paths)) + b"".join(map(put_bytes, paths)))
            self.w.prove()
            return
        result = self.apply((mode, mtime) if flags & 2 else None)
        if self.begin.flags & CLAIM:
            self.write_identity()
        self.missing = False
        self.scan()
        if flags & 1 and not result.left:
            self.remember()
        left = b"".join(put_bytes(path) + bytes([why]) for path, why in result.left)
        self.w.blob(
            wire.RESULT,
            varint(result.files)
            + varint(result.dirs)
            + varint(result.deleted)
            + varint(result.moved)
            + varint(result.bytes)
            + self.tree.id
            + varint(len(result.left))
            + left,
        )
        self.w.prove()
        self.items, self.plan = [], []

    def apply(self, root_meta):
        import commit

        items = {i.change.path: i for i in self.items + getattr(self, "asked", [])}
        return commit.Commit(self.begin.root, self.tree, self.plan, items, root_meta).run()


def main():
    if sys.argv[1:] == ["agent"]:
        return Agent().run()
    # exec sh -c 'SCRIPT' HELPER NONCE DIGEST SKIP ARGUMENT ...
    nonce = re.findall(r" ([0-9a-f]+) [0-9a-f]{32} [0-9]+ agent$", sys.argv[-1])
    if not nonce:
        sys.exit("this shell only starts agents")
    sys.stdout.buffer.write(b"\nsbsync:%s:ready\n" % nonce[0].encode())
    sys.stdout.buffer.flush()
    return Agent().run()


if __name__ == "__main__":
    try:
        main()
    except Exception as e:  # one line: the controller shows what an agent says last
        last = traceback.extract_tb(e.__traceback__)[-1]
        where = "%s:%d" % (os.path.basename(last.filename), last.lineno)
        sys.exit("interop agent: %s: %s: %s" % (where, type(e).__name__, e))
