#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sbhostd under kill -9: hostcrash.py BUILDDIR DIR ROUNDS SEED [POOL]. Run
by tests/e2e/host-crash.sh.

Threads of this program work on the daemon by RPC and know what was acknowledged; it is killed at a
random moment of each round, started again, and must agree with them: sessions, states, files,
snapshots and their content, holds, processes, and what the storage holds. SB_CRASH_SLOTS is the
number of sessions for each of four threads."""
import faulthandler
import os
import random
import signal
import sys
import threading
import time

import hostclient
from hostclient import Dead, Refused

THREADS = 4
KEEP = 5  # turn snapshots
ENV = "SB_CRASH_DIR"
# What a call may say in the middle of the others' work.
FINE = {
    "failed_precondition",
    "not_found",
    "already_exists",
    "resource_exhausted",
    "unavailable",
    "aborted",
}


def nothing_done(e):
    """Refused before anything began."""
    return e.code in ("failed_precondition", "not_found", "already_exists")


class Snap:
    def __init__(self, value, sure=True):
        self.value, self.sure, self.held = value, sure, {False}


class Model:
    """What is known of one session. Sets hold every value that is possible."""

    def __init__(self):
        self.there = {False}
        self.paused = {False}
        self.values = {None}
        self.snaps = {}  # oldest first
        self.turn_in_doubt = False

    def made(self, values):
        self.__init__()
        self.there, self.values = {True}, set(values)


class Worker(threading.Thread):
    def __init__(self, crash, n, seed):
        super().__init__(daemon=True)
        self.crash, self.n = crash, n
        self.rnd = random.Random(seed)
        self.client = hostclient.Client(crash.socket)
        self.acked, self.wrong = 0, []

    def call(self, method, **fields):
        answer = self.client.call(method, **fields)
        self.acked += 1
        return answer

    def run(self):
        try:
            while not self.crash.stop:
                sid = "t%d-%d" % (self.n, self.rnd.randrange(self.crash.slots))
                try:
                    self.step(sid, self.crash.models[sid])
                except Refused as e:
                    if e.code not in FINE:
                        self.wrong.append("%s: %s" % (sid, e))
        except Dead:
            pass

    def step(self, sid, m):
        if m.there == {False}:
            return self.make(sid, m)
        kinds = [
            "destroy",
            "pause",
            "resume",
            "resume",
            "named",
            "turn",
            "turn",
            "delete",
            "roll",
            "hold",
            "release",
            "tool",
            "tool",
            "launch",
            "write",
            "write",
            "write",
            "write",
        ]
        if not self.crash.pool:
            kinds = [k for k in kinds if k not in ("named", "delete", "roll", "hold", "release")]
        getattr(self, "do_" + self.rnd.choice(kinds))(sid, m)

    def make(self, sid, m):
        m.made({None})
        m.there = {True, False}
        other = "t%d-%d" % (self.n, self.rnd.randrange(self.crash.slots))
        source = self.crash.models[other]
        names = [n for n, s in source.snaps.items() if s.sure]
        try:
            if names and source.there == {True} and other != sid:
                name = self.rnd.choice(names)
                m.values = {source.snaps[name].value}
                self.call("Fork", SessionID=other, SnapshotID=name, NewSessionID=sid)
            else:
                self.call("CreateSession", SessionID=sid, BaseSnapshot=self.crash.base)
        except Refused as e:
            if nothing_done(e) or e.code == "resource_exhausted":
                m.there = {False}
            raise
        m.there = {True}

    def do_destroy(self, sid, m):
        m.there = {True, False}
        try:
            self.call("DestroySession", SessionID=sid, Force=self.rnd.random() < 0.5)
        except Refused as e:
            # A hold refuses it; what is busy goes on being destroyed.
            if e.code == "failed_precondition":
                m.there = {True}
            raise
        m.__init__()

    def do_pause(self, sid, m):
        self.switch(sid, m, "PauseSession", True)

    def do_resume(self, sid, m):
        self.switch(sid, m, "ResumeSession", False)

    def switch(self, sid, m, method, to):
        was, m.paused = m.paused, {True, False}
        try:
            self.call(method, SessionID=sid)
        except Refused as e:
            if nothing_done(e):
                m.paused = was
            raise
        m.paused = {to}

    def do_write(self, sid, m):
        """By a tool that the host runs itself: a file replaced atomically."""
        self.write(sid, m, "write_file", lambda v: {"path": "v", "content": v})

    def do_tool(self, sid, m):
        """By a command, which may be running when the host dies, and leaves a child behind."""
        self.write(
            sid,
            m,
            "bash",
            lambda v: {
                "cmd": "export %s=%s; sleep 0.0%d & echo -n %s >v.%s; mv v.%s v"
                % (ENV, self.crash.dir, self.rnd.randrange(10), v, v, v)
            },
        )

    def write(self, sid, m, tool, params):
        v = str(self.rnd.randrange(10**6))
        was, m.values = m.values, m.values | {v}
        try:
            a = self.call(
                "ExecuteTool",
                SessionID=sid,
                ToolName=tool,
                ToolCallID="c%d" % self.rnd.getrandbits(60),
                Params=params(v),
            )
        except Refused as e:
            if nothing_done(e):
                m.values = was
            raise
        if a.get("IsError") or a.get("ExitCode"):
            self.wrong.append("%s of %s: %s" % (tool, sid, a))
            return
        m.values = {v}

    def value(self, m):
        return next(iter(m.values)) if len(m.values) == 1 else Ellipsis

    def do_named(self, sid, m):
        name = "n%d" % self.rnd.randrange(10**6)
        s = m.snaps[name] = Snap(self.value(m), False)
        try:
            self.call("CreateSnapshot", SessionID=sid, Name=name)
        except Refused as e:
            if nothing_done(e):
                del m.snaps[name]
            raise
        s.sure = True

    def do_turn(self, sid, m):
        m.turn_in_doubt = True
        try:
            name = self.call("TurnComplete", SessionID=sid).get("SnapshotID")
        except Refused as e:
            m.turn_in_doubt = not nothing_done(e)
            raise
        m.turn_in_doubt = False
        if name:
            m.snaps[name] = Snap(self.value(m))
            turns = [n for n in m.snaps if n.startswith("turn-")]
            for old in turns[: max(0, len(turns) - KEEP)]:
                # May be kept by a hold or a fork.
                m.snaps[old].sure = False

    def pick(self, m):
        return self.rnd.choice([n for n, s in m.snaps.items() if s.sure] or [None])

    def do_delete(self, sid, m):
        name = self.pick(m)
        if not name:
            return
        m.snaps[name].sure = False
        try:
            self.call("DeleteSnapshot", SessionID=sid, SnapshotID=name)
        except Refused as e:
            m.snaps[name].sure = e.code == "failed_precondition"
            raise
        del m.snaps[name]

    def do_roll(self, sid, m):
        name = self.pick(m)
        if not name:
            return
        later = list(m.snaps)[list(m.snaps).index(name) + 1 :]
        was = dict((n, m.snaps[n].sure) for n in later), m.values
        for n in later:
            m.snaps[n].sure = False
        target = m.snaps[name].value
        m.values = m.values | {target}
        try:
            self.call("RollbackSession", SessionID=sid, SnapshotID=name)
        except Refused as e:
            if e.code == "failed_precondition":
                for n in later:
                    m.snaps[n].sure = was[0][n]
                m.values = was[1]
            raise
        for n in later:
            del m.snaps[n]
        m.values = {target}

    def do_hold(self, sid, m):
        self.mark(sid, m, "HoldSnapshot", True)

    def do_release(self, sid, m):
        self.mark(sid, m, "ReleaseSnapshot", False)

    def mark(self, sid, m, method, to):
        name = self.pick(m)
        if not name:
            return
        s = m.snaps[name]
        was, s.held = s.held, {True, False}
        try:
            self.call(method, SessionID=sid, SnapshotID=name, Tag="tag")
        except Refused as e:
            if nothing_done(e):
                s.held = was
            raise
        s.held = {to}

    def do_launch(self, sid, m):
        there = self.call("ListProcesses", SessionID=sid).get("Processes", [])
        running = [p for p in there if p["Status"] != "exited"]
        if len(running) < 2:
            self.call(
                "LaunchProcess",
                SessionID=sid,
                Binary="sleep",
                Args=["1000"],
                Env={ENV: self.crash.dir},
            )
        else:
            self.call(
                "KillProcess",
                SessionID=sid,
                ProcessID=self.rnd.choice(running)["ProcessID"],
                Signal=9,
            )


class Crash:
    def __init__(self, build, directory, seed, pool):
        self.dir, self.pool, self.stop = directory, pool, False
        self.slots = int(os.environ.get("SB_CRASH_SLOTS", "3"))
        self.socket = directory + "/sock"
        self.base = "img@initial" if pool else "img"
        self.models = {
            "t%d-%d" % (t, s): Model() for t in range(THREADS) for s in range(self.slots)
        }
        self.rnd = random.Random(seed)
        self.acked = 0
        # A slow machine is no crash: zfs-fuse waits for its disks at every unmount.
        self.daemon = hostclient.Daemon(
            build,
            directory,
            pool,
            ["--keep-turn-snapshots", str(KEEP), "--log-level", "warn", "--storage-timeout", "5m"],
        )

    def complain(self, text):
        print("# " + text)
        self.good = False

    def round(self, ms):
        self.good = True
        self.stop = False
        workers = [Worker(self, n, self.rnd.random()) for n in range(THREADS)]
        for w in workers:
            w.start()
        time.sleep(ms / 1000)
        self.daemon.kill()
        self.stop = True
        for w in workers:
            w.join(300)
            self.acked += w.acked
            for text in w.wrong:
                self.complain(text)
            if w.is_alive():
                self.complain("a call did not end with the daemon")
        self.daemon.start()
        self.client = hostclient.Client(self.socket)
        self.check()
        return self.good

    def sessions(self):
        return {
            s["ID"]: s for s in self.client.call("ListSessions", Limit=1000).get("Sessions", [])
        }

    def check(self):
        end = time.time() + 60
        while (
            any(s["State"] == "destroying" for s in self.sessions().values()) and time.time() < end
        ):
            time.sleep(0.1)
        there = self.sessions()
        for sid, s in there.items():
            if sid not in self.models:
                self.complain("session %s is nobody's" % sid)
                continue
            self.check_session(self.models[sid], s)
        for sid, m in self.models.items():
            if sid not in there:
                if m.there == {True}:
                    self.complain("session %s is lost" % sid)
                m.__init__()
        self.check_storage(there)
        self.check_processes()

    def value_of(self, s):
        try:
            with open(s["Mountpoint"] + "/v") as f:
                return f.read()
        except FileNotFoundError:
            return None

    def check_session(self, m, s):
        sid, value = s["ID"], self.value_of(s)
        if True not in m.there:
            self.complain("session %s was destroyed or never made, and is there" % sid)
        if s["State"] not in ("active", "paused"):
            self.complain("session %s is %s (%s)" % (sid, s["State"], s.get("Why")))
        elif m.there == {True} and (s["State"] == "paused") not in m.paused:
            self.complain("session %s is %s" % (sid, s["State"]))
        if m.there == {True} and Ellipsis not in m.values and value not in m.values:
            self.complain(
                "session %s holds %s instead of %s" % (sid, value, sorted(map(str, m.values)))
            )
        listed = {}
        if self.pool:
            listed = {
                n["Name"]: n
                for n in self.client.call("ListSnapshots", SessionID=sid).get("Snapshots", [])
            }
        if m.there == {True}:
            self.check_snaps(sid, m, listed)
        self.adopt(m, s, value, listed)
        if self.pool and s["State"] == "active" and m.snaps and self.rnd.random() < 0.3:
            self.try_rollback(sid, m, s)

    def check_snaps(self, sid, m, listed):
        turns = [n for n in listed if n.startswith("turn-")]
        for name, known in m.snaps.items():
            there = listed.get(name)
            # One more turn may have come without an answer, and put the oldest out.
            dropped = (
                name.startswith("turn-")
                and m.turn_in_doubt
                and sum(t > name for t in turns) >= KEEP
            )
            if known.sure and not there and not dropped:
                self.complain("session %s: snapshot %s was acknowledged and is lost" % (sid, name))
            if there and known.sure and (there.get("Holds", 0) > 0) not in known.held:
                self.complain("session %s: %s has %d holds" % (sid, name, there.get("Holds", 0)))
        for name in listed:
            if name not in m.snaps and not (name.startswith("turn-") and m.turn_in_doubt):
                self.complain("session %s: snapshot %s came from nowhere" % (sid, name))

    def adopt(self, m, s, value, listed):
        """What is there now is known, but for the content of snapshots that were in doubt."""
        old = m.snaps
        m.made({value})
        m.paused = {s["State"] == "paused"}
        for name, n in listed.items():
            keep = old.get(name)
            m.snaps[name] = Snap(keep.value if keep else Ellipsis)
            m.snaps[name].held = {n.get("Holds", 0) > 0}

    def try_rollback(self, sid, m, s):
        name = self.rnd.choice(list(m.snaps))
        try:
            self.client.call("RollbackSession", SessionID=sid, SnapshotID=name, DropLater=True)
        except Refused as e:
            if e.code != "failed_precondition":
                self.complain("session %s: rollback to %s: %s" % (sid, name, e))
            return
        value, wanted = self.value_of(s), m.snaps[name].value
        if wanted is not Ellipsis and value != wanted:
            self.complain(
                "session %s: snapshot %s holds %s instead of %s" % (sid, name, value, wanted)
            )
        names = list(m.snaps)
        for later in names[names.index(name) + 1 :]:
            del m.snaps[later]
        m.snaps[name].value = value
        m.values = {value}

    def check_storage(self, there):
        """Every workspace is a session's; data of the dead is right only while there are forks."""
        forks = any(s.get("Parent") for s in there.values())
        end = time.time() + 60
        while True:
            living, dead = self.daemon.workspaces()
            if living == set(there) and (forks or not dead):
                return
            if time.time() > end:
                return self.complain(
                    "the storage has %s, dead %s; sessions are %s"
                    % (sorted(living ^ set(there)), sorted(dead), len(there))
                )
            time.sleep(0.2)

    def check_processes(self):
        end = time.time() + 30
        while True:
            known = sum(s.get("Processes", 0) for s in self.sessions().values())
            there = hostclient.processes_with(ENV, self.dir)
            if known == len(there):
                return
            if time.time() > end:
                self.complain("the host knows %d processes, %d are there:" % (known, len(there)))
                for sid in self.sessions():
                    for p in self.client.call("ListProcesses", SessionID=sid).get("Processes", []):
                        self.complain("  known in %s: %s" % (sid, p))
                for pid in there:
                    self.complain("  there: %s" % hostclient.describe(pid))
                return
            time.sleep(0.2)

    def finish(self):
        """Everything can be destroyed, and then nothing is left."""
        self.good = True
        there = self.sessions()
        print("# %d sessions at the end" % len(there))
        for sid in there:
            try:
                self.client.call("DestroySession", SessionID=sid, Force=True)
            except Refused as e:
                self.complain("destroy %s: %s" % (sid, e))
        self.check_storage({})
        self.check_processes()
        if not self.daemon.end():
            self.complain("sbhostd did not end well")
        return self.good


