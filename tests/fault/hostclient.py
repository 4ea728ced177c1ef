# SPDX-License-Identifier: MIT
"""sbhostd as hostcrash.py sees it: the program, its calls, and what its storage
and this machine hold."""
import http.client
import json
import os
import socket
import subprocess
import time


class Dead(Exception):
    """No answer: the daemon is gone."""


class Refused(Exception):
    def __init__(self, method, body):
        super().__init__("%s: %s" % (method, body))
        self.code = body.get("code")


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=600)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Client:
    def __init__(self, path):
        self.http = Connection(path)

    def call(self, method, **fields):
        try:
            self.http.request(
                "POST",
                "/rpc.v1.SandboxService/" + method,
                json.dumps(fields),
                {"Content-Type": "application/json"},
            )
            r = self.http.getresponse()
            body = json.loads(r.read())
        except (OSError, http.client.HTTPException, ValueError) as e:
            raise Dead(str(e)) from e
        if r.status != 200:
            raise Refused(method, body)
        return body


class Daemon:
    def __init__(self, build, directory, pool, options):
        self.sock = directory + "/sock"
        self.pool, self.process = pool, None
        self.argv = [
            build + "/sbhostd",
            "--listen",
            "unix:" + self.sock,
            "--state-dir",
            directory + "/state",
            "--container-runtime",
            "none",
        ] + options
        if pool:
            self.root = pool + "/crash"
            self.argv += [
                "--pool",
                pool,
                "--bases-dataset",
                pool + "/bases",
                "--sessions-dataset",
                self.root,
            ]
        else:
            self.root = directory + "/sessions"
            self.argv += [
                "--storage-backend",
                "local-disk",
                "--sessions-root-dir",
                self.root,
                "--bases-dir",
                directory + "/bases",
            ]
        self.log = open(directory + "/sbhostd.log", "a")

    def start(self):
        self.process = subprocess.Popen(
            self.argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log
        )
        end = time.time() + 300
        while time.time() < end:
            if self.process.poll() is not None:
                break
            try:
                Client(self.sock).call("GetCapabilities")
                return
            except Dead:
                time.sleep(0.02)
        raise SystemExit("sbhostd does not start: see %s" % self.log.name)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def end(self):
        process, self.process = self.process, None
        process.terminate()
        return process.wait(120) == 0

    def describe(self):
        """What the daemon and its children are waiting for, for a human."""
        pid = self.process.pid if self.process else 0
        print("# sbhostd %d:" % pid)
        for task in os.listdir("/proc/%d/task" % pid) if pid else []:
            with open("/proc/%d/task/%s/wchan" % (pid, task)) as w, open(
                "/proc/%d/task/%s/syscall" % (pid, task)
            ) as c:
                print("#   thread %s %s %s" % (task, w.read(), c.read().strip()))
        with open(self.log.name, errors="replace") as f:
            for line in f.readlines()[-20:]:
                print("#   log: " + line.rstrip())
        subprocess.run(
            "ps -eo pid,ppid,etimes,stat,wchan:24,args |"
            " grep -E ' [z](fs|pool)|/[z](fs|pool)|[s]bhostd'",
            shell=True,
            timeout=10,
            check=False,
        )

    def workspaces(self):
        """Ids with a workspace, and names of what is there without a session."""
        if not self.pool:
            names = os.listdir(self.root)
            return {n for n in names if n[0] != "."}, {n for n in names if n[0] == "."}
        out = subprocess.run(
            ["zfs", "list", "-H", "-r", "-t", "filesystem", "-o", "name,sbhost:dead", self.root],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=300,
        ).stdout
        living, dead = set(), set()
        for line in out.splitlines()[1:]:
            name, mark = line.split("\t")
            name = name[len(self.root) + 1 :]
            if mark == "1" or (name[0] == "_" and not name[1].isdigit()):
                dead.add(name)
            else:
                living.add(name.split("-", 1)[1] if name[0] == "_" else name)
        return living, dead


def processes_with(variable, value):
    """Pids of what has that in its environment, but for the helpers that wait for it."""
    want, found = ("%s=%s" % (variable, value)).encode(), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as f:
                if want in f.read().split(b"\0") and not os.readlink("/proc/%s/exe" % pid).endswith(
                    "/sb-box"
                ):
                    found.append(int(pid))
        except OSError:
            pass
    return found


def describe(pid):
    """A process and those above it, for a human."""
    text = []
    while pid > 1:
        try:
            with open("/proc/%d/stat" % pid) as f:
                state, parent = f.read().rsplit(")", 1)[1].split()[:2]
            with open("/proc/%d/cmdline" % pid, "rb") as f:
                args = f.read().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            break
        text.append("%d %s %s" % (pid, state, args[:200]))
        pid = int(parent)
    return " <- ".join(text)
