# SPDX-License-Identifier: MIT
"""Frames, blobs, proofs and changes of the sync protocol, for peers that lie."""
import ctypes
import struct

XX = ctypes.CDLL("libxxhash.so.0")
Z = ctypes.CDLL("libzstd.so.1")
XX.XXH3_createState.restype = ctypes.c_void_p
XX.XXH3_64bits.restype = ctypes.c_uint64
XX.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
for f in ("XXH3_128bits_reset", "XXH3_128bits_update"):
    getattr(XX, f).argtypes = [ctypes.c_void_p] + (
        [ctypes.c_char_p, ctypes.c_size_t] if f.endswith("update") else []
    )


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


XX.XXH3_128bits_digest.restype = Hash128
XX.XXH3_128bits_digest.argtypes = [ctypes.c_void_p]
Z.ZSTD_compressBound.restype = Z.ZSTD_compress.restype = Z.ZSTD_decompress.restype = ctypes.c_size_t
Z.ZSTD_compressBound.argtypes = [ctypes.c_size_t]
Z.ZSTD_compress.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_char_p,
    ctypes.c_size_t,
    ctypes.c_int,
]
Z.ZSTD_decompress.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]

MARKER = b"\nSBSYNC-AGENT-1\n"
PING, ERROR, PROOF = 1, 2, 3
HELLO, BEGIN, RULES, LIST, PLAN, WANT, SIGREQ, COMMIT, REMEMBER, GETTREE, END, BYE = (
    16,
    17,
    18,
    19,
    21,
    22,
    23,
    24,
    25,
    26,
    27,
    28,
)
WELCOME, SCAN, CHANGES, MANIFEST, SKIPPED, HAVE, SIGS, NEED, RESULT = range(64, 73)
DATA, ROWS, DATA_END = 96, 97, 98
BLOBS = {RULES, LIST, PLAN, WANT, SIGREQ, CHANGES, MANIFEST, SKIPPED, HAVE, SIGS, NEED, RESULT}


def compress(data, level=3):
    n = Z.ZSTD_compressBound(len(data))
    out = ctypes.create_string_buffer(n)
    n = Z.ZSTD_compress(out, n, data, len(data), level)
    return out.raw[:n]


def bomb(size):
    """`size` zero bytes in as little as it takes: one block that says "the same byte 128 KiB
    times", again and again."""
    blocks = size >> 17
    rle = lambda last: struct.pack("<I", last | 1 << 1 | 1 << 17 << 3)[:3] + b"\0"
    # magic, descriptor (8-byte content size, single segment), content size
    return struct.pack("<IBQ", 0xFD2FB528, 0xE0, blocks << 17) + rle(0) * (blocks - 1) + rle(1)


def decompress(data, size):
    out = ctypes.create_string_buffer(size + 1)
    n = Z.ZSTD_decompress(out, size, data, len(data))
    return out.raw[:n]


def varint(n):
    out = b""
    while n >= 0x80:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def svarint(n):
    return varint((n << 1) ^ (n >> 63) if n >= 0 else ((-n) << 1) - 1)


def text(b):
    return varint(len(b)) + b


class Proof:
    """Count and digest of one direction."""

    def __init__(self):
        self.state = XX.XXH3_createState()
        XX.XXH3_128bits_reset(self.state)
        self.frames = self.bytes = 0

    def add(self, raw):
        XX.XXH3_128bits_update(self.state, raw, len(raw))
        self.frames += 1
        self.bytes += len(raw)

    def payload(self):
        h = XX.XXH3_128bits_digest(self.state)
        # The engine keeps digests in canonical form: big-endian.
        return struct.pack("<QQ", self.frames, self.bytes) + struct.pack(">QQ", h.high, h.low)


def frame(kind, payload=b""):
    return struct.pack("<IB", len(payload), kind) + payload


def blob_frames(kind, data, raw=None):
    z = compress(data)
    z = struct.pack("<QQ", len(data) if raw is None else raw, len(z)) + z
    pieces = [z[i : i + (512 << 10)] for i in range(0, len(z), 512 << 10)]
    return [(kind, bytes([i == len(pieces) - 1]) + p) for i, p in enumerate(pieces)]


def diff(rows):
    """rows: (path, None) deletes; (path, dict) puts: type 1 dir, 2 file, 3 link; mode, mtime, size,
    digest, target, leader."""
    out = b"SBDF\x01" + varint(len(rows))
    before, mtime = b"", 0
    for path, e in rows:
        e = e or {}
        kind = e.get("type", 0)
        if kind == 2 and "leader" in e:
            kind |= 4
        if kind & 3 == 2 and e.get("digest") is None:
            kind |= 8
        same = 0
        while same < min(len(before), len(path)) and before[same] == path[same]:
            same += 1
        out += bytes([kind]) + varint(same) + text(path[same:])
        before = path
        if kind & 3:
            if kind & 3 != 3:
                out += varint(e.get("mode", 0o644))
            out += svarint(e.get("mtime", 0) - mtime)
            mtime = e.get("mtime", 0)
        if kind & 3 == 3:
            out += text(e["target"])
        if kind & 3 == 2:
            out += varint(e.get("size", 0))
            if not kind & 8:
                out += e["digest"]
            if kind & 4:
                out += text(e["leader"])
    return out + struct.pack("<Q", XX.XXH3_64bits(out, len(out)))


META, WHOLE, CLONE, MOVE, LEFTOVER, MAKE, HARDLINK, DELETE = range(8)


def plan(rows):
    """rows: (path, entry or None, method[, from])."""
    d = diff([r[:2] for r in rows])
    out = text(d)
    for r in rows:
        out += bytes([r[2]]) + (text(r[3]) if len(r) > 3 else b"")
    return out
