#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Syncs that are killed, or whose n-th system call fails, at every n.

  sweep.py [--seconds S] [--seed N] [--scenario NAME]... [--kind KIND]...
           [--only SCENARIO:WHO:HOW:N] [-v] SBSYNC SHIM

After each fault every path holds its old or its new content, and the next run completes. Without
--seconds every fault of every scenario is tried; with it, as many as fit, in an order that
depends on the seed (default: the hour, so that runs rotate). Prints TAP; --only repeats one
fault and keeps its folder.
"""
import argparse
import errno
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import trees  # noqa: E402

STAGE = b".sbsync-stage"
CONFLICT = b".runtime-conflict-"
RUN_SECONDS = 45  # more than the engine waits for a dead peer


class Failed(Exception):
    pass


def listing(top):
    """path -> entry, without the stage; whether there is a stage."""
    if not os.path.isdir(top):
        return {}, False
    every = trees.listing(top)
    kept = {p: e for p, e in every.items() if p != STAGE and not p.startswith(STAGE + b"/")}
    return kept, len(kept) != len(every)


def content(e):
    if e is None:
        return None
    return e[:1] if e[0] == "dir" else (e[0], e[3]) if e[0] == "link" else (e[0],) + e[3:5]


def mixed(now, old, new, where):
    """Every path is as it was or as it shall be."""
    for p, e in now.items():
        if p == b"":
            continue
        if content(e) not in (content(old.get(p)), content(new.get(p))):
            raise Failed(
                "%s: %r is %r, was %r, shall be %r" % (where, p, e, old.get(p), new.get(p))
            )
        if e[0] == "file" and e[1] not in [x[1] for x in (old.get(p), new.get(p)) if x]:
            raise Failed("%s: mode of %r is %o" % (where, p, e[1]))
    for p in old:
        if p in new and p not in now:
            raise Failed("%s: %r is gone, was %r, shall be %r" % (where, p, old[p], new[p]))


def differences(a, b, skip_root=False, contents=False):
    out = []
    for p in sorted(set(a) | set(b)):
        if skip_root and p == b"":
            continue
        x, y = a.get(p), b.get(p)
        if (content(x) != content(y)) if contents else (x != y):
            out.append("%r: %r instead of %r" % (p, x, y))
    return out


def write(path, text, mode=0o644, age=0):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.lexists(path):
        os.unlink(path)
    trees.put(
        path, text if isinstance(text, bytes) else text.encode(), mode, trees.OLD + age * 10**9
    )


def first_tree(top):
    j = lambda *p: os.path.join(top, *p)
    for i in range(4):
        write(j("src", "f%d" % i), "file %d\n" % i * 40)
    write(j("edit"), "to be edited\n" * 400)
    write(j("big"), b"".join(b"line %d of a larger file\n" % i for i in range(4000)))
    write(j("chmod"), "only its mode\n")
    write(j("touch"), "only its time\n")
    write(j("gone"), "to be deleted\n")
    write(j("olddir", "a"), "in a directory that goes\n")
    write(j("olddir", "sub", "b"), "deeper\n")
    write(j("rename me"), "a file that is renamed " * 100)
    write(j("moved", "x"), "in a moved directory " * 50)
    write(j("moved", "y"), "second in a moved directory " * 50)
    write(j("swap1"), "one " * 99)
    write(j("swap2"), "two " * 98)
    write(j("chain1"), "chain one " * 99)
    write(j("chain2"), "chain two " * 98)
    write(j("file to dir"), "was a file\n")
    write(j("dir to file", "in"), "was in a directory\n")
    write(j("dir to link", "in"), "was in a directory\n")
    write(j("file to link"), "was a file\n")
    os.symlink("edit", j("link to file"))
    os.symlink("src", j("link to dir"))
    os.symlink("old target", j("link"))
    write(j("hard1"), "hard links\n")
    os.link(j("hard1"), j("hard2"))
    write(j("apart1"), "linked, then apart\n")
    os.link(j("apart1"), j("apart2"))
    write(j("rodir", "f"), "in a read-only directory\n")
    write(j("rodir", "g"), "deleted from a read-only directory\n")
    os.chmod(j("rodir"), 0o555)
    write(j(".git", "objects", "aa"), "object\n")
    write(j(".git", "HEAD"), "ref: refs/heads/main\n")
    write(j(".git", "refs", "heads", "main"), "1111\n")


def second_tree(top):
    """Changes to the tree of first_tree: one of every kind."""
    j = lambda *p: os.path.join(top, *p)
    write(j("src", "f1"), "file 1, edited\n", age=5)
    write(j("src", "new"), "new file\n", 0o755)
    write(j("edit"), "edited\n" * 500, age=7)
    with open(j("big"), "r+b") as f:
        f.seek(40000)
        f.write(b"CHANGED")
    os.utime(j("big"), ns=(trees.OLD, trees.OLD + 9))
    os.chmod(j("chmod"), 0o700)
    os.utime(j("touch"), ns=(trees.OLD, trees.OLD + 77))
    os.unlink(j("gone"))
    shutil.rmtree(j("olddir"))
    os.rename(j("rename me"), j("renamed"))
    os.rename(j("moved"), j("moved away"))
    write(j("moved away", "y"), "edited after the move\n", age=3)
    os.rename(j("swap1"), j("t"))
    os.rename(j("swap2"), j("swap1"))
    os.rename(j("t"), j("swap2"))
    os.rename(j("chain2"), j("chain3"))
    os.rename(j("chain1"), j("chain2"))
    os.unlink(j("file to dir"))
    write(j("file to dir", "sub", "f"), "in what was a file\n")
    shutil.rmtree(j("dir to file"))
    write(j("dir to file"), "was a directory\n")
    shutil.rmtree(j("dir to link"))
    os.symlink("src", j("dir to link"))
    os.unlink(j("file to link"))
    os.symlink("edit", j("file to link"))
    os.unlink(j("link to file"))
    write(j("link to file"), "was a link\n")
    os.unlink(j("link to dir"))
    write(j("link to dir", "f"), "was a link\n")
    os.unlink(j("link"))
    os.symlink("new target", j("link"))
    os.link(j("hard1"), j("hard3"))
    write(j("apart2"), "apart now\n", age=4)
    write(j("newdir", "deep", "er", "f"), "new in new directories\n")
    write(j("newdir", "copy"), "file 0\n" * 40)
    os.makedirs(j("newdir", "empty"))
    write(j("zero"), "")
    write(j("newro", "f"), "in a new read-only directory\n", 0o444)
    os.chmod(j("newro"), 0o555)
    os.chmod(j("rodir"), 0o755)
    write(j("rodir", "f"), "edited in a read-only directory\n", 0o400, 6)
    os.unlink(j("rodir", "g"))
    os.chmod(j("rodir"), 0o555)
    write(j(".git", "objects", "bb"), "object 2\n")
    write(j(".git", "refs", "heads", "main"), "2222\n", age=8)


class Bed:
    """A folder with a prepared state that can be brought back, and runs of sbsync in it."""

    processes = ("controller", "agent")
    refused = False

    def __init__(self, opts, top):
        self.o, self.top = opts, top
        self.save = os.path.join(top, "saved")
        self.work = os.path.join(top, "work")
        self.log = os.path.join(top, "log")
        os.makedirs(self.work)
        self.env = dict(
            os.environ,
            SBSYNC_STATE_DIR=os.path.join(self.work, "state"),
            LC_ALL="C",
            ASAN_OPTIONS="verify_asan_link_order=0",
        )

    def at(self, *p):
        return os.path.join(self.work, *p)

    def clear(self, top):
        for d, ds, _ in os.walk(top):
            os.chmod(d, 0o755)
        shutil.rmtree(top, ignore_errors=True)
        if os.path.exists(top):
            subprocess.run(["chmod", "-R", "u+rwX", top])
            shutil.rmtree(top)

    def keep(self):
        subprocess.run(["cp", "-a", self.work, self.save], check=True)

    def restore(self):
        self.clear(self.work)
        subprocess.run(["cp", "-a", self.save, self.work], check=True)

    def start(self, args, fault=None, extra=None):
        env = dict(self.env)
        if fault:
            who, how, n, span, opens = fault
            with open(self.log, "wb") as f:
                f.write(bytes(64))
            env.update(
                LD_PRELOAD=self.o.shim,
                FAULT_WHO=who,
                FAULT_HOW=how,
                FAULT_N=str(n),
                FAULT_SPAN=str(span),
                FAULT_LOG=self.log,
            )
            if opens:
                env["FAULT_OPENS"] = "1"
        env.update(extra or {})
        return subprocess.Popen(
            [self.o.sbsync] + args,
            cwd=self.work,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def wait(self, p):
        try:
            out = p.communicate(timeout=RUN_SECONDS)[0]
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            raise Failed("hangs: %s" % " ".join(p.args))
        if (
            b"Sanitizer" in out
            or b"runtime error" in out
            or p.returncode in (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS)
        ):
            raise Failed("crash: %d %s" % (p.returncode, out.decode(errors="replace")[-3000:]))
        if p.returncode > 0 and not out.strip():
            raise Failed("exit %d without a word" % p.returncode)
        return p.returncode, out.decode(errors="replace")

    def run(self, args, fault=None, extra=None):
        return self.wait(self.start(args, fault, extra))

    def patient(self, args):
        code, out = self.run(args)
        end = time.time() + 20
        while (
            code == 4 and time.time() < end
        ):  # an agent notices a moment later that its controller was killed
            time.sleep(0.05)
            code, out = self.run(args)
        return code, out

    def must(self, args, *codes):
        code, out = self.patient(args)
        if code not in (codes or (0,)):
            raise Failed("%s: exit %d: %s" % (" ".join(args), code, out.strip()))
        return code

    def counted(self):
        with open(self.log, "rb") as f:
            calls, hits, name = struct.unpack("<QQ48s", f.read(64))
        return calls, hits, name.split(b"\0")[0].decode()


class Mirror(Bed):
    """sbsync mirror: DST has an older version, and the pair has been synced before."""

    name = "mirror"
    args = ["mirror", "-q", "--max-delete", "100000", "src", "dst"]

    def prepare(self):
        first_tree(self.at("src"))
        self.must(self.args)
        second_tree(self.at("src"))
        self.keep()
        self.old, _ = listing(self.at("dst"))
        self.new, _ = listing(self.at("src"))

    def equal(self, clean=True):
        now, stage = listing(self.at("dst"))
        bad = differences(now, self.new, skip_root=not clean)
        if bad or (stage and clean):
            raise Failed(
                "not equal after a good run: %s%s"
                % ("; ".join(bad[:3]), " stage left behind" if stage else "")
            )

    def after(self, code, out):
        now, _ = listing(self.at("dst"))
        mixed(now, self.old, self.new, "dst")
        if differences(listing(self.at("src"))[0], self.new):
            raise Failed("the source was changed")
        if code == 0:
            self.equal(clean=False)  # removing the stage may have failed: the next run does it
        self.must(self.args)
        self.equal()


class Cold(Mirror):
    """sbsync mirror without any state, into a tree that nobody synced before."""

    name = "cold"

    def prepare(self):
        first_tree(self.at("dst"))
        second_tree(self.at("dst"))
        first_tree(self.at("src"))
        write(self.at("src", "more"), "more\n")
        self.keep()
        self.old, _ = listing(self.at("dst"))
        self.new, _ = listing(self.at("src"))


class First(Mirror):
    """sbsync mirror to a place that is not there yet."""

    name = "first"

    def prepare(self):
        first_tree(self.at("src"))
        self.keep()
        self.old = {}
        self.new, _ = listing(self.at("src"))


class Session(Bed):
    """One command of a session; the reference is the same without a fault."""

    again = None
    may_differ = ()

    def open_session(self):
        first_tree(self.at("ws"))
        self.must(["start", "-q", "--name", "s", "ws", "runtime"])

    def edit_both(self):
        second_tree(self.at("runtime"))
        j = self.at
        write(j("ws", "edit"), "the user's edit of a file both edited\n", age=50)
        write(j("ws", "src", "f2"), "the user's edit\n", age=51)
        write(j("ws", "user", "new"), "the user's new file\n")
        os.unlink(j("ws", "src", "f3"))
        write(j("ws", "gone"), "the user edits what the sandbox deletes\n", age=52)
        os.rename(j("ws", "touch"), j("ws", "touch renamed"))
        write(j("ws", "newdir"), "the user's file where the sandbox makes a directory\n")
        write(j("runtime", "src", "f3"), "the sandbox edits what the user deletes\n", age=53)

    def setup(self):
        self.open_session()
        self.edit_both()

    def prepare(self):
        self.setup()
        self.keep()
        self.olds = [listing(self.at(x))[0] for x in ("ws", "runtime")]
        self.must(self.args, 0, 3)
        self.news = [listing(self.at(x))[0] for x in ("ws", "runtime")]

    def everything(self):
        return {
            content(e)
            for x in ("ws", "runtime")
            for e in listing(self.at(x))[0].values()
            if e[0] == "file"
        }

    def after(self, code, out):
        for k, x in enumerate(("ws", "runtime")):
            mixed(listing(self.at(x))[0], self.olds[k], self.news[k], x)
        # Neither side's work is anywhere but in the trees.
        wanted = {content(e) for p, e in self.news[0].items() if e[0] == "file"}
        lost = wanted - self.everything()
        if lost:
            raise Failed("lost: %r" % [p for p, e in self.news[0].items() if content(e) in lost])
        if code in (0, 3):
            self.settled(clean=False)
        else:
            self.resume()
            self.settled()

    def without_copies(self, tree):
        return {p: e for p, e in tree.items() if CONFLICT not in p and p not in self.may_differ}

    def resume(self):
        self.must(self.again or self.args, 0, 3)

    def settled(self, clean=True):
        for k, x in enumerate(("ws", "runtime")):
            now, stage = listing(self.at(x))
            new = self.news[k]
            if self.refused:
                # What one side could not place is a conflict for the next run, which keeps both.
                now, new = self.without_copies(now), self.without_copies(new)
            bad = differences(now, new, skip_root=True, contents=True)
            if bad or (stage and clean):
                raise Failed(
                    "%s differs from a run without fault: %s%s"
                    % (x, "; ".join(bad[:3]), " stage left behind" if stage else "")
                )


class Start(Session):
    name = "start"
    args = ["start", "-q", "--name", "s", "ws", "runtime"]

    def setup(self):
        first_tree(self.at("ws"))

    def resume(self):
        code, out = self.patient(self.args)
        if code == 1 and "is open" in out:  # it had got that far
            code, out = self.patient(Turn.args)
        if code not in (0, 3):
            raise Failed("start again: exit %d: %s" % (code, out))


class Again(Session):
    """Start of a session that was stopped: both sides have edited since. The runtime's version of
    what both edited is nowhere but there."""

    name = "again"
    args = ["start", "-q", "--max-delete", "100000", "--name", "s", "ws", "runtime"]

    def setup(self):
        self.open_session()
        self.must(["stop", "-q", "s"])
        self.before = self.everything()
        self.edit_both()

    def after(self, code, out):
        for k, x in enumerate(("ws", "runtime")):
            mixed(listing(self.at(x))[0], self.olds[k], self.news[k], x)
        if code in (0, 3):
            self.settled(clean=False)
        else:
            Start.resume(self)  # what was swapped out may lie in the stage until then
        wanted = {content(e) for old in self.olds for e in old.values() if e[0] == "file"}
        lost = wanted - self.before - self.everything()
        if lost:
            raise Failed("lost: %r" % lost)


class Turn(Session):
    name = "turn"
    args = ["sync", "-q", "--max-delete", "100000", "s"]


class Merge(Turn):
    """A text that both sides changed is merged: kept both first, then one, then carried over."""

    name = "merge"
    args = ["sync", "-q", "--max-delete", "100000", "--conflict", "merge", "s"]
    may_differ = (b"big",)  # where an operation was refused: both versions, checked below

    def edit_both(self):
        Turn.edit_both(self)
        with open(self.at("ws", "big"), "r+b") as f:
            f.seek(100)
            f.write(b"USER")
        os.utime(self.at("ws", "big"), ns=(trees.OLD, trees.OLD + 60 * 10**9))

    def setup(self):
        Turn.setup(self)
        self.saved = {self.content_of("ws"), self.content_of("runtime")}

    def content_of(self, side):
        return content(listing(self.at(side))[0][b"big"])

    def after(self, code, out):
        # Until it is merged, the sandbox's version is beside the user's; each is
        # somewhere, or their merge is.
        kept = {
            content(e)
            for x in ("ws", "runtime")
            for p, e in listing(self.at(x))[0].items()
            if p.startswith(b"big")
        }
        merged = content(self.news[0][b"big"])
        if not (self.saved <= kept or merged in kept):
            raise Failed("a version of the text is lost")
        if code in (0, 3):
            self.settled(clean=False)
        else:
            self.resume()
            # A run that died between keeping both and merging has kept both: deciding
            # it later comes to the same.
            self.must(["resolve", "-q", "--name", "s", "--all", "--take", "merged"], 0, 3)
            self.resume()
            self.settled()


class Stop(Session):
    name = "stop"
    args = ["stop", "-q", "--max-delete", "100000", "s"]

    def resume(self):
        code, out = self.patient(self.args)
        if code not in (0, 3) and "is stopped" not in out:
            raise Failed("stop again: exit %d: %s" % (code, out))


class Recover(Session):
    """The owner is dead; the machine's timer calls recover, again and again."""

    name = "recover"
    args = ["recover", "--now", "--max-delete", "100000", "s"]

    def open_session(self):
        p = subprocess.Popen(["sleep", "1000"])
        first_tree(self.at("ws"))
        self.must(["start", "-q", "--name", "s", "--owner", str(p.pid), "ws", "runtime"])
        p.kill()
        p.wait()