def on_term(crash):
    """Out of time: what was waited for."""
    print("# out of time; this program:", flush=True)
    faulthandler.dump_traceback(file=sys.stdout)
    crash.daemon.describe()
    sys.stdout.flush()
    sys.exit(1)


def main():
    build, directory, rounds, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    pool = sys.argv[5] if len(sys.argv) > 5 else None
    crash = Crash(build, directory, seed, pool)
    good = True
    signal.signal(signal.SIGTERM, lambda *_: on_term(crash))
    try:
        crash.daemon.start()
        crash.client = hostclient.Client(crash.socket)
        for n in range(rounds):
            early = crash.rnd.random() < 0.1
            ms = (
                crash.rnd.randrange(60)
                if early
                else 60 + crash.rnd.randrange(6000 if pool else 1500)
            )
            good = crash.round(ms)
            if not good:
                print("# round %d of seed %d failed" % (n, seed))
                break
            if n % 10 == 9:
                print("# %d rounds, %d calls acknowledged" % (n + 1, crash.acked), flush=True)
        else:
            print("# %d kills, %d calls acknowledged" % (rounds, crash.acked))
            # A daemon that never got to work would prove nothing.
            good = crash.finish() and crash.acked >= rounds
    finally:
        crash.daemon.kill()
        for pid in hostclient.processes_with(ENV, directory):
            os.kill(pid, signal.SIGKILL)
    sys.exit(0 if good else 1)


main()
