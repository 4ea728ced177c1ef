# SPDX-License-Identifier: MIT
"""A small world for sb-egress, made of network namespaces in one process: `world`, where the host
and sb-egress are; `internet`, with servers on public addresses and a resolver; and a session's
namespace for each proxy. A thread enters a namespace to make a socket or start a program there; the
socket stays in it."""
import ctypes
import json
import os
import select
import socket
import ssl
import struct
import subprocess
import threading
import time

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
SOON = 15  # seconds; longer than anything here takes

GOOD, CDN, EVIL, PRIVATE = "203.0.113.10", "203.0.113.20", "203.0.113.66", "10.9.9.9"
GOOD6 = "2001:db8:2::10"
RESOLVER = "198.51.100.53"
WORLD = "192.0.2.1"  # the host's own address
PROXY = ("198.18.0.1", 3128)


def check(ok, what):
    if not ok:
        raise OSError(ctypes.get_errno(), what)


def in_thread(fn):
    """Runs `fn` in a thread of its own, whose namespace may change; gives its result."""
    box = {}

    def run():
        try:
            box["value"] = fn()
        except BaseException as e:  # handed to the caller
            box["error"] = e

    t = threading.Thread(target=run)
    t.start()
    t.join()
    if "error" in box:
        raise box["error"]
    return box.get("value")


class Namespace:
    def __init__(self, new=True):
        def make():
            if new:
                check(LIBC.unshare(CLONE_NEWNET) == 0, "unshare")
            return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

        self.fd = in_thread(make)

    def run(self, fn):
        def inside():
            check(LIBC.setns(self.fd, CLONE_NEWNET) == 0, "setns")
            return fn()

        return in_thread(inside)

    def ip(self, *args):
        self.run(lambda: subprocess.run(("ip",) + args, check=True))

    def socket(self, family=socket.AF_INET, kind=socket.SOCK_STREAM):
        s = self.run(lambda: socket.socket(family, kind))
        s.settimeout(SOON)
        return s

    def connect(self, host, port, timeout=SOON):
        s = self.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        s.settimeout(timeout)
        try:
            s.connect((host, port))
        except BaseException:
            s.close()
            raise
        return s

    def listen(self, host, port):
        s = self.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((host, port))
        s.listen(1024)
        s.settimeout(None)
        return s

    def start(self, *argv, **kw):
        return self.run(lambda: subprocess.Popen(argv, **kw))


class Server:
    """Accepts at one address; `serve` gets each connection in a thread and closes it at its end."""

    def __init__(self, ns, host, port, serve):
        self.where, self.seen, self.serve = (host, port), 0, serve
        self.sock = ns.listen(host, port)
        threading.Thread(target=self.loop, daemon=True).start()

    def loop(self):
        while True:
            try:
                c, _ = self.sock.accept()
            except OSError:
                return
            self.seen += 1
            threading.Thread(target=self.one, args=(c,), daemon=True).start()

    def one(self, c):
        try:
            c.settimeout(SOON)
            self.serve(c, self.where[0])
        except OSError:
            pass
        finally:
            c.close()


def read_head(c):
    data = b""
    while b"\r\n\r\n" not in data:
        got = c.recv(4096)
        if not got:
            break
        data += got
    return data


def serve_http(c, host):
    """Answers every request on the connection with where it arrived and its Host."""
    data = b""
    while True:
        while b"\r\n\r\n" not in data:
            got = c.recv(65536)
            if not got:
                return
            data += got
        head, data = data.split(b"\r\n\r\n", 1)
        lines = head.split(b"\r\n")
        named = [x[5:].strip().decode() for x in lines if x.lower().startswith(b"host:")]
        path = lines[0].split(b" ")[1].decode()
        if path.startswith("/redirect/"):
            c.sendall(
                b"HTTP/1.1 302 Found\r\nLocation: http://%s/\r\nContent-Length: 0\r\n\r\n"
                % path[10:].encode()
            )
            return
        if b"upgrade: websocket" in head.lower():
            c.sendall(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                b"Connection: Upgrade\r\n\r\n"
            )
            c.sendall(b"echo:" + c.recv(100))
            return
        body = ("at %s for %s%s\n" % (host, ",".join(named), " " + lines[0].decode())).encode()
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        if b"connection: close" in head.lower():
            return


def serve_banner(c, host):
    c.sendall(b"220 banner of %s\r\n" % host.encode())
    while c.recv(1000):
        pass


def serve_echo(c, host):
    c.settimeout(None)
    while True:
        data = c.recv(65536)
        if not data:
            return
        c.sendall(data)


def serve_flood(c, host):
    block = b"x" * 65536
    for _ in range(512):
        c.sendall(block)


class TlsServer(Server):
    def __init__(self, ns, host, port, cert):
        self.names = []
        ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ctx.load_cert_chain(cert)
        ctx.sni_callback = lambda s, name, c: self.names.append(name)

        def serve(c, where):
            with ctx.wrap_socket(c, server_side=True) as t:
                t.recv(1000)
                t.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

        super().__init__(ns, host, port, serve)


