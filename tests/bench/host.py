#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a sandbox host costs: host.py BUILDDIR SOCKET STORAGE PID [POOL]. Called by
tests/bench/host.sh with sbhostd running.

get-session at 100 open connections; sessions by the thousand with the daemon's memory; on ZFS,
snapshot, rollback and fork by RPC against the bare commands on the same pool, in turn."""
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import time

build, path, storage, pid = sys.argv[1:5]
pool = sys.argv[5] if len(sys.argv) > 5 else None
many = int(os.environ.get("BENCH_SESSIONS", "1000"))
rounds = int(os.environ.get("BENCH_ROUNDS", "12"))
base = "img@initial" if storage == "zfs" else "img"


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)


host = Connection("localhost")


def call(method, **fields):
    host.request(
        "POST",
        "/rpc.v1.SandboxService/" + method,
        json.dumps(fields),
        {"Content-Type": "application/json"},
    )
    r = host.getresponse()
    body = json.loads(r.read())
    if r.status != 200:
        raise SystemExit("%s: %s" % (method, body))
    return body


def resident():
    for line in open("/proc/%s/status" % pid):
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def timed(fn, *args, **kw):
    t = time.perf_counter()
    fn(*args, **kw)
    return time.perf_counter() - t


def run(*argv):
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)


def destroy(*argv):
    """Not measured. A dataset that was just mounted may be busy for a moment."""
    for _ in range(100):
        if subprocess.run(("zfs", "destroy") + argv, stderr=subprocess.DEVNULL).returncode == 0:
            return
        time.sleep(0.1)
    raise SystemExit("zfs destroy %s: stays busy" % " ".join(argv))


def get_session():
    call("CreateSession", SessionID="bench", BaseSnapshot=base, Labels={"team": "bench"})
    for clients, rate in ((1, 0), (100, 500), (100, 2000), (100, 0)):
        out = subprocess.run(
            [
                build + "/tests/bench/bench-rpc",
                path,
                "GetSession",
                '{"SessionID":"bench"}',
                str(clients),
                str(rate),
                "3",
            ],
            check=True,
            stdout=subprocess.PIPE,
        ).stdout
        r = json.loads(out)
        print(
            "get-session, %3d clients, %s: p50 %.3f ms, p90 %.3f ms, p99 %.3f ms, %d a second"
            % (
                clients,
                "%5d a second" % rate if rate else "all they can",
                r["p50_ms"],
                r["p90_ms"],
                r["p99_ms"],
                r["per_second"],
            )
        )
    call("DestroySession", SessionID="bench")


def sessions():
    empty = {"Empty": True} if storage == "local-disk" else {"BaseSnapshot": base}
    for round_no in (1, 2, 3):
        before = resident()
        t = timed(
            lambda: [call("CreateSession", SessionID="s%05d" % i, **empty) for i in range(many)]
        )
        full = resident()
        listed, after, t_list = 0, "", 0
        while True:
            start = time.perf_counter()
            page = call("ListSessions", After=after, Limit=1000)
            t_list += time.perf_counter() - start
            listed += len(page["Sessions"])
            after = page["NextAfter"]
            if not after:
                break
        assert listed == many, listed
        t_gone = timed(lambda: [call("DestroySession", SessionID="s%05d" % i) for i in range(many)])
        print(
            "%d sessions, round %d: created in %.2f s, listed in %.3f s, destroyed in %.2f s; "
            "%d bytes each while idle; daemon %.1f -> %.1f -> %.1f MiB"
            % (
                many,
                round_no,
                t,
                t_list,
                t_gone,
                (full - before) / many,
                before / 2**20,
                full / 2**20,
                resident() / 2**20,
            )
        )


def ratios():
    ours, bare = pool + "/sessions/ours", pool + "/bare"
    call("CreateSession", SessionID="ours", BaseSnapshot=base)
    run("zfs", "clone", pool + "/bases/img@initial", bare)
    times = {(k, w): [] for k in ("snapshot", "rollback", "fork") for w in ("rpc", "bare")}
    for i in range(rounds):
        n = "n%04d" % i

        def pair(kind, rpc, cmd):
            """Each goes first in every other round: what is second finds the
            pool's last write just done."""
            for who, fn in (("rpc", rpc), ("bare", cmd))[:: 1 if i % 2 else -1]:
                times[kind, who].append(timed(fn))

        pair(
            "snapshot",
            lambda: call("CreateSnapshot", SessionID="ours", Name=n),
            lambda: run("zfs", "snapshot", bare + "@" + n),
        )
        pair(
            "fork",
            lambda: call("Fork", SessionID="ours", SnapshotID=n, NewSessionID="f" + n),
            lambda: run("zfs", "clone", bare + "@" + n, pool + "/f" + n),
        )
        call("DestroySession", SessionID="f" + n)
        destroy(pool + "/f" + n)
        pair(
            "rollback",
            lambda: call("RollbackSession", SessionID="ours", SnapshotID=n),
            lambda: run("zfs", "rollback", "-r", bare + "@" + n),
        )
    call("DestroySession", SessionID="ours")
    destroy("-r", bare)
    for kind in ("snapshot", "rollback", "fork"):
        rpc, cmd = (statistics.median(times[kind, w]) * 1000 for w in ("rpc", "bare"))
        print(
            "%s: by RPC %.1f ms, bare command %.1f ms, ratio %.2f (at most 1.30 wanted)"
            % (kind, rpc, cmd, rpc / cmd)
        )


get_session()
if storage == "local-disk":
    sessions()
else:
    ratios()
