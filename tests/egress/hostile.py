# SPDX-License-Identifier: MIT
"""hostile.py SB_EGRESS SCRATCH: what a session may try against its network policy. Prints TAP."""
import os
import resource
import socket
import struct
import sys
import threading
import time
import traceback

import lab as L
from lab import CDN, EVIL, GOOD, GOOD6, PRIVATE, PROXY, WORLD

TESTS = []


def test(fn):
    TESTS.append(fn)
    return fn


def refused(fn):
    """The attempt ends without a byte of the other side: reset, closed, or told so by the proxy."""
    try:
        s = fn()
    except (ConnectionError, OSError) as e:
        if isinstance(e, socket.timeout):
            raise AssertionError("neither refused nor let through")
        return
    try:
        s.settimeout(L.SOON)
        data = s.recv(100)
    except ConnectionError:
        data = b""
    finally:
        s.close()
    if data and not data.startswith((b"HTTP/1.1 403 Forbidden", b"HTTP/1.1 400 Bad")):
        raise AssertionError("let through: %r" % data)


def asks(s, data):
    s.sendall(data)
    return s


def get(name):
    return b"GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % name.encode()


def same(a, b):
    if a != b:
        raise AssertionError("got %r, want %r" % (a, b))


def has(text, part):
    if part not in text:
        raise AssertionError("no %r in %r" % (part, text))


@test
def allowed_names_work_without_any_proxy_setting(lab):
    e = lab.egress(["good.test", "*.good.test"])
    has(e.get("good.test"), "at %s for good.test" % GOOD)
    has(e.get("www.good.test"), "for www.good.test")
    with L.tls(e.connect("good.test", 443), "good.test") as t:
        t.sendall(b"GET / HTTP/1.1\r\n\r\n")
        has(t.recv(100).decode(), "200 OK")
    same(lab.tls[GOOD].names[-1], "good.test")
    s = e.connect("good.test", 22)
    has(s.recv(100).decode(), "220 banner")  # a server that speaks first
    s.close()
    ev = e.event(name="good.test", port=443, verdict="allow")
    same((ev["session"], ev["address"], ev["rule"]), ("s1", GOOD, "allow good.test"))
    same(e.stop(), 0)


@test
def what_is_not_listed_is_refused(lab):
    e = lab.egress(["good.test"], hello_ms=300)
    seen = {h: s.seen for h, s in lab.http.items()}
    for host in (GOOD, EVIL, CDN, "8.8.8.8", PRIVATE, "169.254.169.254", WORLD, "192.0.2.2"):
        refused(lambda: asks(e.connect(host, 80), get("evil.test")))
    for host in (GOOD6, "2001:4860::8888", "fd5b:6174:6500::1", "::ffff:203.0.113.66"):
        refused(lambda: asks(e.connect(host, 80), get("evil.test")))
    for port in (21, 8080, 65535):
        refused(lambda: e.connect(EVIL, port))
    same(e.resolve("evil.test"), (3, []))
    same({h: s.seen for h, s in lab.http.items()}, seen)
    e.event(kind="dns", name="evil.test", verdict="deny")
    # A public address may show an allowed name, so its first bytes decide; a private one cannot.
    e.event(address=EVIL, port=8080, verdict="deny")
    e.event(address="169.254.169.254", port=80, verdict="deny", rule=lambda r: "link-local" in r)
    e.stop()


@test
def ports_are_part_of_a_rule(lab):
    e = lab.egress(["good.test:80", GOOD + ":9000-9000"])
    has(e.get("good.test"), "for good.test")
    refused(lambda: e.connect("good.test", 443))
    refused(lambda: e.connect("good.test", 22))
    s = asks(e.connect(GOOD, 9000), b"\0hi")
    same(s.recv(10), b"\0hi")
    s.close()
    refused(lambda: asks(e.connect(GOOD, 9001), b"\0hi"))
    e.event(name="good.test", port=443, verdict="deny", rule="unlisted")
    e.stop()


