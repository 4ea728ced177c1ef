# SPDX-License-Identifier: MIT
"""Where a benchmark happens: a fresh file system, an sshd of our own, links of several
lengths, and the meters."""
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time

# name: round trip in ms, Mbit/s each way (0: no limit). None: no link at all, both
# ends in one process tree.
LINKS = {"local": None, "direct": (0, 0), "50ms": (50, 100), "200ms": (200, 20)}
LINK_TEXT = {
    "local": "local pair, no ssh",
    "direct": "ssh on loopback",
    "50ms": "ssh, 50 ms RTT, 100 Mbit/s",
    "200ms": "ssh, 200 ms RTT, 20 Mbit/s",
}


class Failure(Exception):
    """Something the benchmark cannot do; the text says what and what to do about it."""


class Relay:
    """tests/bench/slowlink in front of the sshd. Counts bytes; ends with us."""

    def __init__(self, program, to_port, rtt_ms, mbit):
        self.process = subprocess.Popen(
            [program, str(to_port), str(rtt_ms), str(mbit)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.port = int(self.process.stdout.readline() or 0)
        if not self.port:
            raise Failure("%s did not start" % program)

    def stats(self):
        self.process.stdin.write("stats\n")
        return json.loads(self.process.stdout.readline())

    def reset(self):
        # One answer awaited, so that the counters are zero when this returns.
        self.process.stdin.write("reset\n")
        while self.stats()["connections"]:
            self.process.stdin.write("reset\n")

    def forget(self):
        """Counts from now on, with connections that stay open."""
        self.process.stdin.write("reset\n")
        self.stats()

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)


class Place:
    def __init__(self, work, helpers, image_gib, note):
        self.note, self.helpers, self.work = note, helpers, os.path.realpath(work)
        if any(c.isspace() for c in self.work):
            raise Failure(
                "%s: the work directory must have no blanks in its name (use --work)" % self.work
            )
        os.makedirs(self.work, exist_ok=True)
        self.user = pwd.getpwuid(os.getuid()).pw_name
        self.relays, self.sshd, self.mounted, self.image = {}, None, None, None
        self.root = os.path.join(self.work, "fs")
        self.filesystem = self.mount(image_gib)

    # The file system.

    def mount(self, gib):
        os.makedirs(self.root, exist_ok=True)
        if not gib:
            return "directory of the work place (no image was asked for)"
        if os.geteuid() != 0:
            self.note(
                "not root: no fresh file system, measuring in %s (writes may be slow and vary)"
                % self.root
            )
            return "directory of the work place (not root)"
        free = shutil.disk_usage(self.work).free >> 30
        if free < gib + 1:
            self.note(
                "only %d GiB free: the image has %d GiB instead of %d"
                % (free, max(1, free - 1), gib)
            )
            gib = max(1, free - 1)
        self.image = os.path.join(self.work, "fs.img")
        try:
            with open(self.image, "wb") as f:
                f.truncate(gib << 30)
            run(["mkfs.ext4", "-q", "-F", "-i", "4096", "-E", "lazy_itable_init=1", self.image])
            run(["mount", "-o", "loop,noatime", self.image, self.root])
        except Failure as e:
            self.note("no loop mount (%s): measuring in %s" % (e, self.root))
            os.unlink(self.image)
            self.image = None
            return "directory of the work place (no loop mount)"
        self.mounted = self.root
        return "fresh ext4 of %d GiB, loop-mounted, noatime" % gib

    # The sshd.

    def start_sshd(self):
        program = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
        if not program:
            raise Failure("no sshd found: install openssh-server")
        d = self.ssh_dir = os.path.join(self.work, "ssh")
        shutil.rmtree(d, ignore_errors=True)
        self.remote_home = os.path.join(self.work, "remote-home")
        self.remote_state = os.path.join(self.work, "remote-state")
        for x in (d, self.remote_home, self.remote_state):
            os.makedirs(x, mode=0o700, exist_ok=True)
        for key in ("host", "user"):
            run(
                [
                    "ssh-keygen",
                    "-q",
                    "-t",
                    "ed25519",
                    "-N",
                    "",
                    "-C",
                    "bench",
                    "-f",
                    os.path.join(d, key),
                ]
            )
        shutil.copy(os.path.join(d, "user.pub"), os.path.join(d, "authorized_keys"))
        self.remote_log = os.path.join(self.work, "remote.jsonl")
        self.port = free_port()
        with open(os.path.join(d, "sshd_config"), "w") as f:
            f.write(
                "Port %d\nListenAddress 127.0.0.1\nHostKey %s/host\n"
                "AuthorizedKeysFile %s/authorized_keys\n"
                "PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
                "KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n"
                "MaxStartups 100\nMaxSessions 100\nUseDNS no\nPrintMotd no\n"
                "SetEnv HOME=%s SBSYNC_STATE_DIR=%s\nForceCommand %s --ssh %s\n"
                % (
                    self.port,
                    d,
                    d,
                    self.remote_home,
                    self.remote_state,
                    self.helpers["meter"],
                    self.remote_log,
                )
            )
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", exist_ok=True)
        self.sshd_log = open(os.path.join(d, "sshd.log"), "wb")
        self.sshd = subprocess.Popen(
            [program, "-D", "-e", "-f", os.path.join(d, "sshd_config")],
            stdin=subprocess.DEVNULL,
            stderr=self.sshd_log,
            start_new_session=True,
        )
        wait_for_port(self.port, self.sshd, os.path.join(d, "sshd.log"))
        self.known_hosts = os.path.join(d, "known_hosts")
        open(self.known_hosts, "w").close()
        self.trust(self.port)

    def trust(self, port):
        with open(os.path.join(self.ssh_dir, "host.pub")) as f:
            key = " ".join(f.read().split()[:2])
        with open(self.known_hosts, "a") as f:
            f.write("[127.0.0.1]:%d %s\n" % (port, key))

    def relay(self, link):
        if link not in self.relays:
            rtt, mbit = LINKS[link]
            self.relays[link] = Relay(self.helpers["slowlink"], self.port, rtt, mbit)
            self.trust(self.relays[link].port)
        return self.relays[link]

    def ssh_options(self, port):
        return [
            "-F",
            "none",
            "-p",
            str(port),
            "-i",
            os.path.join(self.ssh_dir, "user"),
            "-o",
            "IdentitiesOnly=yes",
            "-o",
            "UserKnownHostsFile=" + self.known_hosts,
            "-o",
            "GlobalKnownHostsFile=/dev/null",
            "-o",
            "BatchMode=yes",
            "-o",
            "ControlPath=none",
            "-o",
            "LogLevel=ERROR",
        ]

    def ssh(self, port):
        return ["ssh", *self.ssh_options(port)]

    def host(self):
        return "%s@127.0.0.1" % self.user

    # The meters.

    def remote_cpu(self):
        """Seconds that ended connections have cost, the sshd's own work among them.
        Waits until none is open."""
        pid, until = self.sshd.pid, time.monotonic() + 5
        while time.monotonic() < until:
            try:
                with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
                    if not f.read().strip():
                        break
            except OSError:
                time.sleep(0.2)
                break
            time.sleep(0.005)
        with open("/proc/%d/stat" % pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")

    def measure(self, argv, link, counted, env=None, timeout=900):
        """Runs a command that goes over `link`. `counted`: through the relay even
        where the link needs none."""
        local_log = os.path.join(self.work, "local.jsonl")
        for path in (local_log, self.remote_log if self.sshd else None):
            if path and os.path.exists(path):
                os.unlink(path)
        relay = self.relay(link) if LINKS[link] and (counted or any(LINKS[link])) else None
        if relay:
            relay.reset()
        before = self.remote_cpu() if LINKS[link] else 0
        # What others left to write would be written while we measure.
        run(["sync", "-f", self.root])
        code, out, err = self.spawn([self.helpers["meter"], local_log, *argv], env, timeout)
        got = {"code": code, "stdout": out, "stderr": err}
        if code is None:
            got["error"] = "took longer than %d s" % timeout
            return got
        if code != 0:
            got["error"] = "exit status %d: %s" % (code, last_line(err))
        here = read_lines(local_log)
        got.update(
            wall=here[0]["wall"],
            cpu_local=here[0]["user"] + here[0]["sys"],
            rss_local_kib=here[0]["max_rss_kib"],
        )
        if LINKS[link]:
            there = read_lines(self.remote_log)
            got["cpu_remote"] = self.remote_cpu() - before
            got["rss_remote_kib"] = max([x["max_rss_kib"] for x in there], default=0)
        if relay:
            got.update(relay.stats())
        return got

    def spawn(self, argv, env, timeout):
        names = [os.path.join(self.work, n) for n in ("stdout", "stderr")]
        with open(names[0], "w+b") as out, open(names[1], "w+b") as err:
            p = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
                env=dict(os.environ, **(env or {})),
            )
            try:
                code = p.wait(timeout)
            except BaseException as e:
                os.killpg(p.pid, signal.SIGKILL)
                p.wait()
                if not isinstance(e, subprocess.TimeoutExpired):
                    raise
                code = None
            for f in (out, err):
                f.seek(0)
            return (
                code,
                out.read(1 << 20).decode(errors="replace"),
                err.read(1 << 20).decode(errors="replace"),
            )

    def close(self, keep):
        for r in self.relays.values():
            r.close()
        if self.sshd:
            self.sshd.terminate()
            self.sshd.wait(10)
        if keep:
            self.note("kept: %s" % self.work)
            return
        if self.mounted:
            run(["umount", self.mounted])
        if self.image:
            os.unlink(self.image)
        shutil.rmtree(self.work, ignore_errors=True)


def run(argv, **kw):
    try:
        p = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=600,
            **kw
        )
    except FileNotFoundError:
        raise Failure("%s: not found" % argv[0])
    except subprocess.TimeoutExpired:
        raise Failure("%s: took longer than 600 s" % argv[0])
    if p.returncode != 0:
        raise Failure(
            "%s: %s" % (" ".join(argv[:2]), last_line(p.stderr) or "exit status %d" % p.returncode)
        )
    return p.stdout


def last_line(s):
    lines = [x for x in s.strip().split("\n") if x.strip()]
    return lines[-1].strip()[:300] if lines else ""


def read_lines(path):
    try:
        with open(path) as f:
            return [json.loads(x) for x in f]
    except FileNotFoundError:
        return []


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for_port(port, process, log):
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if process.poll() is not None:
            with open(log) as f:
                raise Failure("sshd did not start: %s" % last_line(f.read()))
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise Failure("sshd does not answer on port %d" % port)
