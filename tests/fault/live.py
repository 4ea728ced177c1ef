#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A session between two trees that people work in: a model of what may never happen.

  live.py [--steps N] [--seed N] [--world SEED] [--ssh DIR] [--user UID] [--dir DIR] [-v]
          SBSYNC SHIM

Works in worlds of some hundred steps: a workspace, a runtime, a session. A step is a burst of
edits on one side, writers that begin or end to work while syncs run, something odd in the way (an
ignored file, a fifo, what may not be read), or a command of the session: sync, watch, undo, stop
and start again, recover; many of them killed at some moment, either end of it. What must hold:

 a  No version of a file that was complete on either side disappears, unless somebody who had it
    in hand replaced or deleted it (undo is a decision, too).
 b  A file that only one side writes never conflicts.
 c  Exit 0 or 3 of a sync: both sides agree, except for what the result lists and what was written
    meanwhile. Exit 0 or 3 of a stop: all the runtime had before it is here.
 d  When nobody writes and nothing is in the way, a sync succeeds, and the one after it finds
    nothing to do.

Areas: l/ is written by the user, r/ in the runtime, s/ by both. Every world has a seed of its own,
which is printed when it fails; --world SEED repeats it. In a third of the worlds all is done in
one order, and kills are at the n-th call: such a world goes the same way each time. Where writers
work at the same time, it is the same words, not the same moments.
"""
import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

import livewriter
from livewriter import IGNORED, STAGE, Writer, version_at, walk

RUN_SECONDS = 90
WORLD_STEPS = 100
CONFLICT = b".runtime-conflict-"


class Failed(Exception):
    pass


class World:
    def __init__(self, opts, seed):
        self.o, self.seed = opts, seed
        self.r = random.Random(seed)
        self.top = tempfile.mkdtemp(prefix="live.", dir=opts.dir)
        os.chmod(self.top, 0o755)
        self.trace = open(os.path.join(self.top, "trace"), "w")
        self.ws, self.rt = self.at("ws"), self.at("rt")
        self.log = self.at("shim")
        self.live = {}  # version -> where it was made, as far as nobody ended it
        self.gone = {}  # versions that somebody ended, and when we heard of it
        self.of_runtime = set()
        self.odd = {}  # path of something in the way -> how to remove it
        self.tainted = set()
        self.undone = False
        self.half_undone = set()  # what an undo that was killed may still take away
        self.open = False
        self.times = []  # of syncs that were not killed
        self.writers, self.going = {}, set()
        self.windows = []
        self.links = self.r.random() < 0.25
        self.ordered = self.r.random() < 0.34 and not opts.ssh
        self.with_undo = self.r.random() < 0.35
        self.with_odd = self.r.random() < 0.4
        self.uid = opts.user if opts.user and self.r.random() < 0.5 else None
        for d in ("ws", "rt", "tmp", "tmp/L", "tmp/R", "state"):
            os.mkdir(self.at(d), 0o700 if d == "state" else 0o755)
        for a in "lrs":
            os.mkdir(os.path.join(self.ws, a))
        with open(os.path.join(self.ws, "keep"), "w") as f:
            f.write("always here\n")
        if self.uid:
            subprocess.run(["chown", "-R", "%d:%d" % (self.uid, self.uid), self.top], check=True)
        self.env = dict(os.environ, SBSYNC_STATE_DIR=self.at("state"), LC_ALL="C", HOME=self.top)
        self.env.pop("XDG_STATE_HOME", None)

    def at(self, *p):
        return os.path.join(self.top, *p)

    def note(self, *words):
        self.trace.write("%.3f %s\n" % (time.monotonic(), " ".join(str(w) for w in words)))
        self.trace.flush()

    # -- writers ------------------------------------------------------------------------------

    def who(self, side):
        return (self.ws, "l,s") if side == "L" else (self.rt, "r,s")

    def writer(self, side):
        """The process that works on one side. It waits at first."""
        if side not in self.writers:
            root, areas = self.who(side)
            self.writers[side] = subprocess.Popen(
                [sys.executable, self.o.writer, root, self.at("tmp", side), side, areas]
                + ["%d%s" % (self.seed, side), "links" if self.links else "all"]
                + ([str(self.uid)] if self.uid else []),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        return self.writers[side]

    def as_user(self):
        return dict(user=self.uid, group=self.uid, extra_groups=[]) if self.uid else {}

    def tell(self, side, word):
        p = self.writer(side)
        p.stdin.write(word.encode() + b"\n")
        p.stdin.flush()

    def heard(self, side, got):
        self.windows += got["touched"]
        for begin, end, name, how, seen in got["touched"]:
            self.note(side, name, how, *[repr(s[len(self.top) + 1:]) for s in seen])
        for v, where in got["made"]:
            if v not in self.gone:
                self.live[v] = side + " " + where
            if side == "R":
                self.of_runtime.add(v)
            self.note(side, "made", v, where[len(self.top) + 1:])
        for v in got["ended"]:
            self.decided(v, side + " ended")

    def decided(self, v, why):
        """Somebody who had that version in hand replaced or deleted it."""
        self.gone[v] = time.monotonic()
        if self.live.pop(v, None):
            self.note(why, v)

    def pause(self, side):
        """Ends what the writer is at, and hears what it did."""
        if side in self.writers:
            self.tell(side, "pause")
            line = self.writers[side].stdout.readline()
            if not line:
                raise Failed("a writer died")
            self.heard(side, json.loads(line))

    def burst(self, side, n, links=False):
        """Edits here and now. Two who write into one file at a time spoil it without any sync."""
        self.pause(side)
        root, areas = self.who(side)
        w = Writer(root, self.at("tmp", side), side, areas.split(","), self.r.getrandbits(60))
        w.n = int(self.r.getrandbits(40)) * 1000
        with self.in_person():
            for _ in range(n):
                w.step(links)
            got = w.report()
        self.heard(side, got)

    @contextlib.contextmanager
    def in_person(self):
        """What the driver does to a tree it does as the one whose tree it is."""
        if not self.uid:
            yield
            return
        groups = os.getgroups()
        os.setgroups([])
        os.setegid(self.uid)
        os.seteuid(self.uid)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(0)
            os.setgroups(groups)

    # -- commands of the session --------------------------------------------------------------

    def remote(self):
        return self.o.ssh_url + self.rt if self.o.ssh else self.rt

    def route(self):
        if not self.o.ssh:
            return []
        d = self.o.ssh
        return ["-i", d + "/id_ed25519", "--known-hosts", d + "/known_hosts"]

    def begin(self, args, fault=None):
        env = dict(self.env)
        if fault:
            with open(self.log, "wb") as f:
                f.write(bytes(64))
            os.chmod(self.log, 0o666)
            env.update(
                LD_PRELOAD=self.o.shim,
                ASAN_OPTIONS="verify_asan_link_order=0",
                FAULT_WHO=fault[0],
                FAULT_HOW="kill",
                FAULT_N=str(fault[1]),
                FAULT_SPAN="1",
                FAULT_LOG=self.log,
            )
        return subprocess.Popen(
            [self.o.sbsync] + args,
            cwd=self.top,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            **self.as_user(),
        )

    def end(self, p, limit=RUN_SECONDS):
        try:
            out, err = p.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGABRT)
            raise Failed("hangs: %s" % " ".join(p.args))
        err = err.decode(errors="replace")
        if "Sanitizer" in err or "runtime error" in err or -p.returncode in (
            signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS
        ):
            raise Failed("crash: %d %s" % (p.returncode, err[-3000:]))
        return p.returncode, out.decode(errors="replace"), err

    def agents(self):
        """Agents of this world, wherever they were started."""
        mark = b"SBSYNC_STATE_DIR=" + os.fsencode(
            os.path.join(self.o.ssh, "state") if self.o.ssh else self.at("state")
        )
        got = []
        for n in os.listdir("/proc"):
            if not n.isdigit():
                continue
            try:
                with open("/proc/%s/cmdline" % n, "rb") as f:
                    words = f.read().split(b"\0")
                with open("/proc/%s/environ" % n, "rb") as f:
                    if b"agent" in words[1:2] and mark in f.read().split(b"\0"):
                        got.append(int(n))
            except OSError:
                pass
        return got

    def kill(self, p, who):
        victims = [p.pid] if who == "controller" else self.agents()
        for v in victims:
            try:
                os.kill(v, signal.SIGKILL)
            except OSError:
                pass
        return len(victims)

    def command(self, args, may_kill=True):
        """Runs it; None: it was killed, or one end of it was."""
        how = self.r.random() if may_kill else 1
        who = self.r.choice(("controller", "agent"))
        args = args + (["--json"] if args[0] in ("sync", "stop", "undo", "recover") else [])
        if how < 0.30 and not (self.o.ssh and who == "agent"):
            n = int(2 ** (self.r.random() * 8.5))
            self.note("command", args, "killed at call", n, "of the", who)
            got = self.end(self.begin(args, (who, n)))
            with open(self.log, "rb") as f:
                hit = int.from_bytes(f.read(16)[8:], "little")
            if hit:
                self.note("  was hit", got)
                return None
        elif how < 0.45 and not self.ordered:
            p = self.begin(args)
            usual = max(self.times[-5:] or [0.3])
            wait = self.r.random() * usual
            self.note("command", args, "killed after %.3f s:" % wait, who)
            time.sleep(wait)
            self.kill(p, who)
            self.note("  was killed", self.end(p))
            return None
        else:
            begin = time.monotonic()
            got = self.end(self.begin(args))
            # An agent may notice a moment later that its controller was killed.
            while got[0] == 4 and time.monotonic() < begin + 40:
                time.sleep(0.05)
                got = self.end(self.begin(args))
            self.times.append(time.monotonic() - begin)
        self.note("command", args, "->", got)
        if got[0] not in (0, 1, 3):
            raise Failed("%s: exit %d: %s" % (" ".join(args), got[0], got[2].strip()))
        if got[0] == 1 and not got[2].strip() and not got[1].strip():
            raise Failed("%s: exit 1 without a word" % " ".join(args))
        return got

    def start(self, may_kill=True):
        owner = subprocess.Popen(["sleep", "1000"])
        try:
            got = self.command(
                ["start", "-q", "--name", "m", "--owner", str(owner.pid)]
                + ["--max-delete", "100000", "-x", "*" + IGNORED.decode()]
                + self.route() + [self.ws, self.remote()],
                may_kill,
            )
        finally:
            owner.kill()
            owner.wait()
        if got and (got[0] in (0, 3) or "is open" in got[2]):
            self.open = True
        return got

    # -- what must hold -----------------------------------------------------------------------

    def tree(self, top):
        """path -> what it is, of what a sync carries."""
        top = os.fsencode(top)
        out, inos = {}, {}
        for p in walk(top):
            st = os.lstat(p)
            rel = p[len(top) + 1:]
            kind = stat.S_IFMT(st.st_mode)
            if kind == stat.S_IFREG:
                inos.setdefault(st.st_ino, []).append(rel)
                mode, mtime = stat.S_IMODE(st.st_mode), st.st_mtime_ns
                out[rel] = ["file", mode, mtime, version_at(p), st.st_ino]
            elif kind == stat.S_IFDIR:
                out[rel] = ["dir", stat.S_IMODE(st.st_mode)]
            elif kind == stat.S_IFLNK:
                out[rel] = ["link", os.readlink(p)]
            else:
                out[rel] = ["special"]
        for e in out.values():
            if e[0] == "file":
                e[4] = tuple(sorted(inos[e[4]]))
        return out

    def versions(self, *tops):
        return {version_at(p) for t in tops for p in walk(os.fsencode(t))}

    def quiet(self):
        for s in "LR":
            self.pause(s)

    def resume(self):
        for s in sorted(self.going):
            self.tell(s, "go")

    def finish_undo(self):
        """A command that was not killed has finished what a killed undo had begun."""
        for v in self.half_undone - self.versions(self.ws):
            self.decided(v, "undo ended")
        self.half_undone = set()

    def nothing_lost(self):
        """a"""
        there = self.versions(self.ws, self.rt)
        lost = [v for v in self.live if v not in there]
        if lost:
            raise Failed("lost: %s" % "; ".join("%s of %s" % (v, self.live[v]) for v in lost[:5]))

    def one_writer(self, result):
        """b"""
        if self.undone:
            return
        # "Changed during the sync": it is left alone, and the next one takes it.
        bad = [c["path"] for c in result.get("conflicts", []) if c["saved_as"] or not self.going]
        for top in (self.ws, self.rt):
            bad += [
                p[len(top) + 1:].decode() for p in walk(os.fsencode(top)) if CONFLICT in p
            ]
        bad = [b for b in bad if b[:2] in ("l/", "r/") and not self.is_tainted(b)]
        if bad:
            raise Failed("one writer, and a conflict: %s" % bad[0])

    def no_echo(self):
        """b, before it shows: nothing of r/ is to be brought there, nothing of l/ here."""
        if self.undone or self.odd or not self.open:
            return
        code, out, err = self.end(self.begin(["diff", "--json", "m"]))
        if code not in (0, 3) or not out.strip():
            return self.note("diff", code, out, err)
        for c in json.loads(out).get("changes", []):
            if c["path"][:2] == {"runtime": "r/", "local": "l/"}[c["side"]]:
                if not self.is_tainted(c["path"]):
                    raise Failed("one writer, and the other side's %s would be written: %r"
                                 % (c["path"], c))

    def is_tainted(self, path):
        return any(path.startswith(t) or t.startswith(path) for t in self.tainted)

    def busy(self, since):
        """Paths that somebody wrote since then, as far as that is known."""
        got = set()
        for begin, end, _, _, seen in self.windows:
            if end >= since:
                for s in seen:
                    got.add(s.split("/" + ("ws" if s.startswith(self.ws) else "rt") + "/", 1)[1])
        return got

    def agree(self, result, since):
        """c"""
        a, b = self.tree(self.ws), self.tree(self.rt)
        listed = {e.get("path", "") for k in ("errors", "skipped", "conflicts")
                  for e in result.get(k, [])}
        busy = self.busy(since) if self.going else set()
        for p in sorted(set(a) | set(b)):
            x, y = a.get(p), b.get(p)
            t = p.decode()
            if p.endswith(IGNORED) or x == y or ["special"] in (x, y):
                continue
            group = {t}
            for e in (x, y):
                if e and e[0] == "file":
                    group |= {g.decode() for g in e[4]}
            if any(self.near(g, listed | busy) for g in group) or self.below_odd(t):
                continue
            # It was one file with something that somebody took away meanwhile.
            if any(e and e[0] == "file" and self.gone.get(e[3], 0) > since for e in (x, y)):
                continue
            if self.half_moved(x, b, listed | busy) or self.half_moved(y, a, listed | busy):
                continue
            raise Failed("they do not agree: %r: here %r, there %r" % (p, x, y))

    def near(self, path, others):
        """Is it one of them, in one of them, above one, or a version kept beside one?"""
        plain = path.split(CONFLICT.decode())[0]
        return any(
            path == q or plain == q or path.startswith(q + "/") or q.startswith(path + "/")
            for q in others
        )

    def half_moved(self, e, other, listed):
        """It went to a name over there where something was in the way here: it stays for now."""
        return e and e[0] == "file" and any(
            q.decode() in listed for q, f in other.items() if f[0] == "file" and f[3] == e[3])

    def below_odd(self, path):
        for q in self.odd:
            rel = q[len(self.ws) + 1:]
            if path == rel or rel.startswith(path + "/") or path.startswith(rel + "/"):
                return True
        return False

    def checked_sync(self, may_kill=True):
        since = time.monotonic()
        got = self.command(["sync", "--max-delete", "100000", "m"], may_kill)
        self.quiet()
        if got is None:
            return None
        self.finish_undo()
        result = json.loads(got[1]) if got[1].strip() else {}
        self.nothing_lost()
        self.one_writer(result)
        if got[0] in (0, 3):
            self.agree(result, since)
        elif not self.going and not self.in_the_way():
            raise Failed("nobody writes, nothing is in the way: %r" % (got,))
        if self.r.random() < 0.3:
            self.no_echo()
        return got

    # -- steps --------------------------------------------------------------------------------

    def do_burst(self):
        self.burst(self.r.choice("LR"), self.r.choice((1, 1, 3, 8)), self.links)

    def do_writers(self):
        side = self.r.choice("LR")
        if self.ordered:
            return self.do_burst()
        if side in self.going:
            self.pause(side)
            self.going.discard(side)
        else:
            self.writer(side)
            self.going.add(side)
        self.note("writers", sorted(self.going))

    def do_sync(self):
        self.checked_sync()

    def do_again(self):
        """A sync that brings something, however it ends; then a second edit of the same."""
        if self.going:
            return self.checked_sync()
        side = self.r.choice("LR")
        root, areas = self.who(side)
        w = Writer(root, self.at("tmp", side), side, areas.split(","), self.r.getrandbits(60))
        w.n = int(self.r.getrandbits(40)) * 1000
        for k in range(2):
            p = w.some_file() if k == 0 else p
            if not p:
                return
            with self.in_person():
                t, v = w.new_file()
                try:
                    w.put(t, v, p)
                except OSError:
                    pass
                w.touched.append(
                    (time.monotonic(), time.monotonic(), "again", "done", [p.decode()]))
                got = w.report()
            self.heard(side, got)
            self.checked_sync(may_kill=k == 0)

    def do_odd(self):
        """Something that a sync does not carry, in a directory of either side."""
        if not self.with_odd:
            return self.do_burst()
        self.quiet()
        if self.odd and self.r.random() < 0.5:
            return self.remove_odd(self.r.choice(sorted(self.odd)))
        root = self.r.choice((self.ws, self.rt))
        dirs = [p for p in walk(os.fsencode(root)) if os.path.isdir(p) and not os.path.islink(p)]
        dirs = [d for d in sorted(dirs) if not d.endswith(b".odd")]
        d = self.r.choice(dirs).decode()
        kind = self.r.choice(("ignored", "fifo", "socket", "unreadable"))
        path = os.path.join(d, "o%d%s" % (self.r.randrange(3), IGNORED.decode()))
        try:
            if kind == "ignored":
                with open(path, "w") as f:
                    f.write("ignored\n")
            elif kind == "unreadable" and self.uid:
                files = [p for p in walk(os.fsencode(d))
                         if livewriter.is_file(p) and os.lstat(p).st_nlink == 1]
                if not files:
                    return
                path = self.r.choice(sorted(files)).decode()
                self.decided(version_at(path), "nobody can read")
                os.chmod(path, 0)
            else:
                path = path[:-len(IGNORED)] + ".odd"
                if kind == "socket":
                    os.mknod(path, stat.S_IFSOCK | 0o644)
                else:
                    os.mkfifo(path)
        except OSError as e:
            return self.note("odd", kind, path, e)
        rel = path[len(root) + 1:]
        self.tainted.add("/".join(rel.split("/")[:2]))
        self.odd[path] = kind
        self.note("odd", kind, path)

    def remove_odd(self, path):
        self.note("no longer odd", self.odd.pop(path), path)
        try:
            self.make_plain(os.fsencode(path))
        except OSError as e:
            self.note(e)

    def is_odd(self, p):
        st = os.lstat(p)
        if not stat.S_ISDIR(st.st_mode) and (p.endswith((IGNORED, b".odd"))):
            return True
        return stat.S_ISREG(st.st_mode) and not stat.S_IMODE(st.st_mode)

    def make_plain(self, p):
        if self.is_odd(p) and p.endswith((IGNORED, b".odd")):
            os.unlink(p)
        elif self.is_odd(p):
            os.chmod(p, 0o644)

    def in_the_way(self):
        """Something odd is in a tree, perhaps not where it was put."""
        return any(self.is_odd(p) for t in (self.ws, self.rt) for p in walk(os.fsencode(t)))

    def do_undo(self):
        """What undo takes away that the runtime made is a decision; all else stays."""
        if not self.with_undo:
            return self.do_sync()
        self.quiet()
        self.undone = True
        before = self.versions(self.ws)
        self.resume()
        got = self.command(["undo", "m"])
        self.quiet()
        after = self.versions(self.ws)
        for v in before - after:
            if v in self.of_runtime:
                self.decided(v, "undo ended")
        if got is None:
            self.half_undone |= before & after & self.of_runtime
            return
        self.finish_undo()
        if got[0] == 1 and "nothing to undo" in got[2] + got[1]:
            return
        if not self.going:
            self.nothing_lost()

    def do_stop(self):
        """Stop, then start again: the session goes on."""
        mine = set(self.of_runtime & set(self.live))
        got = self.command(["stop", "--max-delete", "100000", "m"])
        self.quiet()
        if got is not None:
            self.finish_undo()
        if got is None:
            self.open = False
        elif got[0] in (0, 3):
            self.open = False
            here = self.versions(self.ws)
            lost = [v for v in mine if v in self.live and v not in here]
            if lost:
                raise Failed("stopped without %s of %s" % (lost[0], self.live[lost[0]]))
            self.nothing_lost()
        elif not self.going and not self.in_the_way():
            raise Failed("nobody writes, nothing is in the way: %r" % (got,))

    def do_recover(self):
        mine = set(self.of_runtime & set(self.live))
        got = self.command(["recover", "--now", "--max-delete", "100000", "m"])
        self.quiet()
        if got is None:
            return
        self.finish_undo()
        self.nothing_lost()
        if not got[1].strip() or json.loads(got[1])[0]["result"] not in ("done", "nothing"):
            return
        here = self.versions(self.ws)
        lost = [v for v in mine if v in self.live and v not in here]
        if got[0] in (0, 3) and lost:
            raise Failed("recovered without %s of %s" % (lost[0], self.live[lost[0]]))

    def do_watch(self):
        if self.ordered:
            return self.do_sync()
        p = self.begin(["watch", "-q", "--max-delete", "100000", "m"])
        wait = self.r.random() * 1.5
        how = self.r.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
        time.sleep(wait)
        os.kill(p.pid, how)
        got = self.end(p)
        self.note("watch", "%.3f s" % wait, how, got)
        self.quiet()
        if how == signal.SIGKILL:
            return
        if got[0] not in (0, 1, 3, -how, 128 + how):
            raise Failed("watch: exit %d: %s" % (got[0], got[2]))
        # It may have been ended in the middle of finishing what an earlier kill left.

    STEPS = [
        (do_burst, 30), (do_sync, 24), (do_again, 8), (do_writers, 8), (do_odd, 8), (do_undo, 6),
        (do_stop, 5), (do_recover, 5), (do_watch, 3),
    ]

    def step(self):
        do = self.r.choices([s for s, _ in self.STEPS], [w for _, w in self.STEPS])[0]
        self.resume()
        if not self.open and do not in (World.do_burst, World.do_writers, World.do_odd):
            do = World.start
        self.note("step", do.__name__)
        do(self)
        self.quiet()

    def settle(self):
        """Everybody goes home: d"""
        self.quiet()
        self.going = set()
        for p in sorted(self.odd):
            self.remove_odd(p)
        for p in [p for t in (self.ws, self.rt) for p in walk(os.fsencode(t))]:
            self.make_plain(p)  # also what was moved since
        for _ in range(3):
            if self.open:
                break
            self.start(may_kill=False)
        self.checked_sync(may_kill=False)
        got = self.checked_sync(may_kill=False)
        result = json.loads(got[1])
        if got[0] != 0 or result["files_synced"] or result["files_deleted"]:
            raise Failed("a second sync finds something to do: %r" % (got,))
        got = self.command(["stop", "--max-delete", "100000", "m"], may_kill=False)
        if got[0] != 0:
            raise Failed("stop: %r" % (got,))
        here = self.versions(self.ws)
        lost = [v for v in self.live if v not in here]
        if lost:
            raise Failed("stopped without %s of %s" % (lost[0], self.live[lost[0]]))
        for top in (self.ws, self.rt):
            if os.path.lexists(os.path.join(top, STAGE.decode())):
                raise Failed("a stage is left in %s" % top)

    def close(self, keep):
        for p in self.writers.values():
            p.stdin.close()
            p.wait()
            p.stdout.close()
        self.trace.close()
        if not keep:
            livewriter.discard(os.fsencode(self.top))

    def live_through(self, steps):
        while not self.open:
            self.start(may_kill=False)
        done = 0
        while done < steps:
            self.step()
            done += 1
        self.settle()


def ssh_of(opts):
    if opts.ssh:
        with open(opts.ssh + "/user") as u, open(opts.ssh + "/port") as p:
            opts.ssh_url = "ssh://%s@127.0.0.1:%s" % (u.read().strip(), p.read().strip())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=500)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--world", type=int)
    p.add_argument("--ssh", help="the folder of a server of tests/lib/sshd.sh")
    p.add_argument("--user", type=int, help="half of the worlds belong to this user (as root)")
    p.add_argument("--dir", default=os.environ.get("TMPDIR"))
    p.add_argument("--keep", action="store_true", help="the folder of a world that failed")
    p.add_argument("--max-failures", type=int, default=1)
    p.add_argument("-v", "--verbose", action="store_true")
    p.add_argument("sbsync")
    p.add_argument("shim")
    opts = p.parse_args()
    opts.sbsync, opts.shim = os.path.abspath(opts.sbsync), os.path.abspath(opts.shim)
    ssh_of(opts)
    bin_ = programs(opts)
    try:
        return worlds(opts)
    finally:
        livewriter.discard(os.fsencode(bin_))


def programs(opts):
    """Copies of all that runs, where any user can reach it."""
    d = tempfile.mkdtemp(prefix="bin.", dir=opts.dir)
    os.chmod(d, 0o755)
    for x in (opts.sbsync, opts.shim, livewriter.__file__):
        shutil.copy(x, d)
        os.chmod(os.path.join(d, os.path.basename(x)), 0o755)
    opts.sbsync, opts.shim, opts.writer = (
        os.path.join(d, os.path.basename(x)) for x in (opts.sbsync, opts.shim, livewriter.__file__)
    )
    return d


def worlds(opts):
    done = failed = 0
    k = 0
    while done < opts.steps and failed < opts.max_failures:
        seed = opts.world if opts.world is not None else opts.seed * 100000 + k
        k += 1
        w = World(opts, seed)
        n = min(WORLD_STEPS, opts.steps - done)
        bad = False
        try:
            w.live_through(n)
        except Failed as e:
            bad = True
            failed += 1
            print("# world %d: %s" % (seed, str(e).replace("\n", "\n# ")))
            print("# again: live.py --world %d --steps %d --keep" % (seed, n))
            if opts.keep:
                print("# kept %s" % w.top, flush=True)
        finally:
            w.close(bad and opts.keep)
        done += n
        if opts.verbose:
            print("# world %d: %d steps, %d versions, %s" % (seed, n, len(w.live), ", ".join(
                x for x in ("ordered", "links", "with_undo", "with_odd", "uid") if getattr(w, x))),
                flush=True)
        if opts.world is not None:
            break
    print("# %d steps in %d worlds, seed %d, %d failed" % (done, k, opts.seed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
