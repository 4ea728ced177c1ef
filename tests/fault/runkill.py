#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kill -9 during `sbctl run`, at random moments: of sbctl, of the command, of the sync agent over
there, of what carries the connections (sshd's side of them, the podman commands, a proxy's
connections), and of a whole container.

usage: runkill.py SBCTL SERVER-DIR SCRATCH ROUNDS SEED
       runkill.py SBCTL podman:IMAGE SCRATCH ROUNDS SEED
       runkill.py SBCTL e2b:URL,PROXY-PID,SESSIONS-DIR SCRATCH ROUNDS SEED

The first is for backend ssh, the second for containers, which see SCRATCH/acks as /acks, the third
for a host with the E2B API behind tests/provider/e2bproxy.py, whose runtime is none.

The command writes files one after the other and notes each in a list outside the workspace once it
is written. Afterwards `sbctl recover` must succeed, everything on the list must be here, as must
what the user wrote meanwhile, and nothing may be left over there. Prints one line a failure; exit
status 1 when there was any."""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

SBCTL, SCRATCH = (os.path.abspath(p) for p in (sys.argv[1], sys.argv[3]))
ROUNDS, SEED = int(sys.argv[4]), int(sys.argv[5])
FILES = 30
AGENT = r"""
echo $$ >"$ACKS/pid"
i=0
while [ $i -lt $FILES ]; do
	i=$((i + 1))
	echo "round $ROUND file $i" >"f$i.tmp" && mv "f$i.tmp" "f$i" && echo "f$i" >>"$ACKS/list"
	[ $((i % 5)) -ne 0 ] || { rm -f "old$i" && echo "-old$i" >>"$ACKS/list"; }
	sleep 0.01