class Resolver:
    """A name server; `names[name]` is a list of addresses, or a function that gives one."""

    def __init__(self, ns, host):
        self.names, self.asked = {}, []
        self.sock = ns.socket(kind=socket.SOCK_DGRAM)
        self.sock.settimeout(None)
        self.sock.bind((host, 53))
        threading.Thread(target=self.loop, daemon=True).start()

    def loop(self):
        while True:
            try:
                q, frm = self.sock.recvfrom(4096)
            except OSError:
                return
            reply = self.answer(q)
            if reply:
                self.sock.sendto(reply, frm)

    def answer(self, q):
        at, labels = 12, []
        while q[at]:
            labels.append(q[at + 1 : at + 1 + q[at]].decode())
            at += q[at] + 1
        question = q[12 : at + 5]
        kind = struct.unpack(">H", q[at + 1 : at + 3])[0]
        name = ".".join(labels)
        self.asked.append(name)
        addrs = self.names.get(name)
        if callable(addrs):
            addrs = addrs(kind)
        if addrs is None:
            return q[:2] + struct.pack(">HHHHH", 0x8183, 1, 0, 0, 0) + question
        records = b""
        n = 0
        for a in addrs:
            family = socket.AF_INET6 if ":" in a else socket.AF_INET
            if kind == (28 if ":" in a else 1):
                raw = socket.inet_pton(family, a)
                records += b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 0, len(raw)) + raw
                n += 1
        return q[:2] + struct.pack(">HHHHH", 0x8180, 1, n, 0, 0) + question + records


