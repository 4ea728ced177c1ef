# SPDX-License-Identifier: MIT
"""Values, frames, blobs and proofs, as sbsync-protocol(5) has them."""
import struct
import sys

import xxhash
import zstandard

NAMES = {
    1: "PING", 2: "ERROR", 3: "PROOF", 16: "HELLO", 17: "BEGIN", 18: "RULES", 19: "LIST",
    21: "PLAN", 22: "WANT", 23: "SIGREQ", 24: "COMMIT", 25: "REMEMBER", 26: "GETTREE", 27: "END",
    28: "BYE", 29: "WATCH", 30: "UNWATCH", 64: "WELCOME", 65: "SCAN", 66: "CHANGES",
    67: "MANIFEST", 68: "SKIPPED", 69: "HAVE", 70: "SIGS", 71: "NEED", 72: "RESULT",
    73: "CHANGED", 74: "WATCHED", 96: "DATA", 97: "ROWS", 98: "DATA_END",
}
for _number, _name in NAMES.items():
    globals()[_name] = _number
BLOBS = {RULES, LIST, PLAN, WANT, SIGREQ, WATCH}  # noqa: F821
FRAME_MAX = (4 << 20) + 1024


class Broken(Exception):
    pass


def varint(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def svarint(n):
    return varint(n * 2 if n >= 0 else -n * 2 - 1)


def put_bytes(b):
    return varint(len(b)) + b


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        if n > len(self.data) - self.at:
            raise Broken("cut off")
        self.at += n
        return self.data[self.at - n : self.at]

    def u8(self):
        return self.take(1)[0]

    def u16(self):
        return struct.unpack("<H", self.take(2))[0]

    def u32(self):
        return struct.unpack("<I", self.take(4))[0]

    def u64(self):
        return struct.unpack("<Q", self.take(8))[0]

    def varint(self):
        n = shift = 0
        while True:
            b = self.u8()
            n |= (b & 0x7F) << shift
            shift += 7
            if not b & 0x80:
                return n

    def svarint(self):
        n = self.varint()
        return n >> 1 if not n & 1 else -(n >> 1) - 1

    def bytes(self):
        return self.take(self.varint())

    def done(self):
        return self.at == len(self.data)

    def end(self):
        if not self.done():
            raise Broken("something follows the end")


def paths(data):
    c = Cursor(data)
    out = [c.bytes() for _ in range(c.varint())]
    c.end()
    return out


class Count:
    """Frames, bytes and digest of one direction."""

    def __init__(self):
        self.frames = self.bytes = 0
        self.hash = xxhash.xxh3_128()

    def add(self, frame):
        self.frames += 1
        self.bytes += len(frame)
        self.hash.update(frame)

    def proof(self):
        return struct.pack("<QQ", self.frames, self.bytes) + self.hash.digest()


class Wire:
    def __init__(self, reader, writer):
        self.r, self.o = reader, writer
        self.sent, self.got = Count(), Count()

    def start(self):
        self.o.write(b"\nSBSYNC-AGENT-1\n")

    def frame(self):
        head = self.r.read(5)
        if len(head) < 5:
            sys.exit(0)
        n, kind = struct.unpack("<IB", head)
        if n > FRAME_MAX:
            raise Broken("a frame of %d bytes" % n)
        payload = self.r.read(n)
        if kind == PROOF and payload != self.got.proof():  # noqa: F821
            raise Broken("the proof does not match")
        self.got.add(head + payload)
        return kind, payload

    def recv(self):
        """The next message but PING; a blob whole."""
        self.o.flush()
        whole = b""
        while True:
            kind, p = self.frame()
            if kind == PING:  # noqa: F821
                continue
            if kind not in BLOBS:
                return kind, p
            whole += p[1:]
            if p[0]:
                raw, packed = struct.unpack("<QQ", whole[:16])
                data = zstandard.ZstdDecompressor().decompress(whole[16:], max_output_size=raw)
                if len(whole) != 16 + packed or len(data) != raw:
                    raise Broken("a damaged blob")
                return kind, data

    def send(self, kind, payload=b""):
        frame = struct.pack("<IB", len(payload), kind) + payload
        self.sent.add(frame)
        self.o.write(frame)

    def blob(self, kind, data):
        z = zstandard.ZstdCompressor().compress(data)
        z = struct.pack("<QQ", len(data), len(z)) + z
        step = 100000
        for at in range(0, len(z), step):
            self.send(kind, bytes([at + step >= len(z)]) + z[at : at + step])

    def stream(self, tar):
        """The tar stream in blocks, stored and compressed by turns."""
        step = 50000
        for i, at in enumerate(range(0, len(tar), step)):
            block = tar[at : at + step]
            body = zstandard.ZstdCompressor().compress(block) if i % 2 else block
            self.send(DATA, bytes([i % 2]) + struct.pack("<I", len(block)) + body)  # noqa: F821
        self.send(DATA_END)  # noqa: F821

    def prove(self):
        self.send(PROOF, self.sent.proof())  # noqa: F821
        self.o.flush()
