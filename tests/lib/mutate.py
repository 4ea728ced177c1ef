#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the tests do not notice: changes single places of the code, one at a time, and runs tests.

usage: mutate.py [--count N] [--seed S] [--verbose] SRC BUILD ROOM...

SRC is changed and put back, programs in BUILD are linked anew: give it a tree of its own, built
without shared libraries (../configure --disable-shared CFLAGS=-O0). Prints a line for each change
that all tests of its room passed ("survived"; --verbose: also those that were killed, and by what),
and the counts. A room is a folder with tests in TESTS.
"""
import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile

# The tests of a room, quick ones first: a program below tests/unit, or a line of shell in BUILD
# behind the names of the programs that it runs.
CONFORM = ":sbprovider-check: ./sbprovider-check -t 20s -b "
E2E = ":sbsync: $SB_TOP_SRCDIR/tests/e2e/"
TESTS = {
    "lib/session": ["test-sandbox", "test-sandbox-hooks", "test-sandbox-recover",
                    "test-sandbox-profile"],
    "lib/provider": ["test-state", "test-profile", "test-trust", "test-secret", "test-sshlink",
                     "test-sandbox", "test-sandbox-profile", CONFORM + "local",
                     CONFORM + "host -o runtime=none"],
    "sync/plan": ["test-guard", "test-merge", "test-reconcile", "test-session-model",
                  E2E + "guard.sh", E2E + "session-conflicts.sh", E2E + "session.sh",
                  E2E + "mirror.sh"],
    "sync/replica": ["test-step", "test-recall", "test-run", "test-session-model",
                     E2E + "session.sh", E2E + "mirror.sh", E2E + "undo.sh"],
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


def programs_of(test):
    if not test.startswith(":"):
        return ["tests/unit/" + test]
    return test.split(":")[1].split()


def commands(build, programs):
    """How an object is compiled and each program is linked, as make does it."""
    compile_, link = None, {}
    for program in programs:
        path = os.path.join(build, program)
        if os.path.exists(path):
            os.unlink(path)
        out = subprocess.run(["make", "-C", build, "V=1", program], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, timeout=3000, check=False)
        found = re.findall(r"^libtool: link: (.* -o %s .*)$" % re.escape(program), out.stdout,
                           re.M)
        if out.returncode != 0 or not found:
            sys.exit("mutate.py: %s does not build, or not without shared libraries"
                     " (configure --disable-shared)" % program)
        link[program] = found[-1]
    out = subprocess.run(["make", "-C", build, "-W", "lib/base/buf.c", "-n", "V=1",
                          "lib/base/buf.lo"], stdout=subprocess.PIPE, text=True, check=True)
    compile_ = re.search(r"--mode=compile (.*?) -MT", out.stdout).group(1)
    return compile_, link


class Tree:
    """SRC and BUILD. A changed object stands in front of the libraries that have it."""

    def __init__(self, src, build, rooms):
        self.src, self.build = src, build
        programs = sorted({p for r in rooms for t in TESTS[r] for p in programs_of(t)})
        self.compile, self.link = commands(build, programs)
        self.object = os.path.join(build, "mutant.o")
        self.tried = set()
        self.env = dict(os.environ, SB_TOP_SRCDIR=src, SB_TOP_BUILDDIR=build,
                        RECONCILE_TRIPLES="3000", SESSION_ROUNDS="15",
                        SBSYNC_AGENT=os.path.join(build, "sbsync-agent"))

    def passes(self, test, linked):
        for program in programs_of(test):
            if program in linked:
                continue
            linked.add(program)
            with_it = self.link[program].replace(" -o %s " % program,
                                                 " -o %s %s " % (program, self.object), 1)
            if run(["sh", "-c", with_it], 300, cwd=self.build) != 0:
                return None
        line = test.split(":", 2)[2] if test.startswith(":") else "./tests/unit/" + test
        with tempfile.TemporaryDirectory(prefix="mutate.") as tmp:
            env = dict(self.env, TMPDIR=tmp, XDG_STATE_HOME=tmp, HOME=tmp)
            return run(["sh", "-c", line], 240, cwd=self.build, env=env) == 0

    def try_one(self, room, path, rng):
        lines, found = places(path)
        found = [f for f in found if (path, f) not in self.tried]
        if not found:
            return None
        i, at, old, new = rng.choice(found)
        self.tried.add((path, (i, at, old, new)))
        changed = list(lines)
        changed[i] = "" if old is None else lines[i][:at] + new + lines[i][at + len(old):]
        where = "%s:%d: %s -> %s" % (os.path.relpath(path, self.src), i + 1, lines[i].strip(),
                                     changed[i].strip() or "(gone)")
        linked = set()
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(changed))
        try:
            if run(["sh", "-c", "%s -c -o %s %s" % (self.compile, self.object, path)], 300,
                   cwd=self.build) != 0:
                return None
        finally:
            with open(path, "w", encoding="utf-8") as f:
                f.write("\n".join(lines))
        for test in TESTS[room]:
            ok = self.passes(test, linked)
            if ok is None:
                return None
            if not ok:
                return "killed", "%s by %s" % (where, test.split()[-1])
        return "survived", where


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--count", type=int, default=200)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--verbose", action="store_true")
    a.add_argument("src")
    a.add_argument("build")
    a.add_argument("room", nargs="+")
    a = a.parse_args()
    rng = random.Random(a.seed)
    src, build = os.path.abspath(a.src), os.path.abspath(a.build)
    files = [(room, os.path.join(src, room, f)) for room in a.room
             for f in sorted(os.listdir(os.path.join(src, room))) if f.endswith(".c")]
    weights = [len(places(f)[1]) for _, f in files]
    tree = Tree(src, build, a.room)
    compiled = run(["sh", "-c", "echo | %s -x c -c -o %s -" % (tree.compile, tree.object)], 60,
                   cwd=build)
    bad = [t for r in a.room for t in TESTS[r] if not tree.passes(t, set())]
    if compiled != 0 or bad:
        sys.exit("mutate.py: the tree as it is does not pass %s" % ", ".join(bad))
    counts = {"killed": 0, "survived": 0}
    while sum(counts.values()) < a.count:
        room, path = rng.choices(files, weights)[0]
        got = tree.try_one(room, path, rng)
        if not got:
            continue
        counts[got[0]] += 1
        if got[0] == "survived" or a.verbose:
            print("%s: %s" % got, flush=True)
        if sum(counts.values()) % 10 == 0:
            print("# %(killed)d killed, %(survived)d survived" % counts, flush=True)
    print("# %(killed)d killed, %(survived)d survived" % counts)


if __name__ == "__main__":
    main()
