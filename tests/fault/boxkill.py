#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kill -9 of sbhostd while tools and processes run in sandboxes, again and again.

boxkill.py SBHOSTD RUNTIME ROUNDS [SEED]: after each kill every tool and attached command must end
by itself, launched processes go on, the next host knows them again with their exit codes and ports,
and no container, helper or proxy is left that no session has. At the end, when all sessions are
destroyed, nothing of it is on the machine any more. Exit 0, or 1 with what was found.
"""
import glob
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

SESSIONS = 3
WAIT_S = 40


class Unix(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Refused(Exception):
    pass


class Rig:
    def __init__(self, sbhostd, runtime, seed):
        self.sbhostd, self.runtime = sbhostd, runtime
        self.rand = random.Random(seed)
        self.dir = tempfile.mkdtemp(prefix="sb-boxkill-")
        self.sock = self.dir + "/s"
        self.host = None
        self.n = 0
        self.found = []

    def start(self):
        self.log = open(self.dir + "/log", "ab")
        self.host = subprocess.Popen(
            [
                self.sbhostd,
                "--listen",
                "unix:" + self.sock,
                "--state-dir",
                self.dir + "/state",
                "--storage-backend",
                "local-disk",
                "--sessions-root-dir",
                self.dir + "/sessions",
                "--container-runtime",
                self.runtime,
            ],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
        )
        self.until("the host answers", lambda: self.call("HealthCheck", {}))

    def call(self, method, msg, timeout=60):
        c = Unix(self.sock, timeout)
        try:
            c.request(
                "POST",
                "/rpc.v1.SandboxService/" + method,
                json.dumps(msg),
                {"Content-Type": "application/json"},
            )
            r = c.getresponse()
            body = json.loads(r.read() or b"{}")
            if r.status != 200:
                raise Refused("%s: %s" % (method, body.get("message")))
            return body or True
        finally:
            c.close()

    def until(self, what, test, seconds=WAIT_S):
        end, why = time.monotonic() + seconds, ""
        while time.monotonic() < end:
            try:
                got = test()
                if got:
                    return got
            except (OSError, http.client.HTTPException, Refused, ValueError) as e:
                why = " (%s)" % e
            time.sleep(0.05)
        self.fault("not within %d s: %s%s" % (seconds, what, why))
        return None

    def fault(self, text):
        self.found.append(text)
        print("# " + text, flush=True)

    def file(self, session, name):
        return "%s/sessions/%s/%s" % (self.dir, session, name)

    def processes(self, *words):
        """Command lines on this machine that have the directory and one of the words in them."""
        found = []
        for d in glob.glob("/proc/[0-9]*"):
            try:
                with open(d + "/cmdline", "rb") as f:
                    line = f.read().replace(b"\0", b" ").decode(errors="replace")
                with open(d + "/environ", "rb") as f:
                    env = f.read().decode(errors="replace")
            except OSError:
                continue
            if (self.dir in line or self.dir in env) and (
                not words or any(w in line for w in words)
            ):
                found.append("%s %s" % (os.path.basename(d), line[:200]))
        return found


TOOL = (
    "(setsid sh -c 'while :; do echo t >>%s; sleep 0.05; done' >/dev/null 2>&1 </dev/null &) ; "
    "while :; do echo t >>%s; sleep 0.05; done"
)


def load(rig, stop, session, i):
    """Calls that never end, until the host does."""
    while not stop.is_set():
        rig.n += 1
        name = "tool-%d-%d" % (i, rig.n)
        try:
            if rig.rand.random() < 0.3:
                rig.call(
                    "ExecuteTool",
                    {
                        "SessionID": session,
                        "ToolCallID": name,
                        "ToolName": "bash",
                        "Params": {
                            "cmd": "echo short >%s-short; sleep 0.0%d"
                            % (name, rig.rand.randrange(10))
                        },
                    },
                )
            else:
                rig.call(
                    "ExecuteTool",
                    {
                        "SessionID": session,
                        "ToolCallID": name,
                        "ToolName": "bash",
                        "Params": {"cmd": TOOL % (name, name)},
                    },
                )
        except (OSError, http.client.HTTPException, Refused, ValueError):
            time.sleep(0.02)


def sizes(rig, pattern):
    return {p: os.stat(p).st_size for p in glob.glob(rig.dir + "/sessions/*/" + pattern)}


def quiet(rig):
    a = sizes(rig, "tool-*")
    time.sleep(0.4)
    return sizes(rig, "tool-*") == a


def launch(rig, session, cmd, port=0):
    return rig.call(
        "LaunchProcess",
        {"SessionID": session, "Binary": "/bin/sh", "Args": ["-c", cmd], "ExposePort": port},
    )["ProcessID"]


def status(rig, session, process):
    return rig.call("GetProcessStatus", {"SessionID": session, "ProcessID": process})


def prepare(rig):
    """Sessions with a process that ticks and one that serves."""
    rig.known = {}
    for i in range(SESSIONS):
        s = "s%d" % i
        rig.call("CreateSession", {"SessionID": s, "Empty": True})
        tick = launch(rig, s, "while :; do echo x >>ticks; sleep 0.1; done")
        web = launch(
            rig, s, "exec python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1", 8000
        )
        rig.known[s] = (tick, web)


def answers(rig, session, process):
    for p in rig.call("ListProcesses", {"SessionID": session})["Processes"]:
        if p["ProcessID"] == process and p["Status"] == "running" and p["Address"]:
            host, port = p["Address"].rsplit(":", 1)
            c = http.client.HTTPConnection(host, int(port), timeout=10)
            try:
                c.request("GET", "/")
                return c.getresponse().status == 200
            finally:
                c.close()
    return False


def one_round(rig, k):
    stop, threads = threading.Event(), []
    for i in range(SESSIONS * 2):
        t = threading.Thread(target=load, args=(rig, stop, "s%d" % (i % SESSIONS), i), daemon=True)
        t.start()
        threads.append(t)
    # One that ends while no host is there, and one that is being launched
    # at the moment of the kill.
    s = "s%d" % rig.rand.randrange(SESSIONS)
    code = rig.rand.randrange(1, 120)
    late = launch(rig, s, "while [ ! -e go-%d ]; do sleep 0.05; done; exit %d" % (k, code))
    extra = threading.Thread(
        target=lambda: swallow(lambda: launch(rig, s, "exec sleep 900")), daemon=True
    )
    time.sleep(rig.rand.random() * 1.2)
    extra.start()
    time.sleep(rig.rand.random() * 0.1)
    rig.host.send_signal(signal.SIGKILL)
    rig.host.wait()
    stop.set()
    for t in threads + [extra]:
        t.join()
    rig.until("round %d: tools end with their host" % k, lambda: quiet(rig), 15)
    rig.until(
        "round %d: nothing stands for a tool any more" % k,
        lambda: not rig.processes("sb-box await"),
        15,
    )
    before = sizes(rig, "ticks")
    rig.until(
        "round %d: processes go on without a host" % k,
        lambda: len(before) == SESSIONS
        and all(n > before[p] for p, n in sizes(rig, "ticks").items()),
        15,
    )
    open(rig.file(s, "go-%d" % k), "w").close()
    rig.start()
    got = rig.until(
        "round %d: the process that was told to end has" % k,
        lambda: (lambda q: q if q["Status"] == "exited" else None)(status(rig, s, late)),
    )
    if got and got.get("ExitCode") != code:
        rig.fault("round %d: exit code %s, not %d" % (k, got.get("ExitCode"), code))
    for session, (tick, web) in rig.known.items():
        if status(rig, session, tick)["Status"] != "running":
            rig.fault("round %d: the process of %s is not known any more" % (k, session))
        rig.until(
            "round %d: the port of %s answers" % (k, session), lambda: answers(rig, session, web)
        )
        # What was launched at the moment of the kill either is known, and can be ended, or is gone.
        for p in rig.call("ListProcesses", {"SessionID": session})["Processes"]:
            if p["ProcessID"] not in (tick, web) and p["Status"] != "exited":
                rig.call(
                    "KillProcess", {"SessionID": session, "ProcessID": p["ProcessID"], "Signal": 9}
                )
    there = boxes(rig)
    if len(there) > SESSIONS:
        rig.fault("round %d: %d containers for %d sessions: %s" % (k, len(there), SESSIONS, there))
    for f in glob.glob(rig.dir + "/sessions/*/tool-*"):
        os.unlink(f)


def swallow(fn):
    try:
        fn()
    except (OSError, http.client.HTTPException, Refused, ValueError):
        pass


def groups(rig):
    """Names of the control groups that the sandboxes are in."""
    names = set()
    for p in boxes(rig):
        try:
            with open("/proc/%s/cgroup" % p.split()[0]) as f:
                names |= {
                    w
                    for line in f
                    for w in line.strip().split("/")
                    if w.startswith("sb-" + rig.runtime)
                }
        except OSError:
            pass
    return names


def boxes(rig):
    return (
        rig.processes("runsc-sandbox")
        if rig.runtime == "gvisor"
        else rig.processes("bwrap --unshare-user")
    )


def finish(rig):
    names = groups(rig)
    for i in range(SESSIONS):
        rig.call("DestroySession", {"SessionID": "s%d" % i, "Force": True})
    rig.host.terminate()
    rig.host.wait()
    rig.until("nothing of it is on the machine any more", lambda: not rig.processes(), 20)
    for p in rig.processes():
        rig.fault("left: " + p)
    for p in glob.glob("/sys/fs/cgroup/**/sb-%s-*" % rig.runtime, recursive=True):
        if os.path.basename(p) in names:
            rig.fault("left: " + p)
    left = (
        glob.glob(rig.dir + "/state/runsc/*")
        + glob.glob(rig.dir + "/state/box-%s/*" % rig.runtime)
        + glob.glob(rig.dir + "/sessions/*")
    )
    for p in left:
        rig.fault("left: " + p)
    if not rig.found:
        shutil.rmtree(rig.dir)


def main():
    rig = Rig(sys.argv[1], sys.argv[2], int(sys.argv[4]) if len(sys.argv) > 4 else os.getpid())
    rounds, began = int(sys.argv[3]), time.monotonic()
    rig.start()
    prepare(rig)
    for k in range(rounds):
        one_round(rig, k)
        if len(rig.found) > 5:
            break
    finish(rig)
    print(
        "# %s: killed %d times in %.0f s, %d faults; %s"
        % (
            rig.runtime,
            rounds,
            time.monotonic() - began,
            len(rig.found),
            rig.dir if rig.found else "nothing left",
        )
    )
    return 1 if rig.found else 0


if __name__ == "__main__":
    sys.exit(main())
