# SPDX-License-Identifier: MIT
"""ssh-garbage.py PORT: says to an SSH server what none may say, before, within and after the key
exchange. Every connection must come to its end or stay silent; none may take the server with it."""
import os
import random
import socket
import struct
import sys

port = int(sys.argv[1])
rng = random.Random(20)
GREETING = b"SSH-2.0-OpenSSH_9.2p1\r\n"


def packet(payload):
    pad = 8 - (len(payload) + 5) % 8
    pad += 8 if pad < 4 else 0
    return struct.pack(">IB", len(payload) + pad + 1, pad) + payload + bytes(pad)


def talk(*pieces):
    s = socket.create_connection(("127.0.0.1", port), timeout=20)
    s.settimeout(2)
    try:
        for p in pieces:
            s.sendall(p)
        s.shutdown(socket.SHUT_WR)
        while s.recv(65536):
            pass
    except OSError:
        pass
    s.close()


noise = bytes(rng.randrange(256) for _ in range(70000))
talk()
talk(noise)
talk(b"GET / HTTP/1.1\r\n\r\n")
talk(b"SSH-1.5-old\r\n")
talk(b"SSH-2.0-" + b"x" * 100000)
talk(b"\n" * 100000)
talk(GREETING, noise)
talk(GREETING, b"\xff\xff\xff\xff" + noise)
talk(GREETING, packet(b""))
for kind in list(range(1, 5)) + [20, 21, 30, 31, 50, 52, 80, 90, 94, 98, 255]:
    talk(GREETING, packet(bytes([kind]) + os.urandom(200)))
# A key exchange whose lists lie about their lengths.
for n in (0, 1, 7, 2**31, 2**32 - 1):
    talk(GREETING, packet(b"\x14" + bytes(16) + struct.pack(">I", n) + b"curve25519-sha256"))
