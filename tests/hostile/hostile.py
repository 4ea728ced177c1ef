#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The engine against peers that speak its protocol and lie.

  hostile.py DRIVER SBSYNC [CASE]...

Each lie ends in an error of one clean line, in bounded time and memory; nothing is changed,
inside or outside. Prints TAP.
"""
import io
import os
import resource
import select
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import sandbox  # noqa: E402
import trees  # noqa: E402
from wire import *  # noqa: E402

SECONDS = 60
MEMORY = 2 << 30

# what the liar says -> 1: must fail; 0: may also end well, with the truth in place
PULL_LIES = {
    k: 1
    for k in """noise silence future cut long-frame wrong-type wrong-phase error error-brake count
    empty identity base-known data-garbage data-huge data-flood data-name rows rows-digest rows-none
    bad-proof dotdot absolute slash nul dot stage truncated flip blob-claims bomb endless-blob
    empty-blob""".split()
}
PULL_LIES.update(
    {
        "motd": 0,
        "ping-flood": 0,
        "ping-forever": 1,
        "forge-8eib": 1,
        "forge-sum": 1,
        "forge-stage": 1,
        "forge-empty-stage": 1,
    }
)
PULL_LIES.update(
    {k: 0 for k in "delta-copy delta-far delta-zero delta-nonsense delta-endless".split()}
)
TELLING = [k for k in PULL_LIES if k.split("-")[0] in ("forge", "delta") or k == "ping-forever"]
PUSH_LIES = {
    k: 1
    for k in "result-bomb result-outside need-outside bad-proof need-forever wrong-phase".split()
}
PUSH_LIES.update(
    {k: 0 for k in "result-lie result-names need sigs-garbage sigs-bomb sigs-zero".split()}
)


from sandbox import Bad  # noqa: E402


def bounded():
    if not os.environ.get("SB_SANITIZED"):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def clean(out):
    """One line without control characters."""
    if len(out.strip().split("\n")) != 1:
        raise Bad("more than one line: %r" % out)
    for ch in out.strip("\n"):
        if ord(ch) < 32 or 0x7F <= ord(ch) < 0xA0 or ch in "\u202e\u202d\u2066":
            raise Bad("unescaped in %r" % out)


def run(args, cwd, state):
    env = dict(os.environ, SBSYNC_STATE_DIR=state)
    p = subprocess.Popen(
        args,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=bounded,
        start_new_session=True,
    )
    try:
        out, err = p.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, 9)
        raise Bad("does not end")
    if p.returncode < 0 or b"Sanitizer" in err:
        raise Bad("died of %d: %s" % (-p.returncode, err[-2000:]))
    return p.returncode, err.decode("utf-8", "surrogateescape")


def snapshot(top, but=()):
    return {
        p: e
        for p, e in trees.listing(top).items()
        if p.split(b"/")[0] not in but and not p.startswith(b".sbsync-stage") and p != b""
    }


def same(before, after, what):
    for p in sorted(set(before) | set(after)):
        if before.get(p) != after.get(p):
            raise Bad("%s: %r was %r, is %r" % (what, p, before.get(p), after.get(p)))


def work_tree(top):
    for d in ("ws", "outside"):
        os.makedirs(os.path.join(top, d, "sub"))
        for i in range(5):
            trees.put(os.path.join(top, d, "sub", "f%d" % i), b"%s %d\n" % (d.encode(), i))
        trees.put(os.path.join(top, d, "local-file"), b"local " * 30000)


def lying_agent(opts, case, push, must_fail):
    top = tempfile.mkdtemp(prefix="hostile.")
    state = os.path.join(top, "state")
    agent = [sys.executable, os.path.join(HERE, "agent.py")]
    try:
        work_tree(top)
        honest = [opts["sbsync"], "agent"]
        code, err = run([opts["driver"], "start", "ws", "runtime"] + honest, top, state)
        if code:
            raise Bad("an honest start: %s" % err)
        if push:
            with open(os.path.join(top, "ws", "local-file"), "r+b") as f:
                f.seek(70000)
                f.write(b"EDIT")
            shutil.rmtree(os.path.join(state, "pairs"))
        else:
            for i in range(3):
                trees.put(
                    os.path.join(top, "runtime", "wanted-file" + "x" * i),
                    b"from the sandbox %d\n" % i * 5000,
                )
            trees.put(os.path.join(top, "runtime", "sub", "f1"), b"edited in the sandbox\n")
            os.unlink(os.path.join(top, "runtime", "sub", "f2"))
            if case.startswith("delta-"):
                with open(os.path.join(top, "runtime", "local-file"), "r+b") as f:
                    f.seek(70000)
                    f.write(b"EDIT")
                shutil.rmtree(
                    os.path.join(state, "pairs")
                )  # and with it the base store: no patches
            elif (
                case in PULL_LIES
                and case not in ("base-known", "empty", "identity")
                and hash_of(case) % 2
            ):
                shutil.rmtree(os.path.join(state, "pairs"))  # the whole listing instead of changes
        before = snapshot(os.path.join(top, "ws"))
        out = snapshot(top, (b"ws", b"runtime", b"state"))
        told = os.path.join(state, "told")
        os.environ.update(HOSTILE_TOLD=told, HOSTILE_DRIVER=opts["driver"])
        if case == "ping-forever":
            os.environ["HOSTILE_MS"] = "2000"
        code, err = run(
            [opts["driver"], "turn" if push else "stop", "ws", "runtime"]
            + agent
            + [case, opts["sbsync"]],
            top,
            state,
        )
        os.environ.pop("HOSTILE_MS", None)
        if case in TELLING and not os.path.exists(told):
            raise Bad("it did not come to the lie: exit %d %s" % (code, err))
        same(out, snapshot(top, (b"ws", b"runtime", b"state")), "outside")
        if code == 1:
            clean(err)
            same(before, snapshot(os.path.join(top, "ws")), "workspace after a lie")
        elif must_fail:
            raise Bad("exit %d: the lie was believed" % code)
        if case == "honest" or (code == 0 and case.startswith("delta-")):
            same(
                snapshot(os.path.join(top, "ws")),
                snapshot(os.path.join(top, "runtime")),
                "an honest agent",
            )
        elif os.environ.get("SB_VERBOSE"):
            print("# %s: %d %s" % (case, code, err.strip()))
    finally:
        shutil.rmtree(top, ignore_errors=True)


def hash_of(s):
    return sum(s.encode())


class Controller:
    """Speaks to a real agent; what it says is up to the case."""

    def __init__(self, opts, top):
        self.top = top
        env = dict(os.environ, SBSYNC_STATE_DIR=os.path.join(top, "state"))
        self.p = subprocess.Popen(
            [opts["sbsync"], "agent"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=top,
            env=env,
            preexec_fn=bounded,
        )
        self.proof = Proof()
        self.data = b""
        self.marked = False

    def send(self, kind, payload=b""):
        f = frame(kind, payload)
        self.proof.add(f)
        self.data += f

    def blob(self, kind, data, raw=None):
        for k, p in blob_frames(kind, data, raw):
            self.send(k, p)

    def hello(self):
        self.send(HELLO, struct.pack("<III", 1, 1, 0) + text(b"liar"))

    def begin(self, root=b"root", flags=1, rules=b"\x01\x00"):
        self.send(BEGIN, struct.pack("<I", flags) + varint(1) + bytes(64) + text(root))
        self.blob(RULES, rules)

    def open(self, **kw):
        self.hello()
        self.begin(**kw)

    def plan(self, *rows):
        self.blob(PLAN, plan(rows))

    def commit(self):
        self.send(COMMIT, b"\0\0" + struct.pack("<H", 0o755) + svarint(0))

    def answer(self, frames=None):
        """The kinds of the next frames, up to a PROOF or an ERROR."""
        kinds = []
        if not self.marked:
            self.marked = self.p.stdout.read(len(MARKER)) == MARKER
        while not kinds or (kinds[-1] not in (PROOF, ERROR) and len(kinds) != frames):
            head = self.p.stdout.read(5)
            if len(head) < 5:
                raise Bad("it ended")
            n, kind = struct.unpack("<IB", head)
            self.p.stdout.read(n)
            kinds.append(kind)
        return kinds

    def finish(self):
        try:
            out, err = self.p.communicate(self.data, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.p.kill()
            raise Bad("does not end")
        if self.p.returncode < 0 or b"Sanitizer" in err:
            raise Bad("died of %d: %s" % (-self.p.returncode, err[-2000:]))
        kinds, said, at = [], None, len(MARKER)
        while at + 5 <= len(out):
            n, kind = struct.unpack("<IB", out[at : at + 5])
            kinds.append(kind)
            if kind == ERROR:
                said = out[at + 5 : at + 5 + n]
            at += 5 + n
        return self.p.returncode, kinds, said, out


FILE = {"type": 2, "size": 1, "digest": b"d" * 16}
EMPTY = {
    "type": 2,
    "size": 0,
    "digest": b"\x99\xaa\x06\xd3\x01\x47\x98\xd8\x60\x01\xc3\x24\x46\x8d\x49\x7f",
}
DIR = {"type": 1, "mode": 0o755}


def link(target):
    return {"type": 3, "target": target}


def c_plan(*rows, commit=True):
    def case(c):
        c.open()
        c.plan(*rows)
        if commit:
            c.commit()

    return case


def c_raw(kind, payload, opened=True):
    def case(c):
        if opened:
            c.open()
        c.send(kind, payload)

    return case


def c_blob(kind, data, raw=None):
    def case(c):
        c.open()
        c.blob(kind, data, raw)

    return case


def c_bomb(kind):
    def case(c):
        c.open()
        z = bomb(1 << 30)
        c.send(kind, b"\1" + struct.pack("<QQ", 1 << 30, len(z)) + z)

    return case


def c_version(c):
    c.send(HELLO, struct.pack("<III", 99, 98, 0) + text(b"liar"))


def c_readonly(c):
    c.open(flags=1 | 128)
    c.plan((b"new", EMPTY, MAKE))
    c.commit()


def c_twice(c):
    c.open()
    for rows in [], [(b"new", EMPTY, MAKE)]:
        c.plan(*rows)
        c.commit()


def c_bad_proof(c):
    c.open()
    c.send(PROOF, bytes(32))


def c_flood(c):
    c.open()
    c.data += frame(PING) * 200000
    c.send(200)


def c_deep(c):
    c.open()
    rows, path = [], b"d"
    for _ in range(1000):
        rows.append((path, DIR, MAKE))
        path += b"/d"
    rows.append((b"../x", DIR, MAKE))
    c.plan(*rows)
    c.commit()


CONTROLLER_LIES = {
    "path ..": c_plan((b"../escape", EMPTY, MAKE)),
    "path a/../..": c_plan((b"sub/../../escape", EMPTY, MAKE)),
    "absolute path": c_plan((b"/tmp/sbsync-escape", EMPTY, MAKE)),
    "empty component": c_plan((b"sub//x", EMPTY, MAKE)),
    "trailing slash": c_plan((b"new/", EMPTY, MAKE)),
    "dot": c_plan((b"./x", EMPTY, MAKE)),
    "NUL in a name": c_plan((b"a\0b", EMPTY, MAKE)),
    "component of 300 bytes": c_plan((b"x" * 300, EMPTY, MAKE)),
    "the root as a file": c_plan((b"", EMPTY, MAKE)),
    "the root deleted": c_plan((b"", None, DELETE)),
    "the stage as a file": c_plan((b".sbsync-stage/journal", EMPTY, MAKE)),
    "the stage deleted": c_plan((b".sbsync-stage", None, DELETE)),
    "one path twice": c_plan((b"new", EMPTY, MAKE), (b"new", EMPTY, MAKE)),
    "a file and something in it": c_plan((b"new", EMPTY, MAKE), (b"new/in", EMPTY, MAKE)),
    "wrong order": c_plan((b"z", EMPTY, MAKE), (b"a", EMPTY, MAKE)),
    "a file through a link of the plan": c_plan(
        (b"l", link(b"../outside"), MAKE), (b"l/x", EMPTY, MAKE)
    ),
    "a file through a link that is there": c_plan((b"out/x", EMPTY, MAKE)),
    "a deletion through a link": c_plan((b"out/sub", None, DELETE)),
    "a deletion of nothing": c_plan((b"nothing", None, DELETE)),
    "a clone from outside": c_plan((b"new", FILE, CLONE, b"../outside/local-file")),
    "a clone through a link": c_plan((b"new", FILE, CLONE, b"out/local-file")),
    "a clone of what is not there": c_plan((b"new", FILE, CLONE, b"nothing")),
    "a clone of an excluded file": c_plan((b"new", FILE, CLONE, b".sbsync-stage/x")),
    "a move from outside": c_plan((b"new", FILE, MOVE, b"../outside/local-file")),
    "a move through a link": c_plan((b"new", FILE, MOVE, b"out/local-file")),
    "a move onto a file": c_plan((b"local-file", FILE, MOVE, b"sub/f1")),
    "a directory moved into itself": c_plan((b"sub/in", DIR, MOVE, b"sub")),
    "a hard link to outside": c_plan(
        (b"new", dict(FILE, leader=b"../outside/local-file"), HARDLINK)
    ),
    "a hard link through a link": c_plan((b"new", dict(FILE, leader=b"out/local-file"), HARDLINK)),
    "a mode of nothing": c_plan((b"nothing", FILE, META)),
    "data that never comes": c_plan((b"new", FILE, WHOLE)),
    "a leftover that is not there, then commit": c_plan((b"new", FILE, LEFTOVER)),
    "8 EiB": c_plan((b"new", dict(FILE, size=(8 << 60) - 1), WHOLE)),
    "sizes beyond 2^64": c_plan(
        (b"new1", dict(FILE, size=2**64 - 1), WHOLE),
        (b"new2", dict(FILE, size=2**64 - 1), WHOLE),
    ),
    "an unknown type": c_plan((b"new", {"type": 0, "mode": 0}, 99)),
    "depth 1000, then ..": c_deep,
    "a plan of 2^60 changes": c_blob(PLAN, text(b"SBDF\x01" + varint(2**60) + bytes(8))),
    "an empty plan blob": c_raw(PLAN, b""),
    "a bomb as plan": c_bomb(PLAN),
    "a bomb as rules": c_bomb(RULES),
    "a bomb as list": c_bomb(LIST),
    "a blob that claims 2^62 bytes": c_blob(WANT, b"x", 1 << 62),
    "wanted: outside": c_blob(WANT, varint(1) + text(b"../outside/local-file") + b"\0"),
    "wanted: absolute": c_blob(WANT, varint(1) + text(b"/etc/passwd") + b"\0"),
    "wanted: 2^60 files": c_blob(WANT, varint(2**60)),
    "wanted: source outside": c_blob(
        WANT, varint(1) + text(b"local-file") + b"\x10" + text(b"../outside/local-file")
    ),
    "wanted: a signature of 2^40": c_blob(
        WANT, varint(1) + text(b"local-file") + b"\x04" + varint(2**40)
    ),
    "signed: outside": c_blob(SIGREQ, varint(1) + text(b"../outside/local-file")),
    "listed: outside": c_blob(LIST, varint(1) + text(b"../outside")),
    "listed: a link": c_blob(LIST, varint(1) + text(b"out")),
    "rows for nothing": c_raw(ROWS, b"\0" * 100),
    "data for nothing": c_raw(DATA, b"\0" + struct.pack("<I", 10) + b"x" * 10),
    "data of 4 GiB": c_raw(DATA, b"\1" + struct.pack("<I", 0xFFFFFFFF) + b"x" * 10),
    "an unknown message": c_raw(200, b""),
    "an agent's message": c_raw(SCAN, bytes(60)),
    "nothing opened": c_raw(COMMIT, b"\0\0" + bytes(3), opened=False),
    "another version": c_version,
    "a change of a root opened for reading": c_readonly,
    "a plan after the commit": c_twice,
    "a bad proof": c_bad_proof,
    "a flood of pings, then nonsense": c_flood,
    "rules of nonsense": lambda c: c.open(rules=b"\x07\xff\xff"),
    "a pattern bomb": lambda c: (
        c.open(rules=b"\x01\x01\x03" + text(b"") + varint(1) + text(b"**/" * 300000 + b"x")),
        c.send(200),
    ),
    "a root with NUL": lambda c: c.open(root=b"root\0x"),
    "a root of 1 MiB": lambda c: c.open(root=b"x" * (1 << 20)),
}


# These are not to get as far as a scan.
EARLY = (
    "nothing opened",
    "another version",
    "rules of nonsense",
    "a pattern bomb",
    "a root with NUL",
    "a root of 1 MiB",
)


def honest_controller(opts):
    """What the lies are made of does work when it is true."""
    top = tempfile.mkdtemp(prefix="hostile.")
    try:
        os.mkdir(os.path.join(top, "root"))
        c = Controller(opts, top)
        c_plan((b"d", DIR, MAKE), (b"d/new", EMPTY, MAKE), (b"link", link(b"x"), MAKE))(c)
        code, kinds, said, out = c.finish()
        if (
            RESULT not in kinds
            or os.path.getsize(os.path.join(top, "root", "d", "new")) != 0
            or os.readlink(os.path.join(top, "root", "link")) != "x"
        ):
            raise Bad("%r %r" % (kinds, said))
    finally:
        subprocess.run(["rm", "-rf", top])


def cut_controller(opts):
    """A connection that ends behind the data: all of it is there for the next one."""
    top = tempfile.mkdtemp(prefix="hostile.")
    many = 600
    try:
        os.mkdir(os.path.join(top, "root"))
        raw = io.BytesIO()
        with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as t:
            for i in range(many):
                e = tarfile.TarInfo("f%04d" % i)
                e.size = 500
                t.addfile(e, io.BytesIO(b"%04d " % i * 100))
        c = Controller(opts, top)
        c.open()
        c.plan(
            *[(b"f%04d" % i, {"type": 2, "size": 500, "digest": None}, WHOLE) for i in range(many)]
        )
        c.send(DATA, b"\0" + struct.pack("<I", len(raw.getvalue())) + raw.getvalue())
        c.finish()
        c = Controller(opts, top)
        c.open()
        code, kinds, said, out = c.finish()
        if HAVE not in kinds:
            raise Bad("nothing is left: %r %r" % (kinds, said))
        at = len(MARKER)
        while out[at + 4] != HAVE:
            at += 5 + struct.unpack("<I", out[at : at + 4])[0]
        size, packed = struct.unpack("<QQ", out[at + 6 : at + 22])
        have = decompress(out[at + 22 : at + 22 + packed], size)
        if have[:2] != varint(many):
            raise Bad("%d bytes of leftovers, not %d files" % (len(have), many))
    finally:
        subprocess.run(["rm", "-rf", top])


def waiting_controller(opts):
    """One that comes again waits for the agent it lost; others do not."""
    top = tempfile.mkdtemp(prefix="hostile.")
    try:
        os.mkdir(os.path.join(top, "root"))
        first, again, gone = (Controller(opts, top) for _ in range(3))
        for c in (first, again):
            c.open(flags=1 if c is first else 1 | 256)
            c.p.stdin.write(c.data)
            c.p.stdin.flush()
            c.data = b""
            if c is first and first.answer() != [WELCOME, SCAN, PROOF]:
                raise Bad("no scan")
        other = Controller(opts, top)
        other.open()
        code, kinds, said, out = other.finish()
        if kinds != [WELCOME, ERROR] or b"another sync works on" not in said:
            raise Bad("not told that another one works there: %r %r" % (kinds, said))
        gone.open(flags=1 | 256)
        code, kinds, said, out = gone.finish()
        if kinds[:2] != [WELCOME, ERROR]:
            raise Bad("one that is gone still waits: %r" % kinds)
        if select.select([again.p.stdout], [], [], 0)[0] and again.answer(1) != [WELCOME]:
            raise Bad("did not greet")
        if select.select([again.p.stdout], [], [], 0)[0]:
            raise Bad("does not wait")
        first.finish()
        if SCAN not in again.answer():
            raise Bad("no scan after the wait")
        again.finish()
    finally:
        subprocess.run(["rm", "-rf", top])


def lying_controller(opts, name, lie):
    top = tempfile.mkdtemp(prefix="hostile.")
    try:
        work_tree(top)
        os.rename(os.path.join(top, "ws"), os.path.join(top, "root"))
        os.symlink("../outside", os.path.join(top, "root", "out"))
        before = snapshot(top, (b"state",))
        secret = open(os.path.join(top, "outside", "local-file"), "rb").read(200)
        c = Controller(opts, top)
        lie(c)
        code, kinds, said, out = c.finish()
        after = {p: e for p, e in snapshot(top, (b"state",)).items() if b".sbsync-stage" not in p}
        same(
            {p: e for p, e in before.items() if p != b"root"},
            {p: e for p, e in after.items() if p != b"root"},
            "tree",
        )
        if secret in out:
            raise Bad("a file outside the root was sent")
        if said is None and RESULT not in kinds and NEED not in kinds and kinds[-1] != PROOF:
            raise Bad("no answer: %r" % kinds)
        if SCAN not in kinds and name not in EARLY:
            raise Bad("it did not come that far: %r %r" % (kinds, said))
        if os.path.lexists("/tmp/sbsync-escape"):
            raise Bad("it escaped")
    finally:
        subprocess.run(["rm", "-rf", top])


def main():
    opts = {"driver": os.path.abspath(sys.argv[1]), "sbsync": os.path.abspath(sys.argv[2])}
    only = sys.argv[3:]
    tests = [
        ("controller: honest", lambda: honest_controller(opts)),
        ("controller: cut", lambda: cut_controller(opts)),
        ("controller: comes again", lambda: waiting_controller(opts)),
        ("agent, pull: honest", lambda: lying_agent(opts, "honest", False, 0)),
        ("agent, push: honest", lambda: lying_agent(opts, "honest", True, 0)),
    ]
    tests += [
        ("controller: " + k, lambda k=k, v=v: lying_controller(opts, k, v))
        for k, v in CONTROLLER_LIES.items()
    ]
    tests += [
        ("agent, pull: " + k, lambda k=k, v=v: lying_agent(opts, k, False, v))
        for k, v in PULL_LIES.items()
    ]
    tests += [
        ("agent, push: " + k, lambda k=k, v=v: lying_agent(opts, k, True, v))
        for k, v in PUSH_LIES.items()
    ]
    tests += [
        ("sandbox: " + " ".join(c.__doc__.split()), lambda c=c: sandbox.run(c, opts, run))
        for c in sandbox.CASES
    ]
    tests = [t for t in tests if not only or any(o in t[0] for o in only)]
    failed = 0
    for i, (name, test) in enumerate(tests):
        try:
            test()
            print("ok %d - %s" % (i + 1, name), flush=True)
        except Bad as e:
            failed += 1
            print("not ok %d - %s\n# %s" % (i + 1, name, e), flush=True)
    print("1..%d" % len(tests))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