@test
def deny_wins(lab):
    e = lab.egress(["*"], ["deny.good.test", EVIL, "*:22"])
    has(e.get("good.test"), "for good.test")
    same(e.resolve("deny.good.test")[0], 3)
    refused(lambda: asks(e.connect(EVIL, 80), get("x.test")))
    refused(lambda: e.connect("good.test", 22))
    # An allowed name whose address is denied.
    lab.dns.names["trick.test"] = [EVIL]
    refused(lambda: asks(e.connect("trick.test", 80), get("trick.test")))
    # A denied name shown to an address that `*` allows.
    refused(lambda: asks(e.connect(GOOD, 443), L.hello("deny.good.test")))
    has(e.get(GOOD, request=get("deny.good.test")), "403 Forbidden")
    has(e.get(GOOD, request=get(GOOD)), "at " + GOOD)
    e.stop()


@test
def loopback_private_and_own_addresses_need_their_own_entry(lab):
    e = lab.egress(["*", "0.0.0.0/0", "::/0", "127.0.0.1:9"])
    before = lab.local.seen, lab.own.seen, lab.http[PRIVATE].seen
    refused(lambda: e.connect("host.sandbox.internal", 8000))
    refused(lambda: e.connect("intranet.test", 80))
    for host in (
        WORLD,
        PRIVATE,
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "0.0.0.0",
        "fe80::1",
        "fc00::1",
        "2001:db8:1::1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "198.18.0.1",
    ):
        refused(lambda: asks(e.connect(host, 8000), get("x.test")))
    # Through the proxy, with every spelling of loopback.
    for host in (
        "127.0.0.1",
        "localhost",
        "127.1",
        "0x7f000001",
        "2130706433",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::]",
        "127.0.0.1.",
        "host.sandbox.internal",
    ):
        s = e.ns.connect(*PROXY)
        s.sendall(b"CONNECT %s:8000 HTTP/1.1\r\nHost: x\r\n\r\n" % host.encode())
        answer = L.drain(s)
        if " 403 " not in answer and " 400 " not in answer:
            raise AssertionError("%s: %r" % (host, answer))
        s.close()
    same((lab.local.seen, lab.own.seen, lab.http[PRIVATE].seen), before)
    same(e.policy(["127.0.0.1:8000", "10.0.0.0/8", "intranet.test", WORLD])["ok"], True)
    has(e.get("host.sandbox.internal", 8000), "at 127.0.0.1")
    has(e.get("intranet.test"), "at " + PRIVATE)
    has(e.get(PRIVATE), "at " + PRIVATE)
    has(e.get(WORLD, 8000), "at " + WORLD)
    e.stop()


@test
def a_name_cannot_be_bound_to_another_address(lab):
    e = lab.egress(["rebind.test"], cache_min_ms=0)
    turn = [0]

    def answers(kind):
        if kind != 1:
            return []
        turn[0] += 1
        return [GOOD] if turn[0] == 1 else ["127.0.0.1"] if turn[0] == 2 else [PRIVATE]

    lab.dns.names["rebind.test"] = answers
    before = lab.local.seen, lab.http[PRIVATE].seen
    alias = e.alias("rebind.test")
    if not alias.startswith("198.19."):
        raise AssertionError("a real address was told: " + alias)
    deadline = time.monotonic() + L.SOON
    while (
        turn[0] < 4 and time.monotonic() < deadline
    ):  # the cache ends after the answer's 5 s at most
        e.resolve("rebind.test")
        with_lookup = turn[0]
        try:
            s = e.ns.connect(alias, 8000)
            s.close()
        except OSError:
            pass
        if with_lookup == turn[0]:
            e.ns.run(lambda: time.sleep(0.05))
    for port in (8000, 80):
        refused(lambda: asks(e.ns.connect(alias, port), get("rebind.test")))
    same((lab.local.seen, lab.http[PRIVATE].seen), before)
    e.event(name="rebind.test", verdict="deny", rule=lambda r: "private" in r or "loopback" in r)
    e.stop()


