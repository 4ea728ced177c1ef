#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A client of Attach that lies. usage: attach.py SOCKET SESSION: prints one TAP line a case.

Every wrong message is an HTTP error or an error frame; every wrong frame ends
that connection alone."""
import json
import random
import socket
import struct
import sys
import urllib.parse

PATH = "/rpc.v1.SandboxService/Attach?connect=v1&encoding=json&message="
DATA, STDERR, EOF, EXIT, ERROR = range(5)
seen = 0


def frame(kind, content=b"", length=None):
    return struct.pack(">BI", kind, len(content) if length is None else length) + content


def talk(where, query, more=b"", upgrade="sb-attach"):
    """What came until the host closed: the status and the bytes after the header."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(20)
        s.connect(where)
        head = "GET %s%s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n" % (PATH, query)
        if upgrade:
            head += "Upgrade: %s\r\n" % upgrade
        try:
            s.sendall(head.encode("latin-1") + b"\r\n")
        except BrokenPipeError:
            pass  # too long for it; its answer is there
        got = b""
        while b"\r\n\r\n" not in got:
            try:
                piece = s.recv(65536)
            except ConnectionResetError:
                piece = b""
            if not piece:
                return 0, b""
            got += piece
        header, rest = got.split(b"\r\n\r\n", 1)
        status = int(header.split()[1])
        if status != 101:
            return status, rest
        try:
            s.sendall(more)
            s.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it has had enough; its last frame counts
        try:
            while piece := s.recv(65536):
                rest += piece
        except ConnectionResetError:
            pass
        return status, rest


def frames(data):
    out = []
    while len(data) >= 5:
        kind, n = struct.unpack(">BI", data[:5])
        out.append((kind, data[5 : 5 + n]))
        data = data[5 + n :]
    return out


def refused(status, rest):
    if status != 101:
        return 400 <= status < 500
    last = frames(rest)[-1:]
    return bool(last) and last[0][0] == ERROR and b"code" in last[0][1]


def case(name, good, detail=""):
    global seen
    seen += 1
    print("%sok %d - %s" % ("" if good else "not ", seen, name))
    if not good:
        print("# %s" % (str(detail)[:300],))


def messages(session):
    """(name, the query as it is sent)"""
    for what, value in (
        ("a number", 7),
        ("null", None),
        ("a list", []),
        ("an object", {}),
        ("true", True),
        ("nothing", ""),
    ):
        yield "SessionID is " + what, json.dumps({"SessionID": value, "Command": "true"})
    for value in (
        "../one",
        "/",
        "a/b",
        "..",
        ".",
        "one@snap",
        "one\0",
        "-x",
        "x" * 129,
        "\u202e",
        "a b",
        "%2e%2e",
    ):
        yield "SessionID %r" % value[:20], json.dumps(
            {"SessionID": value, "Command": "touch /tmp/out"}
        )
    for what, value in (
        ("a number", 7),
        ("null", None),
        ("a list", ["true"]),
        ("nothing", ""),
        ("70,000 bytes", "x" * 70000),
    ):
        yield "Command is " + what, json.dumps({"SessionID": session, "Command": value})
    yield "Command with a NUL", json.dumps({"SessionID": session, "Command": "echo a\0b"})
    for what, value in (
        ("a text", "A=b"),
        ("a list", ["A=b"]),
        ("of numbers", {"A": 1}),
        ("with = in a name", {"A=B": "c"}),
        ("with no name", {"": "c"}),
        ("with a NUL", {"A": "b\0c"}),
        ("of 300", {"A%d" % i: "b" for i in range(300)}),
    ):
        yield "Env is " + what, json.dumps({"SessionID": session, "Command": "true", "Env": value})
    yield "no message", ""
    for text in (
        "{",
        "[]",
        "7",
        '"a"',
        '{"SessionID":"%s"}' % session,
        "{" * 2000,
        "\xff\xfe",
        "null",
    ):
        yield "message %r" % text[:20], text
    yield "a megabyte", json.dumps({"SessionID": "x" * 1000000, "Command": "true"})


def main():
    where, session = sys.argv[1:3]
    rng = random.Random(1)
    for name, text in messages(session):
        status, rest = talk(where, urllib.parse.quote(text))
        # A header that fits into no buffer may be cut off without a word.
        case(
            name,
            refused(status, rest) or (name == "a megabyte" and not status),
            (status, rest[-200:]),
        )
    status, rest = talk(where, "%zz%", b"")
    case("a broken escape", refused(status, rest), (status, rest))
    for other in ("websocket", "h2c", ""):
        status, rest = talk(
            where,
            urllib.parse.quote(json.dumps({"SessionID": session, "Command": "true"})),
            upgrade=other,
        )
        case("upgrade to %r" % other, refused(status, rest), (status, rest))
    cat = urllib.parse.quote(json.dumps({"SessionID": session, "Command": "cat"}))
    for name, more in (
        ("a frame of no kind", frame(9, b"x")),
        ("a frame only a host sends", frame(EXIT, b"\0\0\0\0")),
        ("a frame of 4 GiB", frame(DATA, b"x", 0xFFFFFFFF)),
        ("one byte too many", frame(DATA, b"x" * 65537)),
        ("an end with content", frame(EOF, b"x") + frame(ERROR, b"{}")),
        ("half a frame", b"\0\0\0"),
    ):
        status, rest = talk(where, cat, more)
        got = frames(rest)
        case(
            name,
            status == 101 and not any(k == EXIT and c == b"\0\0\0\0" for k, c in got),
            (status, rest),
        )
    wrong = 0
    for _ in range(200):
        more = b"".join(
            rng.choice(
                [
                    frame(rng.randrange(6), rng.randbytes(rng.randrange(40))),
                    rng.randbytes(rng.randrange(9)),
                ]
            )
            for _ in range(rng.randrange(1, 6))
        )
        status, rest = talk(where, cat, more)
        wrong += status != 101 or any(k not in (DATA, STDERR, EXIT, ERROR) for k, _ in frames(rest))
    case("200 streams of random frames", wrong == 0, wrong)
    print("1..%d" % seen)


main()
