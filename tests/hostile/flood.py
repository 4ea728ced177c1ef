#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each message kind with the largest lie the wire has room for: sbsync stays small, ends at once.

  flood.py SBSYNC [CASE]...

Every case runs under a limit of memory and with --timeout 1; those that would go on for long are
also ended by SIGINT and SIGTERM. What is measured is processor time, which a busy machine does not
change. Prints TAP.
"""
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
from sandbox import Bad  # noqa: E402

SPACE = 1536 << 20  # of addresses
RESIDENT = 640 << 10  # KiB at the peak
SECONDS = 60
AFTER = 0.25  # processor seconds after a signal, what is left to clean up included
FLOODER = os.path.join(HERE, "flooder.py")

# name: does it last long enough to be caught by a signal, and by how many of them?
SIGNALS = (signal.SIGINT, signal.SIGTERM)
PULL = {
    "welcome": 0,
    "ping": 1,
    "error": 0,
    "scan": 0,
    "proof": 0,
    "changes": 0,
    "manifest": 0,
    "empties": 2,
    "dirs": 1,
    "deep": 0,
    "list": 0,
    "list-deep": 0,
    "skipped": 0,
    "skipped-tail": 0,
    "shown": 0,
    "have": 0,
    "data": 1,
    "rows": 0,
    "data-end": 0,
    "sparse": 1,
    "patches": 0,
    "shell-count": 1,
    "shell-depth": 1,
    "shell-huge": 0,
    "shell-endless": 2,
    "shell-sparse": 0,
}
PUSH = {
    k: 0
    for k in """sigs need need-twice result result-id result-counts result-early""".split()
}

# The far side says before these that it tells them: what ended must be a refusal, not the time.
REFUSED = "changes manifest list skipped skipped-tail have need result".split()


def limits():
    if not os.environ.get("SB_SANITIZED"):
        resource.setrlimit(resource.RLIMIT_AS, (SPACE, SPACE))


def cpu_of(pid):
    with open("/proc/%d/stat" % pid) as f:
        v = f.read().rsplit(")", 1)[1].split()
    return (int(v[11]) + int(v[12])) / os.sysconf("SC_CLK_TCK")


def over(p):
    """Has it ended? It is not waited for: its usage of the machine is still to be asked for."""
    return os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


class Place:
    def __init__(self, case, push):
        self.top = tempfile.mkdtemp(prefix="flood.")
        self.push = push
        self.case = case
        self.ws = os.path.join(self.top, "ws")
        os.makedirs(os.path.join(self.ws, "d0000000"))
        self.put("d0000000/f000000" if push else "mine", b"local " * 25000)
        self.told = os.path.join(self.top, "told")

    def put(self, name, data):
        with open(os.path.join(self.ws, name), "wb") as f:
            f.write(data)

    def start(self, case, *more):
        far = "h:far"
        args = [SBSYNC, "mirror", "--rsh", "%s %s %s" % (sys.executable, FLOODER, case), *more]
        args += ["--max-delete", "100", self.ws, far] if self.push else [
            "--max-delete", "100", far, self.ws]
        return subprocess.Popen(
            args,
            cwd=self.top,
            env=dict(
                os.environ,
                SBSYNC_STATE_DIR=os.path.join(self.top, "state"),
                HOSTILE_TOLD=self.told,
                HOSTILE_LIES=LIES,
            ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=open(os.path.join(self.top, "err"), "wb"),
            preexec_fn=limits,
        )

    def end(self, p):
        """Waits for it: exit code, what it said, processor time (its own), memory."""
        os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)
        spent = cpu_of(p.pid)
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        with open(os.path.join(self.top, "err"), "rb") as f:
            return p.returncode, f.read(), spent, used.ru_maxrss

    def close(self):
        subprocess.run(["rm", "-rf", self.top])


def watchdog(p):
    """Ends what does not end, and says so."""
    import threading

    def kill():
        dog.fired = True
        p.kill()

    dog = threading.Timer(SECONDS, kill)
    dog.fired = False
    dog.start()
    return dog


def judge(code, err, resident, dog):
    if dog.fired:
        raise Bad("does not end")
    if code < 0 or b"Sanitizer" in err:
        raise Bad("died of %d: %s" % (-code, err[-1000:]))
    if resident > RESIDENT and not os.environ.get("SB_SANITIZED"):
        raise Bad("took %d MiB" % (resident >> 10))
    lines = err.decode("utf-8", "replace").strip().split("\n")
    if len(lines) > 1010:
        raise Bad("printed %d lines" % len(lines))
    return lines[-1]


def mine(place):
    """What was here before is here still."""
    path = "d0000000/f000000" if place.push else "mine"
    with open(os.path.join(place.ws, path), "rb") as f:
        if f.read() != b"local " * 25000:
            raise Bad("a local file changed")


def prime(place):
    """Lies are made beforehand. CHANGES builds on a base: the first sync is an honest one."""
    for made in (place.case, "old" if place.push else "honest"):
        subprocess.run(
            [sys.executable, FLOODER, "--make", made],
            env=dict(os.environ, HOSTILE_LIES=LIES),
            check=True,
        )
    if place.case != "changes":
        return
    p = place.start("honest")
    code, err, spent, resident = place.end(p)
    if code:
        raise Bad("an honest sync: %r" % err)
    place.put("mine", b"local " * 25000)
    os.unlink(place.told)


def by_time(case, push):
    """The limit grows until the lie is reached: how soon it is says something of the machine."""
    for limit in (1, 4, 16):
        said = timed(case, push, limit)
        if not said:
            return
    raise Bad("it did not come to the lie in %d s: %s" % (limit, said))


def timed(case, push, limit):
    """Returns how it ended when that was before it came to the lie."""
    place = Place(case, push)
    try:
        prime(place)
        p = place.start(case, "--timeout", str(limit))
        dog = watchdog(p)
        code, err, spent, resident = place.end(p)
        dog.cancel()
        last = judge(code, err, resident, dog)
        if not os.path.exists(place.told) or (case in REFUSED and "(--timeout)" in last):
            return "exit %d %s" % (code, last)
        if code == 0:
            raise Bad("the lie was believed")
        if spent > 1.5 + limit and not os.environ.get("SB_SANITIZED"):
            raise Bad("took %.1f s of processors" % spent)
        if case not in ("empties", "dirs", "shown"):
            mine(place)
        if os.environ.get("SB_VERBOSE"):
            print("# %.2f s, %d MiB: %s" % (spent, resident >> 10, last))
        return None
    finally:
        place.close()


def by_signal(case, push, sig):
    place = Place(case, push)
    try:
        prime(place)
        p = place.start(case)
        dog = watchdog(p)
        while not os.path.exists(place.told) and not dog.fired:
            if over(p):
                break
            time.sleep(0.01)
        began = cpu_of(p.pid)
        # Into the midst of it, as far as processor time tells.
        limit = time.monotonic() + 5
        while cpu_of(p.pid) < began + 0.3 and time.monotonic() < limit and not over(p):
            time.sleep(0.01)
        at = cpu_of(p.pid)
        if not over(p):
            p.send_signal(sig)
        code, err, spent, resident = place.end(p)
        dog.cancel()
        last = judge(code, err, resident, dog)
        spent -= at
        if code != 1:
            raise Bad("exit %d: %s" % (code, last))
        if spent > AFTER and not os.environ.get("SB_SANITIZED"):
            raise Bad("worked for %.2f s after the signal: %s" % (spent, last))
        if os.environ.get("SB_VERBOSE"):
            print("# %.2f s after the signal, %d MiB: %s" % (spent, resident >> 10, last))
    finally:
        place.close()


def crying_wolf():
    """A far side that always says that something changed does not have us sync all the time."""
    place = Place("changed", True)
    try:
        subprocess.run(["rm", "-rf", place.ws], check=True)
        os.mkdir(place.ws)
        rsh = ["--rsh", "%s %s changed" % (sys.executable, FLOODER)]
        env = dict(
            os.environ,
            SBSYNC_STATE_DIR=os.path.join(place.top, "state"),
            HOSTILE_TOLD=place.told,
            HOSTILE_LIES=LIES,
        )
        run = lambda *a: subprocess.Popen([SBSYNC, *a], env=env, stderr=subprocess.DEVNULL)
        if run("start", "-q", "--name", "w", *rsh, place.ws, "h:far").wait(SECONDS):
            raise Bad("no session")
        p = run("watch", "-q", "--every", "10m", "w")
        dog = watchdog(p)
        while not os.path.exists(place.told) and not over(p):
            time.sleep(0.01)
        time.sleep(4)  # how often in this time is the question
        p.send_signal(signal.SIGINT)
        p.wait()
        dog.cancel()
        asked = os.path.getsize(place.told)
        if asked > 15:
            raise Bad("%d syncs in four seconds" % asked)
        if asked < 2:
            raise Bad("it does not listen at all")
    finally:
        place.close()


def root_mode():
    """Without an agent, too, the root gets the mode that was listed."""
    place = Place("shell-mode", False)
    try:
        os.chmod(place.ws, 0o700)
        p = place.start("shell-mode")
        code, err, spent, resident = place.end(p)
        if code:
            raise Bad("exit %d: %s" % (code, err))
        mode = os.stat(place.ws).st_mode & 0o777
        if mode != 0o755:
            raise Bad("the root has mode %o" % mode)
    finally:
        place.close()


def main():
    only = sys.argv[2:]
    tests = [
        ("watch, changed: %s" % crying_wolf.__doc__, crying_wolf),
        ("pull, shell-mode: %s" % root_mode.__doc__, root_mode),
    ]
    for table, push in ((PULL, False), (PUSH, True)):
        for case, long in table.items():
            word = "push" if push else "pull"
            tests.append(
                ("%s, %s: ends by --timeout" % (word, case), lambda c=case, u=push: by_time(c, u))
            )
            for sig in SIGNALS[:long]:
                tests.append(
                    (
                        "%s, %s: ends by %s" % (word, case, sig.name),
                        lambda c=case, u=push, s=sig: by_signal(c, u, s),
                    )
                )
    tests = [t for t in tests if not only or any(" %s:" % o in t[0] for o in only)]
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
    SBSYNC = os.path.abspath(sys.argv[1])
    LIES = tempfile.mkdtemp(prefix="lies.")
    try:
        code = main()
    finally:
        shutil.rmtree(LIES, ignore_errors=True)
    sys.exit(code)
