#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Syncs on a disk whose power fails (crashdisk.c), at random moments and right after success.

  power.py [--cuts N] [--seed N] [--scenario NAME]... [--fs NAME]... [--only SEED] SBSYNC CRASHDISK

The user's machine is the one that loses its power: its workspace and its state are on that disk;
the runtime is elsewhere and goes on. (Of a mirror: the destination and all state.) Then the disk
is mounted again as a machine does that starts: every path has its old or its new content, nothing
is lost, the next run completes; and what was reported as done is there without another run.
Prints TAP. Needs root, /dev/fuse and loop devices.
"""
import argparse
import ctypes
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import sweep
from sweep import Failed, listing, mixed

libc = ctypes.CDLL(None, use_errno=True)
FILE_SYSTEMS = {
    "ext4": (48, ["mkfs.ext4", "-q", "-F"], "defaults"),
    "ext4-writeback": (48, ["mkfs.ext4", "-q", "-F"], "data=writeback"),
    "xfs": (320, ["mkfs.xfs", "-q", "-f"], "nouuid"),
}


def run(*args):
    p = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if p.returncode:
        raise Failed("%s: %s" % (" ".join(args), p.stdout.decode(errors="replace").strip()))
    return p.stdout.decode().strip()


def is_mounted(path):
    with open("/proc/self/mountinfo") as f:
        return any(line.split()[4] == path for line in f)


class Disk:
    """An image, mounted as it is or through the disk that fails."""

    def __init__(self, opts, top, fs):
        self.o, self.top = opts, top
        mb, mkfs, self.mount_opts = FILE_SYSTEMS[fs]
        self.fs = fs.split("-")[0]
        self.image = os.path.join(top, "image")
        self.fuse = os.path.join(top, "fuse")
        self.at = os.path.join(top, "at")
        self.loop = self.daemon = None
        os.mkdir(self.fuse)
        os.mkdir(self.at)
        with open(self.image, "wb") as f:
            f.truncate(mb << 20)
        run(*mkfs, self.image)

    def copy(self, a, b):
        run("cp", "--sparse=always", a, b)

    def mount(self, failing=False):
        path = self.image
        if failing:
            self.daemon = subprocess.Popen([self.o.crashdisk, self.image, self.fuse])
            path = os.path.join(self.fuse, "disk")
            end = time.time() + 20
            while not os.path.exists(path):
                if time.time() > end or self.daemon.poll() is not None:
                    raise Failed("the disk did not come up")
                time.sleep(0.005)
        self.loop = run("losetup", "--show", "-f", path)
        try:
            run("mount", "-t", self.fs, "-o", self.mount_opts, self.loop, self.at)
        except Failed as e:
            self.unmount()
            raise Failed("what the power cut left cannot be mounted: %s" % e)

    def control(self, line):
        with open(os.path.join(self.fuse, "control"), "w") as f:
            f.write(line + "\n")

    def told(self):
        with open(os.path.join(self.fuse, "control")) as f:
            events, pending, cut = f.read().split()
        return int(events), int(pending), cut == "1"

    def unmount(self):
        for _ in range(100):
            if not is_mounted(self.at):
                break
            if subprocess.run(["umount", self.at], stderr=subprocess.DEVNULL).returncode == 0:
                break
            time.sleep(0.05)  # somebody has it open for a moment
        if self.loop:
            run("losetup", "-d", self.loop)
            self.loop = None
        if self.daemon:
            # The loop device lets go of the file a moment later.
            for _ in range(200):
                if subprocess.run(
                    ["umount", self.fuse], stderr=subprocess.DEVNULL
                ).returncode == 0:
                    break
                time.sleep(0.02)
            try:
                self.daemon.wait(20)
            except subprocess.TimeoutExpired:
                self.daemon.kill()
                raise Failed("the disk does not go away")
            self.daemon = None


class OnDisk:
    """What sweep.Bed is, with its folder on the disk. `elsewhere` is not on it."""

    elsewhere = ("runtime",)

    def __init__(self, opts, top, fs):
        self.disk = Disk(opts, top, fs)
        self.side = os.path.join(top, "side")
        self.disk.mount()
        super().__init__(opts, os.path.join(self.disk.at, "bed"))
        os.makedirs(self.side)
        self.kept = os.path.join(top, "kept")
        self.kept_side = os.path.join(top, "kept-side")

    def at(self, *p):
        return os.path.join(self.side if p[0] in self.elsewhere else self.work, *p)

    def must(self, args, *codes):
        return super().must(self.words(args), *codes)

    def patient(self, args):
        return super().patient(self.words(args))

    def words(self, args):
        return [self.at(a) if a in self.elsewhere else a for a in args]

    def keep(self):
        self.disk.unmount()
        self.disk.copy(self.disk.image, self.kept)
        subprocess.run(["cp", "-a", self.side, self.kept_side], check=True)
        self.disk.mount()

    def restore(self, failing):
        self.disk.copy(self.kept, self.disk.image)
        self.clear(self.side)
        subprocess.run(["cp", "-a", self.kept_side, self.side], check=True)
        self.disk.mount(failing)


class Mirror(OnDisk, sweep.Mirror):
    elsewhere = ("src",)
    whole_machine = True
    args = ["mirror", "-q", "--max-delete", "100000", "--durability", "full", "src", "dst"]

    def done(self):
        self.equal(clean=False)


class Back(OnDisk):
    whole_machine = False

    def done(self):
        """What was reported: here it is, there it was never in danger."""
        self.settled(clean=False)


class Turn(Back, sweep.Turn):
    pass


class Stop(Back, sweep.Stop):
    pass


class Recover(Back, sweep.Recover):
    pass


class Merge(Back, sweep.Merge):
    pass


class Undo(Back, sweep.Undo):
    def done(self):
        bad = self.differs()
        if bad:
            raise Failed("not undone: %s" % "; ".join(bad[:3]))


class Careless(Turn):
    """Without flushes: the cuts must be able to find something."""

    name = "turn without flushes"
    args = ["sync", "-q", "--durability", "none", "--max-delete", "100000", "s"]


SCENARIOS = [Mirror, Turn, Stop, Recover, Merge, Undo]


class Flusher(threading.Thread):
    """Writes back at moments of its own, as the kernel does."""

    def __init__(self, path, r):
        super().__init__()
        self.fd, self.r, self.over = os.open(path, os.O_RDONLY), r, threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(self.r.random() * 0.03):
            libc.syncfs(self.fd)

    def end(self):
        self.over.set()
        self.join()
        os.close(self.fd)


def events_of(bed):
    """How many writes and flushes the command makes, without a cut."""
    bed.restore(True)
    bed.disk.control("arm 0 0 1 0")
    code, out = bed.run(bed.words(bed.args))
    if code not in (0, 3):
        raise Failed("a run without fault: exit %d: %s" % (code, out))
    n = bed.disk.told()[0]
    bed.disk.unmount()
    return n


def cut(bed, seed, events):
    """One power cut. Returns what kind it was."""
    r = random.Random(seed)
    how = r.choice((0, 0, 1, 2, 2, 3))
    late = r.random() < 0.2  # after success, before anybody flushed anything else
    n = 0 if late else r.randint(1, events)
    bed.restore(True)
    flusher = Flusher(bed.disk.at, r) if r.random() < 0.4 and not late else None
    code = None
    out = ""
    try:
        p = bed.start(bed.words(bed.args))
        bed.disk.control("arm %d %d %d %d" % (n, how, seed, -p.pid if bed.whole_machine else p.pid))
        code, out = bed.wait(p)
        bed.disk.control("cut %d %d" % (how, seed))
    finally:
        if flusher:
            flusher.end()
        bed.disk.unmount()
    bed.disk.mount()
    try:
        if code in (0, 3):
            bed.done()
        bed.after(code, out)
    except Failed as e:
        raise Failed("%s: seed %d, event %d of %d, how %d, exit %s: %s\n  said: %s"
                     % (bed.name, seed, n, events, how, code, e, out.strip()))
    finally:
        bed.disk.unmount()
    return "after success" if code in (0, 3) else "in the middle"


def loses(opts, fs):
    """Does this disk lose anything at all, and is that noticed?"""
    top = tempfile.mkdtemp(prefix="power.", dir=opts.dir)
    bed = None
    try:
        bed = Careless(opts, top, fs)
        bed.prepare()
        bed.disk.unmount()
        events = events_of(bed)
        for i in range(40):
            try:
                cut(bed, opts.seed * 100000 + i, events)
            except Failed:
                print("# without flushes, cut %d of the disk is noticed" % (i + 1))
                return True
        return False
    finally:
        if bed:
            bed.disk.unmount()
        shutil.rmtree(top, ignore_errors=True)


def scenario(opts, cls, fs, number):
    top = tempfile.mkdtemp(prefix="power.", dir=opts.dir)
    counts, failed, bed = {}, 0, None
    begin = time.time()
    try:
        bed = cls(opts, top, fs)
        bed.prepare()
        bed.disk.unmount()
        events = events_of(bed)
        for i in range(opts.cuts):
            seed = opts.only or opts.seed * 100000 + number * 1000 + i
            try:
                kind = cut(bed, seed, events)
                counts[kind] = counts.get(kind, 0) + 1
            except Failed as e:
                failed += 1
                print("# %s" % str(e).replace("\n", "\n# "), flush=True)
                if failed >= opts.max_failures:
                    print("# too many failures")
                    break
            if opts.only:
                break
    except Failed as e:
        failed += 1
        print("# %s" % str(e).replace("\n", "\n# "))
    finally:
        if bed:
            bed.disk.unmount()
        if not (opts.only and failed):
            shutil.rmtree(top, ignore_errors=True)
        else:
            print("# kept %s" % top)
    print("# %s on %s: %s, %d failed, %.0f s" % (
        cls.name, fs, ", ".join("%d %s" % (n, k) for k, n in sorted(counts.items())), failed,
        time.time() - begin))
    print("%s %d - %s on %s: old or new, then complete; what was done is there"
          % ("not ok" if failed else "ok", number, cls.name, fs), flush=True)
    return sum(counts.values()) + failed, failed


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cuts", type=int, default=30, help="of each scenario on each file system")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", type=int, help="repeat the cut of this seed, and keep its folder")
    p.add_argument("--scenario", action="append")
    p.add_argument("--fs", action="append", choices=sorted(FILE_SYSTEMS))
    p.add_argument("--dir", default=os.environ.get("FAULT_DIR"))
    p.add_argument("--max-failures", type=int, default=5)
    p.add_argument("sbsync")
    p.add_argument("crashdisk")
    opts = p.parse_args()
    opts.sbsync, opts.crashdisk = os.path.abspath(opts.sbsync), os.path.abspath(opts.crashdisk)
    number = total = failed = 0
    print("# seed %d" % opts.seed)
    if not opts.scenario:
        number = 1
        noticed = loses(opts, (opts.fs or sorted(FILE_SYSTEMS))[0])
        failed += not noticed
        print("%s 1 - a sync that flushes nothing loses files on this disk"
              % ("ok" if noticed else "not ok"), flush=True)
    for fs in opts.fs or sorted(FILE_SYSTEMS):
        for s in SCENARIOS:
            number += 1
            if opts.scenario and s.name not in opts.scenario:
                continue
            n, bad = scenario(opts, s, fs, number)
            total += n
            failed += bad
    print("# %d cuts, %d failed" % (total, failed))
    print("1..%d" % number)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