class Egress:
    """A session's namespace with its proxy."""

    def __init__(self, lab, allow=(), deny=(), session="s1", **numbers):
        self.lab, self.ns = lab, Namespace()
        self.box = self.ns.start("sleep", "600")
        self.path = os.path.join(lab.dir, "c%d" % lab.count)
        lab.count += 1
        argv = [
            lab.program,
            "serve",
            "-s",
            session,
            "-c",
            self.path,
            "-p",
            str(self.box.pid),
            "-r",
            RESOLVER,
            "-H",
            os.path.join(lab.dir, "hosts"),
        ]
        for k, v in numbers.items():
            argv += ["-o", "%s=%d" % (k, v)]
        self.proc = lab.world.start(*argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.proc.stdin.write(self.text(allow, deny))
        self.proc.stdin.close()
        line = self.proc.stdout.readline()
        if not line.startswith(b"ready"):
            raise RuntimeError("sb-egress did not start: %r" % line)
        self.events, self.lines = [], {}
        self.control = self.open_control()
        self.reader = self.open_control()
        self.reader.sendall(b"events 0\n")
        lab.started.append(self)

    @staticmethod
    def text(allow, deny):
        return (
            "".join("allow %s\n" % a for a in allow) + "".join("deny %s\n" % d for d in deny)
        ).encode()

    def open_control(self):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(SOON)
        s.connect(self.path)
        return s

    def line(self, sock):
        data = self.lines.get(sock, b"")
        while b"\n" not in data:
            got = sock.recv(65536)
            if not got:
                raise EOFError("the control socket was closed")
            data += got
        first, self.lines[sock] = data.split(b"\n", 1)
        return json.loads(first)

    def ask(self, text, data=b""):
        self.control.sendall(text.encode() + b"\n" + data)
        return self.line(self.control)

    def policy(self, allow=(), deny=()):
        data = self.text(allow, deny)
        return self.ask("policy %d" % len(data), data)

    def event(self, **want):
        """The first event from now or before that has these values; fails when none comes."""
        for e in self.events:
            if all(e.get(k) == v or (callable(v) and v(e.get(k))) for k, v in want.items()):
                return e
        while True:
            try:
                e = self.line(self.reader)
            except socket.timeout:
                raise AssertionError("no event with %r, but %r" % (want, self.events[-8:]))
            self.events.append(e)
            if all(e.get(k) == v or (callable(v) and v(e.get(k))) for k, v in want.items()):
                return e

    def read_events(self):
        """Takes what has come, and waits a moment for more."""
        self.reader.settimeout(0.05)
        try:
            while True:
                self.events.append(self.line(self.reader))
        except socket.timeout:
            pass
        finally:
            self.reader.settimeout(SOON)

    def resolve(self, name, kind=1, server="198.18.0.1", tcp=False, raw=None):
        """(rcode, [addresses]) of a question from inside; None when nothing comes back."""
        q = raw or (
            b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
            + b"".join(bytes([len(x)]) + x.encode() for x in name.split("."))
            + b"\0"
            + struct.pack(">HH", kind, 1)
        )
        if tcp:
            s = self.ns.connect(server, 53)
            s.sendall(struct.pack(">H", len(q)) + q)
            r = b""
            while len(r) < 2 or len(r) < 2 + struct.unpack(">H", r[:2])[0]:
                got = s.recv(4096)
                if not got:
                    s.close()
                    return None
                r += got
            r = r[2:]
        else:
            s = self.ns.socket(
                socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM
            )
            s.connect((server, 53))
            s.send(q)
            r = s.recv(4096)
        s.close()
        n = struct.unpack(">H", r[6:8])[0]
        return r[3] & 15, [socket.inet_ntoa(r[-4:])] if n else []

    def alias(self, name):
        rcode, addrs = self.resolve(name)
        if rcode != 0 or not addrs:
            raise AssertionError("%s: rcode %d" % (name, rcode))
        return addrs[0]

    def connect(self, host, port, timeout=SOON):
        return self.ns.connect(
            host if host[0].isdigit() or ":" in host else self.alias(host), port, timeout
        )

    def get(self, host, port=80, name=None, request=None):
        """What an HTTP request from inside is answered with, up to the end of the connection."""
        s = self.connect(host, port)
        try:
            s.sendall(
                request
                or b"GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n"
                % (name or host).encode()
            )
            return drain(s)
        finally:
            s.close()

    def stop(self):
        self.control.close()
        self.reader.close()
        self.box.kill()
        self.box.wait()
        code = self.proc.wait(timeout=SOON)  # it goes with its session
        self.proc.stdout.close()
        if code != 0:
            raise AssertionError("sb-egress ended with %d" % code)
        return code


def drain(s):
    data = b""
    while True:
        got = s.recv(65536)
        if not got:
            return data.decode(errors="replace")
        data += got


def hello(name):
    """A real TLS hello that asks for `name` (None: for nobody)."""
    ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ctx.check_hostname = False
    ctx.verify_mode = ssl.CERT_NONE
    out = ssl.MemoryBIO()
    t = ctx.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    try:
        t.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


def tls(s, name):
    ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ctx.check_hostname = False
    ctx.verify_mode = ssl.CERT_NONE
    return ctx.wrap_socket(s, server_hostname=name)


class Lab:
    def __init__(self, program, directory):
        self.program, self.dir, self.count, self.started = program, directory, 0, []
        self.world, self.internet = Namespace(), Namespace()
        self.link()
        with open(os.path.join(directory, "hosts"), "w", encoding="ascii") as f:
            f.write("127.0.0.1 localhost\n%s intranet.test\n" % PRIVATE)
        cert = os.path.join(directory, "cert.pem")
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-keyout",
                cert,
                "-out",
                cert + ".crt",
                "-subj",
                "/CN=lab",
                "-days",
                "2",
            ],
            check=True,
            capture_output=True,
        )
        with open(cert, "a", encoding="ascii") as f, open(cert + ".crt", encoding="ascii") as crt:
            f.write(crt.read())
        self.dns = Resolver(self.internet, RESOLVER)
        self.dns.names.update(
            {
                "good.test": [GOOD, GOOD6],
                "cdn.test": [CDN],
                "evil.test": [EVIL],
                "www.good.test": [GOOD],
                "other.cdn.test": [CDN],
                "deny.good.test": [GOOD],
            }
        )
        self.http = {
            h: Server(self.internet, h, 80, serve_http) for h in (GOOD, CDN, EVIL, PRIVATE, GOOD6)
        }
        self.tls = {h: TlsServer(self.internet, h, 443, cert) for h in (GOOD, CDN, EVIL)}
        self.banner = Server(self.internet, GOOD, 22, serve_banner)
        self.echo = Server(self.internet, GOOD, 9000, serve_echo)
        self.flood = Server(self.internet, GOOD, 9001, serve_flood)
        self.local = Server(self.world, "127.0.0.1", 8000, serve_http)
        self.own = Server(self.world, WORLD, 8000, serve_http)

    def link(self):
        w, i = self.world, self.internet
        w.ip("link", "set", "lo", "up")
        i.ip("link", "set", "lo", "up")
        i.run(
            lambda: subprocess.run(
                [
                    "ip",
                    "link",
                    "add",
                    "i0",
                    "type",
                    "veth",
                    "peer",
                    "name",
                    "w0",
                    "netns",
                    "/proc/%d/fd/%d" % (os.getpid(), w.fd),
                ],
                check=True,
            )
        )
        w.ip("addr", "add", WORLD + "/24", "dev", "w0")
        i.ip("addr", "add", "192.0.2.2/24", "dev", "i0")
        w.ip("addr", "add", "2001:db8:1::1/64", "dev", "w0", "nodad")
        i.ip("addr", "add", "2001:db8:1::2/64", "dev", "i0", "nodad")
        w.ip("link", "set", "w0", "up")
        i.ip("link", "set", "i0", "up")
        for a in (GOOD, CDN, EVIL, PRIVATE, RESOLVER, "169.254.169.254"):
            i.ip("addr", "add", a + "/32", "dev", "lo")
        i.ip("addr", "add", GOOD6 + "/128", "dev", "lo", "nodad")
        w.ip("route", "add", "default", "via", "192.0.2.2")
        w.ip("-6", "route", "add", "default", "via", "2001:db8:1::2")

    def egress(self, *args, **kw):
        return Egress(self, *args, **kw)

    def stop(self):
        for e in self.started:
            if e.proc.poll() is None:
                e.stop()
