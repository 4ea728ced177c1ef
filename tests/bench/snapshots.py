#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What snapshot, rollback, fork and create cost by RPC, in boxes of bwrap:
snapshots.py BUILDDIR PLACE STORAGE [POOL]. Called by tests/bench/snapshots.sh, on a file system of
its own. A base of 50,000 files (BENCH_FILES), 20 changed before each snapshot, at depth 1, 10 and
64; p50 and p99 in milliseconds, beside the bare commands and copies on the same file system."""
import http.client
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time

build, place, storage = sys.argv[1:4]
pool = sys.argv[4] if len(sys.argv) > 4 else None
files = int(os.environ.get("BENCH_FILES", "50000"))
rounds = int(os.environ.get("BENCH_ROUNDS", "30"))
many = int(os.environ.get("BENCH_SESSIONS", "1000"))
OWNER = 1879048192  # of the base images: a user of the sessions' range, see --session-uid-first
base = "img@initial" if pool else "img"


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(place + "/state/sock")


class Host:
    running = None

    def __init__(self, state, *options):
        self.state = state
        shutil.rmtree(place + "/state", ignore_errors=True)
        os.makedirs(place + "/state")
        self.argv = [build + "/sbhostd", "--state-dir", place + "/state"]
        self.argv += ["--listen", "unix:" + place + "/state/sock", "--storage-backend", storage]
        if pool:
            self.argv += ["--pool", pool, "--bases-dataset", pool + "/bases"]
            self.argv += ["--sessions-dataset", pool + "/" + state]
        else:
            self.argv += ["--sessions-root-dir", place + "/" + state]
            self.argv += ["--bases-dir", place + "/bases"]
        self.argv += ["--session-uid-first", str(OWNER)] + list(options)
        self.start()

    def start(self):
        began = time.perf_counter()
        self.log = open(place + "/sbhostd.log", "a")
        self.process = subprocess.Popen(
            self.argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log
        )
        Host.running = self
        while True:
            if self.process.poll() is not None:
                raise SystemExit("sbhostd: " + open(place + "/sbhostd.log").read()[-2000:])
            try:
                self.http = Connection("localhost")
                self.call("GetCapabilities")
                break
            except OSError:
                time.sleep(0.002)
        return time.perf_counter() - began

    def call(self, method, **fields):
        self.http.request(
            "POST",
            "/rpc.v1.SandboxService/" + method,
            json.dumps(fields),
            {"Content-Type": "application/json"},
        )
        r = self.http.getresponse()
        body = json.loads(r.read())
        if r.status != 200:
            raise SystemExit("%s: %s" % (method, body))
        return body

    def timed(self, method, **fields):
        t = time.perf_counter()
        out = self.call(method, **fields)
        return (time.perf_counter() - t) * 1000, out

    def bash(self, session, cmd):
        return self.call(
            "ExecuteTool",
            SessionID=session,
            ToolCallID="c%d" % time.perf_counter_ns(),
            ToolName="bash",
            Params={"cmd": cmd},
        )

    def path(self, session):
        return self.call("GetSession", SessionID=session)["Session"]["Mountpoint"]

    def end(self):
        Host.running = None
        for s in self.call("ListSessions", Limit=1000)["Sessions"] if self.sweep else []:
            self.call("DestroySession", SessionID=s["ID"], Force=True)
        self.process.terminate()
        self.process.wait()

    sweep = True


def show(what, times, wanted=None):
    times = sorted(times)
    p99 = times[min(len(times) - 1, int(len(times) * 0.99))]
    print(
        "  %-44s p50 %8.2f  p99 %8.2f ms  (%d)%s"
        % (
            what,
            statistics.median(times),
            p99,
            len(times),
            "  wanted %g" % wanted if wanted else "",
        ),
        flush=True,
    )


def make_base(at, n):
    for i in range(n):
        d = "%s/d%03d" % (at, i % 500)
        if i < 500:
            os.makedirs(d, exist_ok=True)
        with open("%s/f%05d" % (d, i), "w") as f:
            f.write("file %d\n" % i * 40)
    # On overlay it is shown as whoever needs it; elsewhere every file would be given away.
    if storage != "overlay":
        subprocess.run(["chown", "-R", "%d:%d" % (OWNER, OWNER), at], check=True)


def change(at, n, tag):
    owner = os.stat(at).st_uid
    for i in range(n):
        p = "%s/d%03d/f%05d" % (at, i % 500, i)
        with open(p, "w") as f:
            f.write("%s %d\n" % (tag, i) * 40)
        os.chown(p, owner, owner)


def walk(at):
    t = time.perf_counter()
    n = 0
    for root, _, names in os.walk(at):
        for name in names:
            n += os.lstat(os.path.join(root, name)).st_size > 0
    return (time.perf_counter() - t) * 1000


def wanted(durable, idle, late):
    return (late if durable else idle) if storage == "overlay" else None


def bare_box():
    """What bubblewrap itself takes for namespaces, /proc and /dev, around a program that ends."""
    argv = ["bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc"]
    argv += ["--unshare-uts", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    t = time.perf_counter()
    subprocess.run(argv + ["--", "/bin/true"], check=True)
    return (time.perf_counter() - t) * 1000


def at_depth(h, depth, durable):
    """One session with so many snapshots below, and its box running."""
    s = "d%d" % depth
    h.call("CreateSession", SessionID=s, BaseSnapshot=base)
    h.bash(s, ":")
    at = h.path(s)
    for i in range(depth - 1):
        change(at, 20, "deep %d" % i)
        h.call("CreateSnapshot", SessionID=s, Name="deep%d" % i)
    snap, roll, fork, first, box, live = [], [], [], [], [], 0
    for i in range(rounds):
        n = "n%d" % i
        change(at, 20, n)
        ms, out = h.timed("CreateSnapshot", SessionID=s, Name=n)
        snap.append(ms)
        live += out.get("Live", False)
        change(at, 20, "lost")
        ms, out = h.timed("RollbackSession", SessionID=s, SnapshotID=n)
        roll.append(ms)
        assert not out.get("BoxRestarted"), out
        t = time.perf_counter()
        fork.append(h.timed("Fork", SessionID=s, SnapshotID=n, NewSessionID="f" + n)[0])
        h.bash("f" + n, ":")
        first.append((time.perf_counter() - t) * 1000)
        h.call("DestroySession", SessionID="f" + n)
        box.append(bare_box())
        # The depth stays what it is.
        if depth > 1:
            deep = "deep%d" % (depth - 2)
            h.call("RollbackSession", SessionID=s, SnapshotID=deep, DropLater=True)
    what = "depth %d%s" % (depth, ", durable" if durable else "")
    show("snapshot, idle box, " + what, snap, wanted(durable, 3, 8))
    show("rollback, " + what, roll, wanted(durable, 4, 0))
    show("fork, " + what, fork, wanted(durable, 2, 0))
    show("fork and first command, " + what, first, wanted(durable, 15, 0))
    show("  beside, in the same rounds: bare bwrap", box)
    if live:
        print("  (%d of %d snapshots found files open)" % (live, rounds))
    h.call("DestroySession", SessionID=s)


def create(h):
    times = []
    for i in range(rounds):
        times.append(h.timed("CreateSession", SessionID="c%d" % i, BaseSnapshot=base)[0])
        h.call("DestroySession", SessionID="c%d" % i)
    show("create from the base", times, wanted(False, 3, 0))


def live(h, n):
    """A process works in the workspace: what changed is copied while it stands still."""
    h.call("CreateSession", SessionID="live", BaseSnapshot=base)
    h.call(
        "LaunchProcess",
        SessionID="live",
        Binary="/bin/sh",
        Args=["-c", "exec 3>>log; while :; do echo x >&3; sleep 0.01; done"],
    )
    at, times = h.path("live"), []
    for i in range(max(3, rounds // 3)):
        change(at, n, "live %d" % i)
        ms, out = h.timed("CreateSnapshot", SessionID="live", Name="l%d" % i)
        assert storage != "overlay" or out["Live"]
        times.append(ms)
    show("snapshot, live, %d files changed" % n, times, wanted(False, 8, 0) if n == 2000 else None)
    h.call("DestroySession", SessionID="live")


def unchanged(h):
    h.call("CreateSession", SessionID="same", BaseSnapshot=base)
    change(h.path("same"), 1, "x")
    h.call("TurnComplete", SessionID="same")
    times = [h.timed("TurnComplete", SessionID="same") for _ in range(rounds)]
    show(
        "turn without a change (%d of %d took nothing)"
        % (sum(o.get("Unchanged", False) for _, o in times), rounds),
        [t for t, _ in times],
    )
    h.call("DestroySession", SessionID="same")


def walks(h, plain):
    h.call("CreateSession", SessionID="w", BaseSnapshot=base)
    at = h.path("w")
    walk(plain)
    warm = walk(plain)
    first = walk(at)
    steady = min(walk(at) for _ in range(3))
    change(at, 20, "w")
    h.call("CreateSnapshot", SessionID="w", Name="w")
    swapped = walk(at)
    print(
        "  walk of %d files: plain directory %.0f ms; new session %.0f, again %.0f (%.2f of "
        "plain), after a snapshot %.0f" % (files, warm, first, steady, steady / warm, swapped)
    )
    h.call("DestroySession", SessionID="w")


def bare(plain):
    """The commands themselves, and copies, on the same file system."""

    def run(*argv):
        t = time.perf_counter()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        return (time.perf_counter() - t) * 1000

    times = []
    for i in range(3):
        times.append(run("cp", "-a", "--reflink=auto", plain, place + "/copy"))
        shutil.rmtree(place + "/copy")
    show("beside: cp -a --reflink=auto", times)
    if storage == "btrfs":
        make, gone = [], []
        for i in range(rounds):
            change(plain, 20, "b%d" % i)
            make.append(run("btrfs", "subvolume", "snapshot", "-r", plain, place + "/bare"))
            gone.append(run("btrfs", "subvolume", "delete", place + "/bare"))
        show("beside: btrfs subvolume snapshot -r", make)
    if pool:
        ds, t = pool + "/bare", {"snapshot": [], "rollback": [], "clone": []}
        run("zfs", "clone", pool + "/bases/img@initial", ds)
        for i in range(min(rounds, 10)):
            t["snapshot"].append(run("zfs", "snapshot", "%s@%d" % (ds, i)))
            t["rollback"].append(run("zfs", "rollback", "-r", "%s@%d" % (ds, i)))
            t["clone"].append(run("zfs", "clone", "%s@%d" % (ds, i), "%s/f%d" % (pool, i)))
        for k, v in t.items():
            show("beside: zfs " + k, v)


def crowd():
    """Many sessions with 20 snapshots each: does anything grow?"""
    h = Host("many", "--durability", "none", "--container-runtime", "none")

    def rss():
        for line in open("/proc/%d/status" % h.process.pid):
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024

    before, first, last = rss(), [], []
    for i in range(many):
        s = "m%d" % i
        ms = h.timed("CreateSession", SessionID=s, BaseSnapshot="small")[0]
        (first if i < 50 else last if i >= many - 50 else []).append(ms)
        at = h.path(s)
        for k in range(20):
            with open(at + "/f", "w") as f:
                f.write("%d" % k)
            h.call("CreateSnapshot", SessionID=s, Name="s%d" % k)
    full = rss()
    show("create, first 50 of %d sessions x 20 snapshots" % many, first)
    show("create, last 50", last or first)
    h.sweep = False
    h.end()
    began = h.start()
    print(
        "  memory %.1f -> %.1f MiB (%.1f KiB a session); start with all of them %.2f s, "
        "then %.1f MiB"
        % (before, full, (full - before) * 1024 / many, began, rss())
    )
    for i in range(many):
        h.call("DestroySession", SessionID="m%d" % i)
    h.end()


def main():
    plain = place + "/bases/img"
    if pool:
        plain = subprocess.run(
            ["zfs", "get", "-H", "-o", "value", "mountpoint", pool + "/bases/img"],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout.strip()
    elif storage == "btrfs":
        os.makedirs(place + "/bases")
        argv = ["btrfs", "subvolume", "create", plain]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    make_base(plain, files)
    if pool:
        subprocess.run(["zfs", "destroy", pool + "/bases/img@initial"], check=True)
        subprocess.run(["zfs", "snapshot", pool + "/bases/img@initial"], check=True)
    else:
        make_base(place + "/bases/small", 10)
    depths = [int(x) for x in os.environ.get("BENCH_DEPTHS", "1,10,64").split(",")]
    for durability in ("none", "snapshot") if storage == "overlay" else ("snapshot",):
        h = Host("s" + durability, "--durability", durability, "--container-runtime", "bwrap")
        print("%s, durability %s, bwrap" % (storage, durability))
        create(h)
        for d in depths if not pool else depths[:2]:
            at_depth(h, d, durability == "snapshot" and storage == "overlay")
        live(h, 20)
        if not pool:
            live(h, 2000)
        unchanged(h)
        walks(h, plain)
        h.end()
    bare(plain)
    if storage == "overlay":
        crowd()


try:
    main()
finally:
    if Host.running:
        Host.running.end()
