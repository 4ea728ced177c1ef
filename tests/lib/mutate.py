#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the tests do not notice: changes single places of the code, one at a time, and runs tests.

usage: mutate.py [--count N] [--seed S] SRC BUILD ROOM...

SRC is changed and put back: give it a tree of its own. Prints a line for each change that all
tests of its room passed ("survived"), and the counts. A room is a folder with tests in TESTS.
"""
import argparse
import os
import random
import re
import signal
import subprocess
import sys

TESTS = {
    "lib/session": "test-sandbox test-sandbox-hooks test-sandbox-profile test-sandbox-recover",
    "lib/provider": "test-state test-profile test-sandbox test-sandbox-profile test-trust"
                    " test-sshlink test-secret",
    "sync/plan": "test-reconcile test-guard test-merge test-session-model",
    "sync/replica": "test-recall test-run test-step test-session-model",
}
SWAPS = [(" == ", " != "), (" != ", " == "), (" < ", " >= "), (" > ", " <= "), (" && ", " || "),
         (" || ", " && "), (" <= ", " > "), (" >= ", " < "), ("true", "false"), ("false", "true"),
         ("if (!", "if ("), (" + 1", ""), (" - 1", ""), ("return r;", "return 0;")]


def places(path):
    """All (line, column, old, new) of a file; old None: the whole statement goes."""
    found = []
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    comment = False
    for i, line in enumerate(lines):
        begins, ends = "/*" in line, "*/" in line
        if comment or begins:
            comment = not ends
            continue
        if not line.startswith("\t") or "sb_log(" in line or "assert(" in line:
            continue
        for old, new in SWAPS:
            for m in re.finditer(re.escape(old), line):
                found.append((i, m.start(), old, new))
        if re.fullmatch(r"\t+(\(void\))?[a-z_]+\(.*\);", line):
            found.append((i, 0, None, None))
    return lines, found


def run(argv, seconds, **more):
    """The exit code; everything it started ends with it."""
    p = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                         start_new_session=True, **more)
    try:
        return p.wait(seconds)
    except subprocess.TimeoutExpired:
        return -1
    finally:
        try:
            os.killpg(p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        p.wait()


def try_one(src, build, room, path, rng):
    lines, found = places(path)
    if not found:
        return None
    i, at, old, new = rng.choice(found)
    changed = list(lines)
    changed[i] = "" if old is None else lines[i][:at] + new + lines[i][at + len(old):]
    tests = ["tests/unit/" + t for t in TESTS[room].split()]
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(changed))
    try:
        if run(["make", "-C", build, "-j3"] + tests, 300) != 0:
            return None
        env = dict(os.environ, SB_TOP_SRCDIR=src, SB_TOP_BUILDDIR=build, RECONCILE_TRIPLES="3000",
                   SESSION_ROUNDS="15")
        for t in tests:
            if run(["./" + t], 90, cwd=build, env=env) != 0:
                return "killed", None
        return "survived", "%s:%d: %s -> %s" % (os.path.relpath(path, src), i + 1,
                                                lines[i].strip(), changed[i].strip() or "(gone)")
    finally:
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(lines))


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--count", type=int, default=200)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("src")
    a.add_argument("build")
    a.add_argument("room", nargs="+")
    a = a.parse_args()
    rng = random.Random(a.seed)
    src, build = os.path.abspath(a.src), os.path.abspath(a.build)
    files = [(room, os.path.join(src, room, f)) for room in a.room
             for f in sorted(os.listdir(os.path.join(src, room))) if f.endswith(".c")]
    weights = [len(places(f)[1]) for _, f in files]
    tests = sorted({"tests/unit/" + t for r in a.room for t in TESTS[r].split()})
    if run(["make", "-C", build, "-j3"] + tests, 3000) != 0:
        sys.exit("mutate.py: the tree as it is does not build")
    counts = {"killed": 0, "survived": 0}
    while sum(counts.values()) < a.count:
        room, path = rng.choices(files, weights)[0]
        got = try_one(src, build, room, path, rng)
        if not got:
            continue
        counts[got[0]] += 1
        if got[1]:
            print("survived: " + got[1], flush=True)
        if sum(counts.values()) % 10 == 0:
            print("# %(killed)d killed, %(survived)d survived" % counts, flush=True)
    print("# %(killed)d killed, %(survived)d survived" % counts)


if __name__ == "__main__":
    main()