@test
def dns_carries_nothing_out(lab):
    e = lab.egress(["good.test"])
    asked = len(lab.dns.asked)
    secret = "a" * 63
    for name in (
        "%s.%s.%s.evil.test" % (secret, secret, secret),
        "x.good.test.evil.test",
        "evilgood.test",
        "sub.good.test",
        "good.test.evil.test",
    ):
        for kind in (1, 28, 16, 15, 33, 65, 255):
            same(e.resolve(name, kind)[0], 3)
        same(e.resolve(name, tcp=True)[0], 3)
    for kind in (28, 16, 15, 33, 65, 255):  # of an allowed name nothing but its alias is told
        same(e.resolve("good.test", kind), (0, []))
    same(lab.dns.asked[asked:], [])
    # Whoever is asked, we answer.
    for server in ("8.8.8.8", L.RESOLVER, "2001:4860:4860::8888"):
        same(e.resolve("good.test", server=server), e.resolve("good.test"))
        same(e.resolve("evil.test", server=server)[0], 3)
    same(set(lab.dns.asked[asked:]), {"good.test"})
    e.stop()


@test
def broken_questions_are_answered_or_dropped(lab):
    e = lab.egress(["good.test"])
    head = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
    cases = [
        head + b"\xc0\x0c\0\x01\0\x01",
        head + b"\x3f" + b"a" * 10,
        head + b"\x80abc\0\0\x01\0\x01",
        head[:5] + b"\x02" + head[6:] + b"\x01a\0\0\x01\0\x01",
        b"\x12\x34\x79\x00" + head[4:] + b"\0\0\x01\0\x01",
    ]
    for q in cases:
        if e.resolve("", raw=q)[0] not in (1, 4):
            raise AssertionError("%r was taken" % q)
    s = e.ns.socket(kind=socket.SOCK_DGRAM)
    for q in (b"", b"\0", head[:11], b"\x12\x34\x81" + head[3:], os.urandom(512)):
        s.sendto(q, ("198.18.0.1", 53))
    s.close()
    same(e.resolve("good.test")[0], 0)  # still there
    e.stop()