done
"""


def options(keys):
    return [word for k, v in keys.items() for word in ("--set", "%s=%s" % (k, v))]


def read(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except OSError:
        return ""


def children(pid):
    found = []
    for tid in os.listdir("/proc/%d/task" % pid) if os.path.isdir("/proc/%d/task" % pid) else []:
        for child in read("/proc/%d/task/%s/children" % (pid, tid)).split():
            found += [int(child)] + children(int(child))
    return found


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
        return True
    except (ProcessLookupError, PermissionError):
        return False


def inside(marker):
    """Processes that see this file at their root: those of our containers."""
    for name in os.listdir("/proc"):
        if name.isdigit() and os.path.exists("/proc/%s/root%s" % (name, marker)):
            yield int(name)


class Ssh:
    targets = ("sbctl", "command", "sshd", "both", "agent")
    backend = "ssh"
    carrier = "sshd"

    def __init__(self, server):
        self.server = server

    def options(self):
        return {
            "host": "127.0.0.1",
            "user": read(self.server + "/user").strip(),
            "port": read(self.server + "/port").strip(),
            "identity": self.server + "/id_ed25519",
            "config": "/dev/null",
            "known_hosts": self.server + "/known_hosts",
        }

    @staticmethod
    def acks(number):
        """Where the list of a round is: here, and over there."""
        path = os.path.join(SCRATCH, "round%d" % number, "acks")
        return path, path

    def cut(self, _):
        for pid in children(int(read(self.server + "/pid"))):
            if (
                os.path.basename(read("/proc/%d/cmdline" % pid).split("\0")[0].split(":")[0])
                == "sshd"
            ):
                kill(pid)

    def agents(self):
        for pid in children(int(read(self.server + "/pid"))):
            if read("/proc/%d/comm" % pid).startswith("agent-"):
                yield pid

    @staticmethod
    def command(acks):
        pid = read(acks + "/pid").strip()
        return [int(pid)] if pid else []

    @staticmethod
    def left(states):
        for s in states:
            if os.path.exists(s.get("runtime_root_dir", "/nowhere/")):
                yield s["runtime_root_dir"]


class Podman:
    targets = ("sbctl", "command", "podman", "both", "agent", "container")
    backend = "docker"
    carrier = "podman"

    def __init__(self, image):
        self.image = image

    def options(self):
        return {"kind": "container", "engine": "podman", "image": self.image}

    @staticmethod
    def acks(number):
        return os.path.join(SCRATCH, "acks", str(number)), "/acks/%d" % number

    @staticmethod
    def cut(sbctl):
        for pid in children(sbctl):
            if read("/proc/%d/comm" % pid).strip() == "podman":
                kill(pid)

    @staticmethod
    def agents():
        for pid in inside("/acks/here"):
            if read("/proc/%d/comm" % pid).startswith("agent-"):
                yield pid

    @staticmethod
    def command(acks):
        for pid in inside("/acks/here"):
            if acks in read("/proc/%d/environ" % pid):
                yield pid

    @staticmethod
    def containers():
        return podman("ps", "--all", "--format", "{{.Names}}").split()

    def left(self, _):
        yield from self.containers()
        yield from podman("volume", "ls", "--format", "{{.Name}}").split()


class E2b:
    targets = ("sbctl", "command", "wire", "both", "agent")
    backend = "e2b"
    carrier = "wire"

    def __init__(self, words):
        self.url, proxy, self.sessions = words.split(",")
        self.proxy = int(proxy)

    def options(self):
        return {"api_url": self.url, "sandbox_url": self.url}

    @staticmethod
    def acks(number):
        path = os.path.join(SCRATCH, "round%d" % number, "acks")
        return path, path

    def cut(self, _):
        os.kill(self.proxy, signal.SIGUSR1)

    def agents(self):
        for name in os.listdir("/proc"):
            if name.isdigit() and read("/proc/%s/comm" % name).startswith("agent-"):
                if self.sessions in read("/proc/%s/environ" % name):
                    yield int(name)

    command = staticmethod(Ssh.command)

    def left(self, _):
        ask = urllib.request.Request(
            self.url + "/v2/sandboxes", headers={"X-API-Key": os.environ["E2B_API_KEY"]}
        )
        with urllib.request.urlopen(ask, timeout=60) as answer:
            for s in json.load(answer):
                yield "sandbox " + s["sandboxID"]


def podman(*words):
    return subprocess.run(
        ("podman",) + words, capture_output=True, text=True, timeout=120, check=False
    ).stdout


class Round:
    def __init__(self, number, rng, span):
        self.number, self.rng, self.span = number, rng, span
        self.target = PLACE.targets[number % len(PLACE.targets)]
        self.dir = os.path.join(SCRATCH, "round%d" % number)
        self.ws = os.path.join(self.dir, "ws")
        self.acks, self.acks_there = PLACE.acks(number)
        for d in (self.ws, self.acks):
            os.makedirs(d)
        for i in range(1, FILES + 1):
            with open(os.path.join(self.ws, "old%d" % i), "w", encoding="utf-8") as f:
                f.write("old %d\n" % i)
        self.env = dict(os.environ, SBSYNC_STATE_DIR=os.path.join(self.dir, "state"))
        self.failures = []

    def run(self):
        start = time.monotonic()
        with open(self.dir + "/out", "w", encoding="utf-8") as out:
            p = subprocess.Popen(
                [
                    SBCTL,
                    "run",
                    "--backend",
                    PLACE.backend,
                    *options(PLACE.options()),
                    "-e",
                    "ACKS=" + self.acks_there,
                    "-e",
                    "FILES=%d" % FILES,
                    "-e",
                    "ROUND=%d" % self.number,
                    "--",
                    "sh",
                    "-c",
                    AGENT,
                ],
                cwd=self.ws,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        with open(os.path.join(self.ws, "user"), "w", encoding="utf-8") as f:
            f.write("mine\n")
        if self.span:
            self.strike(p)
        try:
            status = p.wait(90)
        except subprocess.TimeoutExpired:
            self.failures.append("sbctl did not end")
            p.kill()
            status = p.wait()
        took = time.monotonic() - start
        self.recover()
        self.verify(status)
        return took

    def strike(self, p):
        time.sleep(self.rng.uniform(0, self.span))
        if self.target == "container":
            for name in PLACE.containers():
                podman("kill", name)
        if self.target in (PLACE.carrier, "both"):
            PLACE.cut(p.pid)
        if self.target in ("sbctl", "both"):
            p.kill()
        if self.target == "agent":
            for pid in PLACE.agents():
                kill(pid)
        if self.target == "command":
            for pid in PLACE.command(self.acks_there):
                kill(pid)

    def recover(self):
        for _ in range(5):
            r = subprocess.run(
                [SBCTL, "recover", "-v"],
                env=self.env,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            if r.returncode == 0 and "busy" not in r.stdout:
                return
            time.sleep(0.3)
        self.failures.append("recover: %s" % (r.stdout + r.stderr).strip())

    def verify(self, status):
        acked = read(self.acks + "/list").split()
        for name in acked:
            if name[0] == "-":
                if os.path.exists(os.path.join(self.ws, name[1:])):
                    self.failures.append("%s was deleted over there and is still here" % name[1:])
            elif read(os.path.join(self.ws, name)) != "round %d file %s\n" % (
                self.number,
                name[1:],
            ):
                self.failures.append("%s was written over there and is lost" % name)
        if read(os.path.join(self.ws, "user")) != "mine\n":
            self.failures.append("the user's file is lost")
        for i in range(1, FILES + 1):
            if (
                "-old%d" % i not in acked
                and i % 5
                and not os.path.exists(os.path.join(self.ws, "old%d" % i))
            ):
                self.failures.append("old%d is gone" % i)
        states = json.loads(
            subprocess.run(
                [SBCTL, "ls", "--all", "--json"],
                env=self.env,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            ).stdout
            or "[]"
        )
        for s in states:
            if s["state"] != "destroyed":
                self.failures.append("sandbox %s is %s" % (s["sandbox_id"], s["state"]))
        for name in PLACE.left(states):
            self.failures.append("%s is left over" % name)
        if not self.span and (status != 0 or len(acked) != FILES + FILES // 5):
            self.failures.append(
                "an undisturbed run: status %d, %d acknowledged" % (status, len(acked))
            )


def main():
    rng = random.Random(SEED)
    bad, span, reached = 0, 0.0, {}
    for n in range(-1, ROUNDS + 1):
        r = Round(n, rng, span)
        took = r.run()
        # Two are not disturbed: the first sends the agent over, the second
        # tells how long a run takes.
        if n == 0:
            span = took
        key = "undisturbed" if n <= 0 else r.target
        reached[key] = reached.get(key, 0) + 1
        if r.failures:
            bad += 1
            print("round %d (%s, seed %d): %s" % (n, r.target, SEED, "; ".join(r.failures[:5])))
            print("  " + read(r.dir + "/out").strip().replace("\n", "\n  "))
        else:
            shutil.rmtree(r.dir)
    print("%d rounds, %d bad; %s; a run takes %.2f s" % (ROUNDS, bad, reached, span))
    return 1 if bad else 0


PLACE = (
    Podman(sys.argv[2][len("podman:") :])
    if sys.argv[2].startswith("podman:")
    else E2b(sys.argv[2][len("e2b:") :])
    if sys.argv[2].startswith("e2b:")
    else Ssh(os.path.abspath(sys.argv[2]))
)
sys.exit(main())
