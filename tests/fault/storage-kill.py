#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""storage-kill.py BUILDDIR KIND PLACE ROUNDS: a storage killed at its n-th call that changes
something, for ROUNDS values of n spread over all there are (0: every one). PLACE is a directory on
the file system the storage needs."""
import os
import shutil
import struct
import subprocess
import sys

build, kind, place, rounds = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
program = os.path.join(build, "tests/fault/storage-crash")
shim = os.path.join(build, "tests/fault/.libs/shim.so")


def script(at, n):
    """Runs it in a new directory; how many calls there were, and the one it was killed in."""
    log = os.path.join(place, "log-%d" % n)
    with open(log, "wb") as f:
        f.write(b"\0" * 64)
    env = dict(os.environ, LD_PRELOAD=shim, ASAN_OPTIONS="verify_asan_link_order=0",
               FAULT_EXE="storage-crash", FAULT_N=str(n), FAULT_HOW="kill", FAULT_LOG=log)
    r = subprocess.run([program, "script", kind, at], env=env, capture_output=True, text=True,
                       timeout=120)
    with open(log, "rb") as f:
        data = f.read()
    os.unlink(log)
    calls, hits = struct.unpack("<QQ", data[:16])
    if r.returncode not in (0, -9):
        sys.exit("call %d: the script failed: %s" % (n, r.stderr))
    return calls, data[16:].split(b"\0")[0].decode() if hits else ""


def check(at, n, name):
    r = subprocess.run([program, "check", kind, at], capture_output=True, text=True, timeout=120)
    if r.returncode != 0:
        sys.exit("killed at call %d (%s): %s" % (n, name, r.stderr.strip() or r.returncode))


def new(n):
    at = os.path.join(place, "k%d" % n)
    os.mkdir(at)
    return at


at = new(0)
total, _ = script(at, 0)
check(at, 0, "the end")
if total == 0:
    sys.exit("the library counts nothing: %s" % shim)
step = max(1, total // rounds) if rounds else 1
done = 0
for n in range(1, total + 1, step):
    at = new(n)
    _, name = script(at, n)
    check(at, n, name)
    if kind != "btrfs":
        shutil.rmtree(at)
    done += 1
print("%d of %d calls" % (done, total))
