#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads an archive of a session, written from sbcold(5) alone.

sbcold.py STORE SPACE ID OUT [KEY]   the streams into OUT/SNAPSHOT.stream; whole trees of layers
                                     also into OUT/SNAPSHOT/. Prints what the archive is.
"""
import ctypes
import hashlib
import json
import os
import struct
import sys

import xxhash
import zstandard


class Wrong(Exception):
    pass


def need(ok, what):
    if not ok:
        raise Wrong(what)


def decrypt(data, key):
    sodium = ctypes.CDLL("libsodium.so.23")
    need(sodium.sodium_init() >= 0, "libsodium")
    name = "crypto_secretstream_xchacha20poly1305_"
    state = ctypes.create_string_buffer(getattr(sodium, name + "statebytes")())
    out = ctypes.create_string_buffer(max(1, len(data) - 41))
    size, tag = ctypes.c_ulonglong(), ctypes.c_ubyte()
    need(getattr(sodium, name + "init_pull")(state, data[:24], key) == 0, "header of a frame")
    need(getattr(sodium, name + "pull")(
        state, out, ctypes.byref(size), ctypes.byref(tag), data[24:],
        ctypes.c_ulonglong(len(data) - 24), None, ctypes.c_ulonglong(0)) == 0, "wrong key")
    need(tag.value == 3, "tag of a frame")
    return out.raw[:size.value]


class Archive:
    def __init__(self, store, space, sid, key):
        self.root = os.path.join(store, space)
        sessions = os.path.join(self.root, "sessions")
        folders = [d for d in os.listdir(sessions) if d[:-33] == sid]
        need(len(folders) == 1, "%d sessions of that id" % len(folders))
        self.folder = os.path.join(sessions, folders[0])
        logs = [n for n in os.listdir(self.folder) if n.startswith("log-")]
        last = max(logs, key=lambda n: int(n[4:]))
        with open(os.path.join(self.folder, last)) as f:
            self.entry = json.load(f)
        need(self.entry["kind"] == "cold", "the session is not cold")
        self.key = None
        self.read_index(key)

    def frame(self, data, plain):
        if self.key:
            data = decrypt(data, self.key)
        out = zstandard.ZstdDecompressor().decompress(data)
        need(len(out) == plain, "length of a frame")
        return out

    def read_index(self, key):
        with open(os.path.join(self.folder, self.entry["index"]), "rb") as f:
            data = f.read()
        head, _, rest = data.partition(b"\n")
        word, version, keyid, size, digest = head.decode().split(" ")
        need(word == "sbcold" and version == "1", "version")
        need(hashlib.sha256(rest).hexdigest() == digest, "checksum of the index")
        if keyid != "-":
            need(key is not None, "a key is needed")
            need(hashlib.blake2b(key, digest_size=8).hexdigest() == keyid, "another key")
            self.key = key
        text = b""
        while rest:
            stored, plain = struct.unpack("<II", rest[:8])
            text += self.frame(rest[8:8 + stored], plain)
            rest = rest[8 + stored:]
        need(len(text) == int(size), "size of the index")
        self.index = json.loads(text)

    def stream(self, s):
        out = b""
        for number in s["frames"]:
            digest, plain, part, at, stored = self.index["frames"][number]
            name, size = self.index["parts"][part]
            path = os.path.join(self.root, "parts", name)
            need(os.path.getsize(path) == size, "size of a part")
            with open(path, "rb") as f:
                f.seek(at)
                data = self.frame(f.read(stored), plain)
            need(hashlib.sha256(data).hexdigest() == digest, "digest of a frame")
            out += data
        need(len(out) == s["size"], "size of a stream")
        return out


class Layers:
    """A whole tree out of a stream of layers."""

    def __init__(self, data, out):
        self.data, self.at, self.out = data, 0, out
        need(self.take(8) == b"SBLAYER1", "magic of a stream")
        self.name, self.stands_on = self.text(), self.text()
        self.signed()
        self.attributes()
        os.makedirs(out)
        self.entries(out, b"E")
        digest = xxhash.xxh3_64_intdigest(data[:self.at])
        need(struct.unpack("<Q", self.take(8))[0] == digest, "checksum of a stream")
        need(self.at == len(data), "bytes behind a stream")

    def take(self, n):
        need(self.at + n <= len(self.data), "a stream is cut")
        self.at += n
        return self.data[self.at - n:self.at]

    def number(self):
        out = shift = 0
        while True:
            byte = self.take(1)[0]
            out |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return out

    def signed(self):
        n = self.number()
        return -(n >> 1) - 1 if n & 1 else n >> 1

    def text(self):
        return self.take(self.number())

    def attributes(self):
        mode, _, _ = self.number(), self.number(), self.number()
        self.signed()
        for _ in range(self.number()):
            self.text(), self.text()
        return mode

    def entries(self, folder, end):
        while True:
            kind = self.take(1)
            if kind == end:
                return
            path = os.path.join(os.fsencode(folder), self.text())
            if kind == b"D":
                self.attributes()
                need(self.take(1) == b"\0" and self.text() == b"", "marks in a whole tree")
                os.mkdir(path)
                self.entries(path, b"U")
            elif kind == b"F":
                self.file(path)
            elif kind == b"K":
                os.link(os.path.join(os.fsencode(self.out), self.text()), path)
            elif kind == b"L":
                self.attributes()
                os.symlink(self.text(), path)
            elif kind == b"S":
                os.mkfifo(path)
                self.attributes()
            else:
                raise Wrong("entry %r" % kind)

    def file(self, path):
        mode = self.attributes()
        with open(path, "wb") as f:
            while True:
                at, data = self.number(), self.text()
                if not data:
                    f.truncate(at)
                    break
                f.seek(at)
                f.write(data)
        os.chmod(path, mode & 0o7777)


def main():
    store, space, sid, out = sys.argv[1:5]
    key = bytes.fromhex(sys.argv[5]) if len(sys.argv) > 5 else None
    a = Archive(store, space, sid, key)
    record = a.index["session"]
    print("session %s: %s, %d streams of %s" % (
        record["id"], "encrypted" if a.key else "in the clear", len(a.index["streams"]),
        a.index["stream"]))
    for s in a.index["streams"]:
        data = a.stream(s)
        with open(os.path.join(out, s["snapshot"] + ".stream"), "wb") as f:
            f.write(data)
        if a.index["stream"] == "layers" and s["from"] == "":
            tree = Layers(data, os.path.join(out, s["snapshot"]))
            need(os.fsdecode(tree.name) == s["snapshot"], "name of a stream")
        print("snapshot %s on %s, %d bytes" % (s["snapshot"], s["from"] or "-", s["size"]))


if __name__ == "__main__":
    try:
        main()
    except (Wrong, OSError, ValueError, KeyError) as e:
        sys.exit("sbcold.py: %s" % e)
