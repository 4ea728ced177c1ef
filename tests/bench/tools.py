# SPDX-License-Identifier: MIT
"""Us and the rivals: how each makes DST equal to SRC, here or over a link."""
import json
import os
import shutil
import subprocess

from place import LINKS

# What proves that a destination is right; unison does not carry the times of directories and links.
VERIFY = ("-anic", "--delete")
VERIFY_NO_DIR_TIMES = VERIFY + ("--omit-dir-times", "--omit-link-times")


class Tool:
    """`plain` and `tuned` say which rsync variants count as what the targets compare with;
    `by_door` that what it remembers of a destination hangs on the port it was reached through."""

    program, cold_only, verify, plain, tuned, by_door = None, False, VERIFY, False, False, False
    may_differ = ()
    copied_first = (
        False  # `cp -a` makes its first destination where it is not the copying that is measured
    )

    def __init__(self, name, help):
        self.name, self.help = name, help

    def missing(self, place):
        return None if shutil.which(self.program) else "%s is not installed" % self.program

    def links(self):
        return set(LINKS)

    def env(self, place):
        return {}

    def forget(self, place):
        """Drops what it remembers of earlier runs, on both ends."""

    def extra(self, got):
        return {}

    def close(self):
        """Ends what stays between runs."""


class Rsync(Tool):
    program = "rsync"

    def __init__(self, name, help, *flags, plain=False):
        super().__init__(name, help)
        self.flags, self.plain, self.tuned = flags, plain, True

    def command(self, place, link, port, src, dst, pull):
        base = ["rsync", "-a", "--delete", *self.flags]
        if not LINKS[link]:
            return base + [src + "/", dst + "/"]
        far = lambda p: "%s:%s/" % (place.host(), p)
        ends = [far(src), dst + "/"] if pull else [src + "/", far(dst)]
        return base + ["-e", " ".join(place.ssh(port)), *ends]


class Tar(Tool):
    program, cold_only = "tar", True

    def __init__(self, name, help, pack="", unpack=""):
        super().__init__(name, help)
        self.pack, self.unpack = pack, unpack

    def links(self):
        return set(LINKS) - {"local"}

    def missing(self, place):
        if self.pack and not shutil.which("zstd"):
            return "zstd is not installed"
        return super().missing(place)

    def command(self, place, link, port, src, dst, pull):
        ssh = " ".join(place.ssh(port) + [place.host()])
        write, read = "tar -C %s -cf - . %s" % (src, self.pack), "%s tar -C %s -xpf -" % (
            self.unpack,
            dst,
        )
        if pull:
            script = "%s '%s' | %s" % (ssh, write, read)
        else:
            script = "%s | %s '%s'" % (write, ssh, read)
        return ["bash", "-o", "pipefail", "-c", script]


class Unison(Tool):
    program, verify = "unison", VERIFY_NO_DIR_TIMES
    copied_first = (
        True  # copying takes it minutes; its archives come from comparing both sides all the same
    )

    def links(self):
        return set(LINKS) - {"local"}

    def env(self, place):
        return {
            "UNISON": os.path.join(place.work, "unison"),
            "HOME": os.path.join(place.work, "unison"),
        }

    def forget(self, place):
        for d in (os.path.join(place.work, "unison"), os.path.join(place.remote_home, ".unison")):
            shutil.rmtree(d, ignore_errors=True)
            os.makedirs(d, mode=0o700, exist_ok=True)

    def command(self, place, link, port, src, dst, pull):
        os.makedirs(os.path.join(place.work, "unison"), mode=0o700, exist_ok=True)
        here, there = (dst, src) if pull else (src, dst)
        far = "ssh://%s:%d/%s" % (place.host(), port, there)
        return [
            "unison",
            here,
            far,
            "-sshargs",
            " ".join(place.ssh_options(port)),
            "-ui",
            "text",
            "-batch",
            "-silent",
            "-force",
            far if pull else here,
            "-times",
            "-perms",
            "-1",
            "-confirmbigdel=false",
            "-log=false",
        ]


