#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Syncs that are interrupted, run twice at once, or meet files that change under them.

  races.py [--rounds N] [--seed N] SBSYNC SHIM

Prints TAP.
"""
import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time

import sweep
from sweep import Failed, content, differences, listing, trees, write

TURN = ["sync", "-q", "--max-delete", "100000", "s"]


def interrupted(opts, top, r):
    """SIGINT at random times: old or new, then complete."""
    bed = sweep.Mirror(opts, top)
    bed.prepare()
    took = []
    for i in range(opts.rounds):
        bed.restore()
        begin = time.time()
        p = bed.start(bed.args)
        if i >= 3:
            time.sleep(r.random() * max(took))
            os.killpg(p.pid, signal.SIGINT)
        code, out = bed.wait(p)
        if i < 3:
            took.append(time.time() - begin)
        if code not in (0, 1, 130, -signal.SIGINT):
            raise Failed("SIGINT: exit %d: %s" % (code, out))
        # The agent may still be finishing its commit: it holds the lock then.
        for _ in range(200):
            again, out = bed.run(bed.args)
            if again != 4:
                break
            time.sleep(0.05)
        if again:
            raise Failed("after SIGINT: exit %d: %s" % (again, out))
        bed.equal()


def two_at_once(opts, top, r):
    """One of two syncs of one target may have to give way, with exit 4; both are right."""
    bed = sweep.Mirror(opts, top)
    bed.prepare()
    for _ in range(opts.rounds // 2):
        bed.restore()
        both = [bed.start(bed.args), bed.start(bed.args)]
        codes = [bed.wait(p) for p in both]
        if not all(c in (0, 4) for c, _ in codes) or all(c == 4 for c, _ in codes):
            raise Failed("exits %r" % codes)
        bed.equal(clean=False)
        bed.must(bed.args)
        bed.equal()


def moving_source(opts, top, r):
    """A file of the source that is rewritten all the time arrives as one of its
    versions, or not at all."""
    bed = sweep.Mirror(opts, top)
    size = 3 << 20
    write(bed.at("src", "calm"), "calm\n")
    path = bed.at("src", "moving")
    version = lambda n: (b"%07d\n" % n) * (size // 8)
    trees.put(path, version(0))
    stop = threading.Event()

    def rewrite():
        n = 0
        while not stop.is_set():
            n += 1
            with open(path, "r+b") as f:
                f.write(version(n))
            time.sleep(r.random() * 0.05)

    t = threading.Thread(target=rewrite)
    t.start()
    try:
        for _ in range(opts.rounds // 3):
            bed.run(bed.args)
            if os.path.exists(bed.at("dst", "moving")):
                with open(bed.at("dst", "moving"), "rb") as f:
                    data = f.read()
                if len(data) != size or data != data[:8] * (size // 8):
                    raise Failed("a torn version arrived")
            if not os.path.exists(bed.at("dst", "calm")):
                raise Failed("the file beside it did not arrive")
    finally:
        stop.set()
        t.join()
    bed.must(bed.args)
    if differences(listing(bed.at("dst"))[0], listing(bed.at("src"))[0], skip_root=True):
        raise Failed("not equal once it is calm")


def second_chance(opts, top, r):
    """A file that changed while it was sent, and is calm again, comes with the same run."""
    bed = sweep.Mirror(opts, top)
    write(bed.at("src", "calm"), "calm\n")
    # More than all the queues between the two sides hold, so that it is still being
    # read when the agent pauses.
    write(bed.at("src", "moving"), os.urandom(1 << 20) * 128)
    bed.keep()
    calls = paused_calls(bed, bed.args, "agent")
    for n in range(1, min(calls, 8) + 1):
        bed.restore()

        def disturb():
            with open(bed.at("src", "moving"), "ab") as f:
                f.write(b"more")

        code, out = paused_run(bed, bed.args, "agent", n, disturb)
        if code or out.strip():
            raise Failed("pause %d: exit %d: %s" % (n, code, out))
        bad = differences(listing(bed.at("dst"))[0], listing(bed.at("src"))[0], skip_root=True)
        if bad:
            raise Failed("pause %d: %s" % (n, bad[:3]))


def changed_target(opts, top, r):
    """What appears or changes at the destination between scan and commit
    is never lost, and told."""
    bed = sweep.Mirror(opts, top)
    bed.prepare()
    calls = paused_calls(bed, bed.args, "agent")
    for n in r.sample(range(1, calls + 1), min(calls, opts.rounds)):
        bed.restore()
        mine = {
            "edit": b"my edit %d\n" % n,
            "src/new": b"mine first %d\n" % n,
            "gone": b"edited before it goes %d\n" % n,
            "swap1": b"swapped %d\n" % n,
            "newdir": b"a file where a directory comes %d\n" % n,
        }

        waiting = set()

        def disturb():
            now = listing(bed.at("dst"))[0]
            for p, text in mine.items():
                full, key = bed.at("dst", p), p.encode()
                if os.path.isdir(full):
                    continue
                if key in bed.old and content(now.get(key)) == content(bed.old[key]):
                    waiting.add(p)
                with open(full, "wb") as f:
                    f.write(text)

        code, out = paused_run(bed, bed.args, "agent", n, disturb)
        if bed.counted()[2] == "mkdir":
            continue  # of the state folder, before the scan: the edits were there when it looked
        everything = set()
        for d, _, files in os.walk(bed.at("dst")):
            for f in files:
                full = os.path.join(d, f)
                if not os.path.islink(full):
                    with open(full, "rb") as h:
                        everything.add(h.read())
        for p, text in mine.items():
            if p == "newdir" and os.path.isdir(bed.at("dst", "newdir")) and text not in everything:
                continue  # it was a directory already when we came
            if text not in everything:
                raise Failed(
                    "pause %d: the edit of %s is lost (exit %d: %s)" % (n, p, code, out.strip())
                )
        for p in waiting:
            if code == 0 and p not in out:
                raise Failed("pause %d: %s had changed, and nobody says so: %s" % (n, p, out))
        bed.must(bed.args)
        bed.equal()


def paused_calls(bed, args, who):
    bed.restore()
    bed.run(args, (who, "kill", 0, 1, False))
    return bed.counted()[0]


def paused_run(bed, args, who, n, meanwhile):
    hook = os.path.join(bed.top, "pause")
    for end in (".here", ".go"):
        if os.path.exists(hook + end):
            os.unlink(hook + end)
    p = bed.start(args, (who, "pause", n, 1, False), {"FAULT_PAUSE": hook})
    while not os.path.exists(hook + ".here") and p.poll() is None:
        time.sleep(0.002)
    meanwhile()
    with open(hook + ".go", "w"):
        pass
    return bed.wait(p)


def changed_workspace(opts, top, r):
    """The user types while a sync is writing to the workspace: every
    keystroke that was saved stays."""
    bed = sweep.Turn(opts, top)
    bed.prepare()
    calls = paused_calls(bed, bed.args, "controller")
    for n in r.sample(range(1, calls + 1), min(calls, opts.rounds)):
        bed.restore()
        mine = {
            "src/f1": b"typed %d\n" % n,
            "src/new": b"typed into a new file %d\n" % n,
            "big": b"all of it typed %d\n" % n,
            "edit": b"typed into the conflict %d\n" % n,
        }

        def disturb():
            for p, text in mine.items():
                with open(bed.at("ws", p), "wb") as f:
                    f.write(text)

        code, out = paused_run(bed, bed.args, "controller", n, disturb)
        code, out = bed.run(TURN)
        if code not in (0, 3):
            raise Failed("pause %d: the next sync: exit %d: %s" % (n, code, out))
        have = {content(e) for e in listing(bed.at("ws"))[0].values()}
        for p, text in mine.items():
            if content(entry_of(text)) not in have:
                raise Failed("pause %d: what was typed into %s is lost" % (n, p))
        a, b = listing(bed.at("ws"))[0], listing(bed.at("runtime"))[0]
        if differences(a, b, skip_root=True, contents=True):
            raise Failed("pause %d: not equal: %s" % (n, differences(a, b, True, True)[:3]))


def saved_twice(opts, top, r):
    """The user saves just before a sync swaps the file, and again before the swap is taken back:
    the second is in place, and nothing is thrown away."""
    bed = sweep.Turn(opts, top)
    bed.prepare()
    hook = os.path.join(bed.top, "pause")
    calls = paused_calls(bed, bed.args, "controller")
    swaps = 0
    for n in range(1, calls):
        bed.restore()
        # Only where the file is about to be swapped; a run without anybody saving tells.
        bed.run(bed.args, ("controller", "kill", n, 1, False))
        if bed.counted()[2] != "renameat2":
            continue
        for how in (in_place, by_rename):
            bed.restore()
            for name in os.listdir(bed.top):
                if name.startswith("pause."):
                    os.unlink(os.path.join(bed.top, name))
            p = bed.start(
                bed.args, ("controller", "pause", n, 2, False), {"FAULT_PAUSE": hook}
            )
            for k, end in enumerate(("", ".1")):
                while not os.path.exists(hook + ".here" + end) and p.poll() is None:
                    time.sleep(0.002)
                for name in ("src/f1", "big"):
                    (in_place if k == 0 else how)(
                        bed.at("ws", name), b"%s saved %d\n" % (name.encode(), k)
                    )
                with open(hook + ".go" + end, "w"):
                    pass
            code, out = bed.wait(p)
            swaps += 1
            for name in ("src/f1", "big"):
                have = {content(e) for e in listing(bed.at("ws"))[0].values()}
                if content(entry_of(b"%s saved 1\n" % name.encode())) not in have:
                    raise Failed("pause %d, %s: what was saved last in %s is lost (exit %d: %s)"
                                 % (n, how.__name__, name, code, out))
            bed.must(TURN, 0, 3)
    if not swaps:
        raise Failed("no swap was found")


def in_place(path, text):
    with open(path, "wb") as f:
        f.write(text)


def by_rename(path, text):
    in_place(path + ".new", text)
    os.rename(path + ".new", path)


def entry_of(text):
    import hashlib

    return ("file", 0, 0, len(text), hashlib.sha1(text).hexdigest())


RACES = [interrupted, two_at_once, moving_source, second_chance, changed_target, changed_workspace]
RACES += [saved_twice]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=12)
    p.add_argument("--seed", default=str(int(time.time() // 3600)))
    p.add_argument("--only")
    p.add_argument("sbsync")
    p.add_argument("shim")
    opts = p.parse_args()
    opts.sbsync, opts.shim = os.path.abspath(opts.sbsync), os.path.abspath(opts.shim)
    print("# seed %s" % opts.seed)
    failed = 0
    chosen = [f for f in RACES if not opts.only or f.__name__ == opts.only]
    for i, race in enumerate(chosen):
        top = tempfile.mkdtemp(prefix="race.", dir=os.environ.get("FAULT_DIR"))
        why, begin = None, time.time()
        try:
            race(opts, top, random.Random("%s %s" % (opts.seed, race.__name__)))
        except Failed as e:
            why = e
            failed += 1
        name = " ".join(race.__doc__.split())
        print(
            "%s %d - %s (%.0f s)" % ("not ok" if why else "ok", i + 1, name, time.time() - begin),
            flush=True,
        )
        if why:
            print("# %s" % str(why).replace("\n", "\n# "))
        sweep.Bed.clear(None, top)
    print("1..%d" % len(chosen))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