class Undo(Session):
    """A sync is undone. One that was interrupted is done by the next, or, when the journal had got
    that far, undone by it and done by the one after; nothing stays in the stage."""

    name = "undo"
    args = ["undo", "-q", "s"]
    processes = ("controller",)

    def setup(self):
        Session.setup(self)
        self.must(Turn.args, 0, 3)

    def is_told(self, out):
        """What was refused stays as it was: named, and nothing of either version is lost."""
        now, _ = listing(self.at("ws"))
        for p in sorted(set(now) | set(self.news[0])):
            a, b = now.get(p), self.news[0].get(p)
            if (a and content(a)) != (b and content(b)) and not any(
                q and q in out for q in parents_of(p.decode())
            ):
                raise Failed("not undone, and not a word about it: %r: %s" % (p, out))
        lost = {content(e) for e in self.olds[0].values() if e[0] == "file"} - self.everything()
        if lost:
            raise Failed("lost: %r" % lost)

    def differs(self):
        now, _ = listing(self.at("ws"))
        return differences(now, self.news[0], skip_root=True, contents=True)

    def after(self, code, out):
        mixed(listing(self.at("ws"))[0], self.olds[0], self.news[0], "ws")
        if code not in (0, 3):
            self.must(self.args, 0, 3)
            if self.differs():
                self.must(self.args, 0, 3)
        bad = self.differs()
        if self.refused and code == 1:
            self.is_told(out)
        elif bad:
            raise Failed("not undone: %s" % "; ".join(bad[:3]))
        self.must(Turn.args, 0, 3)
        if listing(self.at("ws"))[1]:
            raise Failed("stage left behind")