class Sbsync(Tool):
    program, by_door = "sbsync", True

    def __init__(self, name, help, program):
        super().__init__(name, help)
        self.path = program

    def missing(self, place):
        if not self.path or not os.path.exists(self.path):
            return "sbsync is not built (make, or --sbsync PATH)"
        try:
            p = subprocess.run(
                [self.path, "mirror", "--help"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=20,
            )
        except (OSError, subprocess.TimeoutExpired) as e:
            return "%s does not run: %s" % (self.path, e)
        return None if p.returncode == 0 else "%s has no mirror command" % self.path

    def env(self, place):
        return {"SBSYNC_STATE_DIR": os.path.join(place.work, "state-" + self.name)}

    def forget(self, place):
        for d in (
            os.path.join(place.work, "state-" + self.name),
            getattr(place, "remote_state", None),
        ):
            if d:
                shutil.rmtree(d, ignore_errors=True)
                os.makedirs(d, mode=0o700, exist_ok=True)

    def ssh_options(self, place, port):
        return [
            "-p",
            str(port),
            "-i",
            os.path.join(place.ssh_dir, "user"),
            "--known-hosts",
            place.known_hosts,
        ]

    def command(self, place, link, port, src, dst, pull):
        base = [self.path, "mirror", "--json"]
        if not LINKS[link]:
            return base + [src, dst]
        far = lambda p: "%s:%s" % (place.host(), p)
        return base + self.ssh_options(place, port) + ([far(src), dst] if pull else [src, far(dst)])

    def extra(self, got):
        """What it says of itself, beside what the relay counted."""
        try:
            said = json.loads(got["stdout"])
        except ValueError:
            return {}
        keys = (
            "bytes_wire_up",
            "bytes_wire_down",
            "files_synced",
            "files_moved",
            "files_delta",
            "phases_ms",
        )
        return {"said": {k: said[k] for k in keys if k in said}} if isinstance(said, dict) else {}


class SbsyncSession(Sbsync):
    """A session that is open, over one connection that stays, as a daemon has it: tests/bench/turn
    on the library. The first run starts it, the next ones are turns; what they take is what the
    program says of the call.
    """

    may_differ = (".d..t...... ./",)  # a session leaves the time of the root directory itself alone

    def __init__(self, name, help, program):
        super().__init__(name, help, program)
        self.process = self.door = None

    def links(self):
        return set(LINKS) - {"local"}

    def env(self, place):
        agent = os.path.join(os.path.dirname(os.path.realpath(self.path)), "sbsync-agent")
        return dict(
            super().env(place), **({"SBSYNC_AGENT": agent} if os.path.exists(agent) else {})
        )

    def forget(self, place):
        self.close()
        super().forget(place)

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait(60)
            self.process.stdout.close()
        self.process = None

    def ask(self):
        line = self.process.stdout.readline()
        if line:
            return line
        self.close()
        with open(self.log) as f:
            return {"error": "turn ended: %s" % f.read().strip()[-300:]}

    def live(self, place, link, port, src, dst):
        """Instead of a command of its own for each run."""
        if self.process and self.door != (port, src):
            self.close()
        if not self.process:
            self.door, self.log = (port, src), os.path.join(place.work, "turn.log")
            name = "bench-%d-%s" % (port, os.path.basename(os.path.dirname(src)))
            argv = [
                place.helpers["turn"],
                str(port),
                os.path.join(place.ssh_dir, "user"),
                place.known_hosts,
                name,
                src,
                "%s:%s" % (place.host(), dst),
            ]
            with open(self.log, "w") as log:
                self.process = subprocess.Popen(
                    argv,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    bufsize=1,
                    env=dict(os.environ, **self.env(place)),
                )
            said = self.ask()
            return (
                said
                if isinstance(said, dict)
                else {"wall": 0.0, "cpu_local": 0.0, "rss_local_kib": 0}
            )
        relay = place.relay(link)
        relay.forget()
        self.process.stdin.write("turn\n")
        said = self.ask()
        if isinstance(said, dict):
            return said
        return dict(json.loads(said), **relay.stats())


def all_tools(sbsync):
    z = ("-z", "--zc=zstd")
    nir = "--no-inc-recursive"
    return [
        Sbsync("sbsync", "this project, defaults only", sbsync),
        SbsyncSession(
            "sbsync-turn", "a turn in a session that is open, over its connection", sbsync
        ),
        Rsync("rsync", "rsync -a --delete", plain=True),
        Rsync("rsync-z", "... -z --zc=zstd", *z, plain=True),
        Rsync("rsync-nir", "... --no-inc-recursive", nir),
        Rsync("rsync-nir-z", "... --no-inc-recursive -z --zc=zstd", nir, *z),
        Rsync("rsync-W", "... -W --no-inc-recursive", "-W", nir),
        Rsync("rsync-W-z", "... -W --no-inc-recursive -z --zc=zstd", "-W", nir, *z),
        Unison("unison", "unison -batch -force SRC"),
        Tar("tar", "tar | ssh tar"),
        Tar("tar-zstd", "tar | zstd -3 -T0 | ssh zstd -d | tar", "| zstd -q -3 -T0", "zstd -dcq |"),
    ]
