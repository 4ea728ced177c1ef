#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An agent that lies: stands between the controller and a real agent and changes what that says.

  agent.py CASE SBSYNC        speaks the protocol on stdin and stdout

$HOSTILE_TOLD is a file that appears once the lie was told; $HOSTILE_DRIVER forges manifests.
"""
import os
import struct
import subprocess
import sys
import threading

from wire import *

EVIL = b"\x1b]0;owned\x07\x1b[2J\nsbsync: done\r\x9b31m%n%s" + "\u202e".encode()


# Trees that are nowhere: with our own stage in it, 8 EiB, and three that
# are more than 2^64 together.
FORGED = {
    "forge-stage": [".sbsync-stage", "5"],
    "forge-empty-stage": [".sbsync-stage", "0"],
    "forge-8eib": ["huge", str(2**63 - 1)],
    "forge-sum": ["a", str(2**63 - 1), "b", str(2**63 - 1), "c", str(2**63 - 1)],
}
# librsync commands: the whole basis again and again; from behind its end; of no
# length; nonsense; no end.
COPY = lambda off, n: b"\x4f" + struct.pack(">II", off, n)
DELTAS = {
    "delta-copy": COPY(0, 180000),
    "delta-far": COPY(0xFFFFFFF0, 0x7FFFFFFF),
    "delta-zero": COPY(0, 0),
    "delta-nonsense": b"\xff\x55\xaa",
    "delta-endless": b"\x41\x01",
}


class Liar:
    def __init__(self, case, sbsync):
        self.case = case
        self.real = subprocess.Popen(
            [sbsync, "agent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.proof = Proof()
        self.out = sys.stdout.buffer
        self.blob = None
        self.seen = {}

    def told(self):
        if os.environ.get("HOSTILE_TOLD"):
            open(os.environ["HOSTILE_TOLD"], "w").close()

    def raw(self, data):
        self.out.write(data)
        self.out.flush()

    def send(self, kind, payload=b""):
        f = frame(kind, payload)
        self.proof.add(f)
        self.raw(f)

    def send_blob(self, kind, data, raw=None):
        for k, p in blob_frames(kind, data, raw):
            self.send(k, p)

    def end(self):
        self.raw(b"")
        self.real.kill()
        os._exit(0)

    def forward(self):
        """Controller to agent, as it is."""
        while True:
            data = os.read(0, 65536)
            if not data:
                break
            self.real.stdin.write(data)
            self.real.stdin.flush()
        self.real.stdin.close()

    def read(self, n):
        data = self.real.stdout.read(n)
        if len(data) != n:
            self.end()
        return data

    def run(self):
        threading.Thread(target=self.forward, daemon=True).start()
        if self.case == "noise":
            while True:
                self.raw(b"Welcome to the machine\n" * 4096)
        if self.case == "silence":
            while True:
                threading.Event().wait(3600)
        self.read(len(MARKER))
        if self.case == "motd":
            self.raw(b"motd: you have mail\n" + EVIL)
        self.raw(MARKER)
        while True:
            n, kind = struct.unpack("<IB", self.read(5))
            payload = self.read(n)
            if kind in BLOBS:
                self.blob = (self.blob or b"") + payload[1:]
                if not payload[0]:
                    continue
                raw = struct.unpack("<Q", self.blob[:8])[0]
                data, self.blob = decompress(self.blob[16:], raw), None
                self.seen[kind] = self.seen.get(kind, 0) + 1
                if not self.lie_blob(kind, data):
                    self.send_blob(kind, data)
            elif kind == PROOF:
                self.send(PROOF, bytes(32) if self.case == "bad-proof" else self.proof.payload())
            else:
                self.seen[kind] = self.seen.get(kind, 0) + 1
                if not self.lie(kind, payload):
                    self.send(kind, payload)

    def rename(self, data, old, new):
        """The same blob with another name in it and a checksum that fits."""
        assert len(old) == len(new)
        if old not in data:
            return data
        data = data.replace(old, new)[:-8]
        return data + struct.pack("<Q", XX.XXH3_64bits(data, len(data)))

    def lie(self, kind, p):
        c = self.case
        if kind == WELCOME:
            if c == "future":
                self.send(WELCOME, struct.pack("<III", 99, 98, 0) + text(b"sbsync " + EVIL[:40]))
                return True
            if c == "cut":
                self.end()
            if c == "long-frame":
                self.raw(struct.pack("<IB", 0xFFFFFFFF, WELCOME))
                return True
            if c == "wrong-type":
                self.send(200, b"?")
                return True
            if c == "wrong-phase":
                self.send_blob(RESULT, bytes(64))
                return True
            if c == "error":
                self.send(ERROR, svarint(-1) + svarint(5) + text(EVIL * 9))
                return True
            if c == "error-brake":
                self.send(ERROR, svarint(-(2**40)) + svarint(2**40) + text(b"fine"))
                return True
            if c == "ping-forever":
                self.told()
                while True:
                    self.send(PING)
                    threading.Event().wait(0.05)
            if c == "ping-flood":
                try:
                    for _ in range(400):
                        self.raw(b"".join(self.note(frame(PING, b"x" * 100)) for _ in range(500)))
                except BrokenPipeError:
                    pass
                return False
        if kind == SCAN:
            flags, rest = struct.unpack("<I", p[:4])[0], p[4:]
            if c in FORGED:
                self.forged = subprocess.run(
                    [os.environ["HOSTILE_DRIVER"], "forge"] + FORGED[c],
                    stdout=subprocess.PIPE,
                    check=True,
                ).stdout
                # The whole manifest is asked for where there are hard links.
                self.send(
                    SCAN,
                    struct.pack("<I", 1 << 6)
                    + varint(len(FORGED[c]) // 2)
                    + varint(0)
                    + self.forged[:16]
                    + self.identity(p)
                    + varint(1 << 40)
                    + svarint(0)
                    + struct.pack("<H", 0o755)
                    + svarint(0)
                    + varint(0),
                )
                return True
            if c == "count":
                self.send(SCAN, struct.pack("<I", flags & ~3) + varint(2**63) + rest[1:])
                return True
            if c == "empty":
                self.send(
                    SCAN,
                    struct.pack("<I", 0)
                    + varint(0)
                    + varint(0)
                    + bytes(16)
                    + self.identity(p)
                    + varint(1 << 40)
                    + svarint(0)
                    + struct.pack("<H", 0o755)
                    + svarint(0)
                    + varint(0),
                )
                return True
            if c == "identity":
                self.send(SCAN, p.replace(self.identity(p), b"I" * 16))
                return True
            if c == "base-known":
                self.send(SCAN, struct.pack("<I", flags | 1) + rest)
                self.send_blob(
                    CHANGES, diff([(b"../escape", {"type": 2, "size": 1, "digest": b"d" * 16})])
                )
                return True
        if kind == DATA and c in DELTAS:
            size = struct.unpack("<I", p[1:5])[0]
            tar = bytearray(decompress(p[5:], size) if p[0] else p[5:])
            at = tar.find(b"rs\x026")
            if at < 0:
                return False
            # As long as it was: the entry's length is in its header.
            n = (
                int(
                    tar[(at & ~511) - 512 + 124 : (at & ~511) - 512 + 135].rstrip(b"\0 ") or b"0", 8
                )
                - 4
            )
            tar[at + 4 : at + 4 + n] = (DELTAS[c] * (n // len(DELTAS[c]) + 1))[:n]
            self.told()
            z = compress(bytes(tar)) if p[0] else bytes(tar)
            self.send(DATA, p[:1] + struct.pack("<I", len(tar)) + z)
            return True
        if kind == DATA and c == "data-garbage":
            self.send(DATA, p[:5] + bytes(b ^ 0x5A for b in p[5:]))
            return True
        if kind == DATA and c == "data-huge":
            self.send(DATA, p[:1] + struct.pack("<I", 0xFFFFFFF0) + p[5:])
            return True
        if kind == DATA and c == "data-flood":
            for _ in range(100000):
                self.send(DATA, p)
            return True
        if kind == DATA and c == "data-name":
            size = struct.unpack("<I", p[1:5])[0]
            tar = bytearray(decompress(p[5:], size) if p[0] else p[5:])
            for at in range(0, len(tar), 512):
                if tar[at : at + 11] == b"wanted-file":
                    tar[at : at + 11] = b"../../../xx"
                    tar[at + 148 : at + 156] = b" " * 8
                    tar[at + 148 : at + 156] = b"%06o\0 " % sum(tar[at : at + 512])
            z = compress(bytes(tar)) if p[0] else bytes(tar)
            self.send(DATA, p[:1] + struct.pack("<I", len(tar)) + z)
            return True
        if kind == ROWS and c == "rows":
            self.send(ROWS, p * 50)
            return True
        if kind == ROWS and c == "rows-digest":
            self.send(ROWS, bytes([0x80]) + b"D" * 16)
            return True
        if kind == ROWS and c == "rows-none":
            return True
        return False

    def note(self, raw):
        self.proof.add(raw)
        return raw

    def identity(self, p):
        at = 4
        for _ in range(2):
            while p[at] & 0x80:
                at += 1
            at += 1
        return p[at + 16 : at + 32]

    def lie_blob(self, kind, d):
        c = self.case
        if kind == CHANGES and c == "empty":
            return True
        if c in FORGED and kind in (CHANGES, MANIFEST, SKIPPED, HAVE):
            if kind == MANIFEST:
                self.told()
                self.send_blob(MANIFEST, self.forged[16:])
            return True
        if kind in (MANIFEST, CHANGES):
            names = {
                "dotdot": b"../../../xx",
                "absolute": b"/tmp/escape",
                "slash": b"a//bcdefghi",
                "nul": b"wanted\0file",
                "dot": b"./././././x",
                "stage": b".sbsync-stg",
            }
            if c in names:
                self.send_blob(kind, self.rename(d, b"wanted-file", names[c]))
                return True
            if c == "truncated":
                self.send_blob(kind, d[: len(d) // 2])
                return True
            if c == "flip":
                self.send_blob(kind, d[:40] + bytes([d[40] ^ 0xFF]) + d[41:])
                return True
            if c == "blob-claims":
                self.send_blob(kind, d, raw=1 << 62)
                return True
            if c == "bomb":
                z = bomb(900 << 20)
                self.send(kind, b"\1" + struct.pack("<QQ", 900 << 20, len(z)) + z)
                return True
            if c == "endless-blob":
                while True:
                    self.send(kind, b"\0" + b"x" * (1 << 20))
            if c == "empty-blob":
                self.send(kind, b"")
                return True
        if kind == RESULT:
            if c == "result-lie":
                self.send_blob(RESULT, varint(2**63) * 5 + bytes(16) + varint(0))
                return True
            if c == "result-bomb":
                self.send_blob(RESULT, varint(0) * 5 + bytes(16) + varint(2**60))
                return True
            if c == "result-names":
                self.send_blob(
                    RESULT,
                    varint(0) * 5 + bytes(16) + varint(1) + text(EVIL.replace(b"/", b"")) + b"\0",
                )
                return True
            if c == "result-outside":
                self.send_blob(
                    RESULT, varint(0) * 5 + bytes(16) + varint(1) + text(b"../../x") + b"\0"
                )
                return True
            if c == "need":
                self.send_blob(NEED, varint(2) + text(b"not in the plan") + text(b"a/b/c"))
                return True
            if c == "need-outside":
                self.send_blob(NEED, varint(1) + text(b"../../../../etc/passwd"))
                return True
            if c == "need-forever":
                self.send_blob(NEED, varint(1) + text(b"local-file"))
                return True
        if kind == SIGS and c == "sigs-garbage":
            self.send_blob(SIGS, text(os.urandom(5000)))
            return True
        if kind == SIGS and c == "sigs-bomb":
            # block length 1 and a million blocks
            self.send_blob(SIGS, text(struct.pack(">III", 0x72730147, 1, 8) + bytes(12 * 1000000)))
            return True
        if kind == SIGS and c == "sigs-zero":
            self.send_blob(SIGS, text(struct.pack(">III", 0x72730147, 0, 0)))
            return True
        return False


if __name__ == "__main__":
    try:
        Liar(sys.argv[1], sys.argv[2]).run()
    except (BrokenPipeError, ValueError):
        os._exit(0)