SCENARIOS = [Mirror, Cold, First, Start, Again, Turn, Merge, Stop, Recover, Undo]
# how, span, opens
KINDS = [
    ("kill", 1, False),
    (str(errno.ENOSPC), 1, False),
    (str(errno.ENOSPC), 0, False),
    (str(errno.EIO), 1, False),
    (str(errno.ENAMETOOLONG), 1, False),
    (str(errno.EDQUOT), 0, False),
    (str(errno.EMFILE), 1, True),
    (str(errno.EMFILE), 0, True),
]


def label(kind):
    how, span, _ = kind
    return how if how == "kill" else errno.errorcode[int(how)] + ("" if span else "+")


def faults_of(bed):
    """Counts the calls of each process, then all faults."""
    out = []
    for who in bed.processes:
        for opens in (False, True):
            bed.restore()
            code, text = bed.run(bed.args, (who, "kill", 0, 1, opens))
            if code not in (0, 3):
                raise Failed("a run without fault: exit %d: %s" % (code, text))
            calls = bed.counted()[0]
            if not calls:
                raise Failed("the %s made no call that counts: is the library loaded?" % who)
            for kind in KINDS:
                if kind[2] == opens and (not bed.o.kind or label(kind) in bed.o.kind):
                    out += [(who, kind, n) for n in range(1, calls + 1)]
    return out