@test
def other_protocols_do_not_leave(lab):
    e = lab.egress(["*"])
    u = e.ns.socket(kind=socket.SOCK_DGRAM)
    u.connect((GOOD, 443))
    u.send(b"quic")
    try:
        u.recv(10)
        raise AssertionError("an answer by UDP")
    except ConnectionRefusedError:
        pass
    u.close()
    e.event(kind="packet", address=GOOD, port=443, verdict="deny")
    try:
        ping = e.ns.run(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
        ping.settimeout(0.3)
        ping.sendto(b"\x08\0\xf7\xff\0\0\0\0", (GOOD, 0))
        try:
            ping.recv(100)
            raise AssertionError("an echo")
        except socket.timeout:
            pass
        ping.close()
    except PermissionError:
        pass
    e.stop()


@test
def tls_must_show_the_name_it_was_made_for(lab):
    e = lab.egress(["cdn.test", "good.test"])
    before = len(lab.tls[CDN].names)
    for sni in ("other.cdn.test", "evil.test", None):
        refused(lambda: asks(e.connect("cdn.test", 443), L.hello(sni)))
    # In small pieces, over two records, behind another record.
    h = L.hello("other.cdn.test")

    def in_pieces():
        s = e.connect("cdn.test", 443)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for b in h:
            s.sendall(bytes([b]))
        return s

    refused(in_pieces)
    body = h[5:]
    split = b"".join(
        b"\x16\x03\x01" + struct.pack(">H", len(x)) + x for x in (body[:60], body[60:])
    )
    refused(lambda: asks(e.connect("cdn.test", 443), split))
    refused(lambda: asks(e.connect("cdn.test", 443), b"\x15\x03\x01\0\x02\x01\0" + h))
    refused(lambda: asks(e.connect("cdn.test", 443), b"\x16\x03\x01\0\0" + h))
    same(lab.tls[CDN].names[before:], [])
    e.event(name="cdn.test", verdict="deny", rule="SNI mismatch: other.cdn.test")
    e.event(name="cdn.test", verdict="deny", rule="TLS without SNI")
    # To a bare address, the name decides, if it is the address's own.
    refused(lambda: asks(e.connect(EVIL, 443), L.hello("cdn.test")))
    e.event(name="cdn.test", address=EVIL, verdict="deny", rule="the name has another address")
    with L.tls(e.connect(CDN, 443), "cdn.test") as t:
        t.sendall(b"GET / HTTP/1.1\r\n\r\n")
        has(t.recv(100).decode(), "200 OK")
    # A good hello in two records gets through.
    h = L.hello("good.test")[5:]
    s = asks(
        e.connect("good.test", 443),
        b"".join(b"\x16\x03\x01" + struct.pack(">H", len(x)) + x for x in (h[:60], h[60:])),
    )
    same(s.recv(1), b"\x16")
    s.close()
    e.stop()


@test
def http_must_name_the_host_it_was_made_for(lab):
    e = lab.egress(["cdn.test"])
    before = lab.http[CDN].seen
    for request in (
        get("other.cdn.test"),
        get("cdn.test:81"),
        get(CDN),
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: cdn.test\r\nHost: other.cdn.test\r\n\r\n",
        b"GET http://other.cdn.test/ HTTP/1.1\r\nHost: cdn.test\r\n\r\n",
        b"CONNECT evil.test:443 HTTP/1.1\r\nHost: cdn.test\r\n\r\n",
        b"\r\nGET / HTTP/1.1\r\nHost: other.cdn.test\r\n\r\n",
        b"GET / HTTP/1.1\nHost: other.cdn.test\n\n",
        b"GET / HTTP/1.1\r\nHost : other.cdn.test\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: y\r\n Host: other.cdn.test\r\n\r\n",
        b"GET /\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: cdn.test\r\nContent-Length: 1\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n",
    ):
        answer = e.get("cdn.test", request=request)
        if " for " in answer:
            raise AssertionError("%r was answered: %r" % (request, answer))
    # A second request on the connection names another host: it never arrives.
    for body in (b"", b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n"):
        first = b"POST / HTTP/1.1\r\nHost: cdn.test\r\n" + body + b"\r\n"
        first += {b"": b"", b"C": b"abc", b"T": b"3\r\nabc\r\n0\r\n\r\n"}[body[:1]]
        answer = e.get("cdn.test", request=first + get("other.cdn.test"))
        has(answer, "for cdn.test")
        same("other" in answer, False)
    # Nor behind an upgrade that the server did not agree to.
    answer = e.get(
        "cdn.test",
        request=b"GET / HTTP/1.1\r\nHost: cdn.test\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
        + get("other.cdn.test"),
    )
    same("for other" in answer, False)
    answer = e.get(
        "cdn.test",
        request=b"GET / HTTP/1.1\r\nHost: cdn.test\r\nConnection: Upgrade\r\n"
        b"Upgrade: websocket\r\n\r\nhallo",
    )
    has(answer, "echo:hallo")
    if lab.http[CDN].seen <= before:
        raise AssertionError("nothing reached the server at all")
    e.stop()


@test
def the_proxy_port_is_no_way_round(lab):
    e = lab.egress(["good.test", "cdn.test:443"])

    def proxy(data, then=b""):
        s = e.ns.connect(*PROXY)
        s.sendall(data + then)
        try:
            return L.drain(s)
        finally:
            s.close()

    for data in (
        b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n",
        b"CONNECT cdn.test:80 HTTP/1.1\r\n\r\n",
        b"GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        b"GET http://good.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        b"CONNECT %s:80 HTTP/1.1\r\n\r\n" % EVIL.encode(),
    ):
        has(proxy(data), "403 Forbidden")
    for data in (
        b"CONNECT good.test HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: good.test\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET ftp://good.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n",
        b"\x16\x03\x01\0\x05hello",
    ):
        answer = proxy(data)
        if " 400 " not in answer and " 403 " not in answer:
            raise AssertionError("%r: %r" % (data, answer))
    has(
        proxy(
            b"GET http://good.test/a?b HTTP/1.1\r\nHost: good.test\r\n"
            b"Proxy-Authorization: x\r\n\r\n"
        ),
        "for good.test GET /a?b HTTP/1.1",
    )
    before = len(lab.tls[GOOD].names)
    s = e.ns.connect(*PROXY)
    s.sendall(b"CONNECT good.test:443 HTTP/1.1\r\n\r\n")
    has(L.read_head(s).decode(), "200 Connection")
    refused(lambda: asks(s, L.hello("evil.test")))
    same(lab.tls[GOOD].names[before:], [])
    s = e.ns.connect(*PROXY)
    s.sendall(b"CONNECT good.test:443 HTTP/1.1\r\n\r\n")
    L.read_head(s)
    with L.tls(s, "good.test") as t:
        t.sendall(b"GET / HTTP/1.1\r\n\r\n")
        has(t.recv(100).decode(), "200 OK")
    e.stop()


@test
def a_redirect_leads_to_another_decision(lab):
    e = lab.egress(["good.test"])
    answer = e.get(
        "good.test", request=b"GET /redirect/evil.test HTTP/1.1\r\nHost: good.test\r\n\r\n"
    )
    has(answer, "Location: http://evil.test/")
    same(e.resolve("evil.test")[0], 3)
    answer = e.get(
        "good.test",
        request=b"GET /redirect/%s HTTP/1.1\r\nHost: good.test\r\n\r\n" % PRIVATE.encode(),
    )
    refused(lambda: asks(e.connect(PRIVATE, 80), get(PRIVATE)))
    e.stop()


@test
def a_rule_that_is_withdrawn_ends_its_tunnels(lab):
    e = lab.egress(["good.test", CDN])
    s = asks(e.connect("good.test", 9000), b"\0hi")
    same(s.recv(10), b"\0hi")
    kept = asks(e.connect(CDN, 80), b"G")
    deadline = time.monotonic() + L.SOON
    while e.ask("stats")["opened"] < 2 and time.monotonic() < deadline:
        pass
    same(e.policy([CDN])["cut"], 1)
    try:
        same(s.recv(10), b"")
    except ConnectionResetError:
        pass
    s.close()
    e.event(name="good.test", port=9000, verdict="cut", rule="unlisted")
    kept.sendall(b"ET / HTTP/1.1\r\nHost: x\r\n\r\n")
    has(kept.recv(1000).decode(), "at " + CDN)
    same(e.policy([CDN], ["203.0.113.0/24"])["cut"], 1)
    try:
        kept.recv(10)
        kept.recv(10)
    except ConnectionResetError:
        pass
    kept.close()
    same(e.resolve("good.test")[0], 3)
    # A broken policy changes nothing.
    has(e.ask("policy 10", b"allow a/b\n")["error"], "a/b")
    same(e.policy(["good.test"])["cut"], 0)
    has(e.get("good.test"), "for good.test")
    e.stop()


@test
def slow_and_half_open_clients_end(lab):
    e = lab.egress(["good.test"], hello_ms=400, half_ms=400, idle_ms=2000)
    h = L.hello("good.test")
    half = asks(e.connect("good.test", 443), h[:50])  # half a hello, then silence
    silent = e.ns.connect(*PROXY)
    shown = asks(e.connect(GOOD, 443), h[:20])
    answered = e.connect("good.test", 9000)
    answered.sendall(b"\1")
    same(answered.recv(1), b"\1")
    answered.shutdown(socket.SHUT_WR)
    same(answered.recv(1), b"")  # the echo server ends, too
    banner = e.connect("good.test", 22)
    banner.recv(100)
    drip = e.connect("good.test", 443)

    def trickle():
        try:
            for b in h:
                drip.sendall(bytes([b]))
                time.sleep(0.05)
        except OSError:
            pass

    t = threading.Thread(target=trickle)
    t.start()
    for s in (half, silent, shown, drip, banner):
        refused(lambda: s)
    t.join()
    answered.close()
    same(e.ask("stats")["connections"], 0)
    e.event(verdict="deny", rule="the first bytes did not come in time")
    e.stop()


@test
def a_reader_that_stops_costs_little(lab):
    e = lab.egress(["good.test"])
    conns = [e.connect("good.test", 9001) for _ in range(20)]
    for c in conns:
        c.recv(1)
    deadline = time.monotonic() + 2
    top = 0
    while time.monotonic() < deadline and top == 0:
        top = e.ask("stats")["buffered"]
    if not 0 < top <= (16 << 20) + 20 * 65536:
        raise AssertionError("%d bytes are held" % top)
    total = 1
    while total < 32 << 20:  # one of them reads on: nothing is lost
        got = conns[0].recv(1 << 20)
        if not got:
            raise AssertionError("cut after %d bytes" % total)
        total += len(got)
    for c in conns:
        c.close()
    e.stop()


@test
def a_thousand_idle_connections(lab):
    e = lab.egress(["good.test"])
    conns = [e.connect("good.test", 9000) for _ in range(1000)]
    deadline = time.monotonic() + L.SOON
    while e.ask("stats")["opened"] < 1000 and time.monotonic() < deadline:
        pass
    same(e.ask("stats")["connections"], 1000)
    same(e.ask("stats")["buffered"], 0)
    has(e.get("good.test"), "for good.test")
    for i in (0, 500, 999):
        conns[i].sendall(b"\0still here")
        same(conns[i].recv(100), b"\0still here")
    with open("/proc/%d/status" % e.proc.pid, encoding="ascii") as f:
        rss = [x.split()[1] for x in f if x.startswith("VmRSS")][0]
    print("# 1000 idle connections: %s kB resident" % rss)
    same(e.policy([])["cut"], 1000)
    for c in conns:
        c.close()
    same(e.ask("stats")["connections"], 0)
    e.stop()


@test
def more_connections_than_allowed_are_reset(lab):
    e = lab.egress(["good.test"], max_connections=5)
    conns = [asks(e.connect("good.test", 9000), b"\1") for _ in range(5)]
    for c in conns:
        same(c.recv(1), b"\1")
    alias = e.alias("good.test")
    refused(lambda: asks(e.ns.connect(alias, 9000), b"\1"))
    conns.pop().close()
    deadline = time.monotonic() + L.SOON
    while e.ask("stats")["connections"] > 4 and time.monotonic() < deadline:
        pass
    s = asks(e.ns.connect(alias, 9000), b"\1")
    same(s.recv(1), b"\1")
    for c in conns + [s]:
        c.close()
    e.stop()


@test
def events_are_limited_and_counted(lab):
    e = lab.egress(["good.test"])
    for i in range(400):
        e.resolve("n%d.evil.test" % i)
    deadline = time.monotonic() + L.SOON
    left_out = 0
    while left_out < 100 and time.monotonic() < deadline:
        e.resolve("last.evil.test")
        e.read_events()
        left_out = sum(x["left_out"] for x in e.events)
    if left_out < 100:
        raise AssertionError("only %d events were left out" % left_out)
    stats = e.ask("stats")
    if stats["events"] > 250 or stats["refused"] < 400:
        raise AssertionError("%r" % stats)
    e.stop()


@test
def it_ends_with_its_session_and_cuts_it_off_when_it_dies(lab):
    e = lab.egress(["good.test"])
    s = asks(e.connect("good.test", 9000), b"\1")
    same(s.recv(1), b"\1")
    alias = e.alias("good.test")
    e.proc.kill()
    e.proc.wait()
    try:
        same(s.recv(1), b"")
    except OSError:
        pass
    s.close()
    try:
        e.ns.connect(alias, 80, 2).close()
        raise AssertionError("still connected to something")
    except OSError:
        pass
    e.box.kill()
    e.box.wait()
    # Nobody at the control socket and no session to watch: it does not stay behind.
    e = lab.egress(["good.test"])
    e.control.close()
    e.reader.close()
    same(e.proc.wait(timeout=L.SOON), 0)
    e.box.kill()
    e.box.wait()
    e = lab.egress(["good.test"])
    same(e.ask("watch %d" % e.box.pid), {"ok": True})
    e.control.close()
    e.reader.close()
    try:
        e.proc.wait(timeout=0.3)
        raise AssertionError("ended while its session lives")
    except Exception as x:
        if "timed out" not in str(x):
            raise
    e.box.kill()
    e.box.wait()
    same(e.proc.wait(timeout=L.SOON), 0)


def main():
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    )
    only = sys.argv[3:]
    lab = L.Lab(sys.argv[1], sys.argv[2])
    failed = 0
    try:
        for n, fn in enumerate(t for t in TESTS if not only or t.__name__ in only):
            begin = time.monotonic()
            try:
                fn(lab)
                print(
                    "ok %d - %s # %.1f s"
                    % (n + 1, fn.__name__.replace("_", " "), time.monotonic() - begin)
                )
            except Exception:
                failed += 1
                print("not ok %d - %s" % (n + 1, fn.__name__.replace("_", " ")))
                print("".join("# " + x + "\n" for x in traceback.format_exc().splitlines()), end="")
            sys.stdout.flush()
        print("1..%d" % (n + 1))
    finally:
        lab.stop()
    os._exit(1 if failed else 0)  # threads that wait in accept do not matter


main()