def parents_of(path):
    """It, and all that it lies in."""
    parts = path.split("/")
    return ["/".join(parts[: i + 1]) for i in range(len(parts))]


def inject(bed, fault):
    who, kind, n = fault
    bed.restore()
    # One operation is refused and reported, the others are done: no later run makes up for it.
    bed.refused = kind[0] == str(errno.ENAMETOOLONG)
    code, out = None, ""
    try:
        code, out = bed.run(bed.args, (who, kind[0], n, kind[1], kind[2]))
        bed.after(code, out)
    except Failed as e:
        raise Failed(
            "%s:%s:%s:%d (%s), exit %s: %s\n  said: %s"
            % (bed.name, who, label(kind), n, bed.counted()[2], code, e, out.strip())
        )
    return bed.counted()[1]


def sweep(opts, scenario, deadline, number):
    top = tempfile.mkdtemp(prefix="fault.", dir=opts.dir)
    bed = scenario(opts, top)
    done = hit = failed = 0
    start = time.time()
    try:
        bed.prepare()
        faults = faults_of(bed)
        total = len(faults)
        if opts.only:
            who, how, n = opts.only.split(":")[1:]
            faults = [
                f
                for f in faults
                if f[0] == who and label(f[1]) == how and (n == "*" or f[2] == int(n))
            ]
        elif deadline:
            random.Random("%s %s" % (opts.seed, scenario.name)).shuffle(faults)
        for f in faults:
            if deadline and time.time() > deadline:
                break
            try:
                hit += 1 if inject(bed, f) else 0
            except Failed as e:
                failed += 1
                print("# %s" % str(e).replace("\n", "\n# "), flush=True)
                if opts.only and n != "*":
                    print("# kept %s" % top)
                    return done + 1, hit, failed
                if failed >= opts.max_failures:
                    print("# too many failures")
                    break
            done += 1
            if opts.verbose and done % 100 == 0:
                print("# %s: %d of %d" % (scenario.name, done, len(faults)), flush=True)
        print(
            "# %s: %d of %d faults, %d hit, %.0f s"
            % (scenario.name, done, total, hit, time.time() - start)
        )
        if not done and not (deadline and time.time() > deadline):
            raise Failed("%s: nothing was tried" % scenario.name)
    except Failed as e:
        failed += 1
        print("# %s" % str(e).replace("\n", "\n# "))
    if not (opts.only and failed):
        bed.clear(top)
    print(
        "%s %d - %s: every path old or new, then complete"
        % ("not ok" if failed else "ok", number, scenario.name),
        flush=True,
    )
    return done, hit, failed


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=0)
    p.add_argument("--seed", default=str(int(time.time() // 3600)))
    p.add_argument("--only")
    p.add_argument("--scenario", action="append")
    p.add_argument(
        "--kind",
        action="append",
        choices=[label(k) for k in KINDS],
        help="only this one; again for more",
    )
    p.add_argument("--dir", default=os.environ.get("FAULT_DIR"))
    p.add_argument("--max-failures", type=int, default=20)
    p.add_argument("-v", "--verbose", action="store_true")
    p.add_argument("sbsync")
    p.add_argument("shim")
    opts = p.parse_args()
    opts.sbsync, opts.shim = os.path.abspath(opts.sbsync), os.path.abspath(opts.shim)
    chosen = [
        s
        for s in SCENARIOS
        if (not opts.only or s.name == opts.only.split(":")[0])
        and (not opts.scenario or s.name in opts.scenario)
    ]
    if opts.seconds:
        print("# seed %s" % opts.seed)
    begin, sums = time.time(), [0, 0, 0]
    for i, s in enumerate(chosen):
        end = begin + opts.seconds * (i + 1) / len(chosen) if opts.seconds else 0
        sums = [a + b for a, b in zip(sums, sweep(opts, s, end, i + 1))]
    print("# %d faults, %d hit, %d failed" % tuple(sums))
    print("1..%d" % len(chosen))
    return 1 if sums[2] else 0


if __name__ == "__main__":
    sys.exit(main())
