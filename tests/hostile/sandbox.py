# SPDX-License-Identifier: MIT
"""Honest agents of sandboxes whose trees are hostile: what a stop brings
back, and what it must not."""
import os
import shutil
import socket
import stat
import subprocess
import tempfile

import trees


class Bad(Exception):
    pass


class Bed:
    """A session "h" of ws and runtime, started; the case spoils the runtime and the workspace."""

    def __init__(self, opts, run):
        self.opts, self.call = opts, run
        self.top = tempfile.mkdtemp(prefix="hostile.")
        self.state = os.path.join(self.top, "state")
        self.ws, self.runtime = os.path.join(self.top, "ws"), os.path.join(self.top, "runtime")
        os.mkdir(self.ws)

    def put(self, root, path, data=b"x\n", mode=0o644):
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        if os.path.lexists(full):
            os.unlink(full)
        trees.put(full, data, mode)

    def sync(self, verb, *codes):
        code, err = self.call(
            [self.opts["driver"], verb, "ws", "runtime", self.opts["sbsync"], "agent"],
            self.top,
            self.state,
        )
        if code not in (codes or (0,)):
            raise Bad("%s: exit %d: %s" % (verb, code, err))
        return code, err

    def start(self):
        self.sync("start")

    def listing(self, root):
        return {os.fsdecode(p): e for p, e in trees.listing(root).items() if p != b""}

    def drop(self):
        subprocess.run(["chmod", "-R", "u+rwx", self.top], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.top, ignore_errors=True)


def want(ok, *what):
    if not ok:
        raise Bad(" ".join(str(w) for w in what))


def mode_of(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def modes(b):
    """14: set-id, sticky, write for others, no permission at all, attributes"""
    b.put(b.ws, "kept", b"kept\n")
    b.put(b.ws, "shut/in", b"in\n")
    b.start()
    for name, mode in (
        ("suid", 0o4755),
        ("sgid", 0o2755),
        ("sticky", 0o1644),
        ("open", 0o666),
        ("all", 0o7777),
        ("none", 0),
    ):
        b.put(b.runtime, name, b"from the sandbox\n")
        os.chmod(os.path.join(b.runtime, name), mode)
        os.mkdir(os.path.join(b.runtime, "d-" + name))
        os.chmod(os.path.join(b.runtime, "d-" + name), mode)
    os.chmod(os.path.join(b.runtime, "kept"), 0o6777)
    os.chmod(os.path.join(b.runtime, "shut"), 0)
    try:
        os.setxattr(os.path.join(b.runtime, "suid"), "user.evil", b"1")
        if os.getuid() == 0:
            os.setxattr(
                os.path.join(b.runtime, "open"),
                "security.capability",
                bytes.fromhex("0100000200200000000000000000000000000000"),
            )
    except OSError:
        pass
    b.sync("turn", 0, 3)
    for p, e in b.listing(b.ws).items():
        if e[0] != "link":
            want(not e[1] & 0o7022, p, "has mode %o" % e[1])
    for name in ("suid", "open"):
        want(not os.listxattr(os.path.join(b.ws, name)), name, "has attributes")
        want(os.lstat(os.path.join(b.ws, name)).st_uid == os.getuid(), name, "has another owner")
    os.chmod(os.path.join(b.runtime, "shut"), 0o755)
    b.sync("turn", 0, 3)
    want(
        os.path.exists(os.path.join(b.ws, "shut")),
        "a directory that could not be read was taken for deleted",
    )
    os.chmod(os.path.join(b.ws, "shut"), 0o755)
    with open(os.path.join(b.ws, "shut", "in"), "rb") as f:
        want(f.read() == b"in\n", "the file in it is gone")


def specials(b):
    """15: fifos, sockets, devices, whiteouts, new and in place of files"""
    for i in range(4):
        b.put(b.ws, "f%d" % i, b"file %d\n" % i)
    b.start()
    j = lambda *p: os.path.join(b.runtime, *p)
    for i in range(3):
        os.unlink(j("f%d" % i))
    os.mkfifo(j("f0"))
    os.mkfifo(j("new fifo"))
    for name in ("f1", "new socket"):
        s = socket.socket(socket.AF_UNIX)
        here = os.getcwd()
        os.chdir(b.runtime)
        s.bind(name)
        os.chdir(here)
        s.close()
    if os.getuid() == 0:
        try:
            os.mknod(j("f2"), stat.S_IFCHR | 0o666, os.makedev(1, 3))
            os.mknod(j("whiteout"), stat.S_IFCHR, 0)
            os.mknod(j("disk"), stat.S_IFBLK | 0o666, os.makedev(7, 0))
        except OSError:
            pass
    b.put(b.runtime, "f3", b"edited\n")
    b.sync("stop", 0, 3)
    for d, ds, fs in os.walk(b.ws):
        for f in fs:
            want(stat.S_ISREG(os.lstat(os.path.join(d, f)).st_mode), f, "is no file")
    with open(os.path.join(b.ws, "f3"), "rb") as f:
        want(f.read() == b"edited\n", "the change beside them did not come")
    want(os.path.exists(os.path.join(b.ws, "f0")), "a file that became a fifo is gone")


def times(b):
    """16: far future, before the epoch, one nanosecond apart, the same again"""
    for i in range(3):
        b.put(b.ws, "f%d" % i, b"file %d\n" % i)
    b.start()
    odd = {
        "future": 13569465600,
        "border": 9223372036,
        "beyond": 9223372037,
        "old": -2147483648,
        "minus": -1,
        "zero": 0,
    }
    for name, sec in odd.items():
        b.put(b.runtime, name, name.encode())
        os.utime(os.path.join(b.runtime, name), ns=(0, sec * 10**9 + 999999999))
    st = os.lstat(os.path.join(b.runtime, "f1"))
    with open(os.path.join(b.runtime, "f1"), "r+b") as f:
        f.write(b"SAME")  # of the same size and time
    os.utime(os.path.join(b.runtime, "f1"), ns=(0, st.st_mtime_ns))
    b.sync("turn")
    for name in odd:
        with open(os.path.join(b.ws, name), "rb") as f:
            want(f.read() == name.encode(), name, "did not come")
    with open(os.path.join(b.ws, "f1"), "rb") as f:
        want(f.read() == b"SAME 1\n", "an edit with the old size and time was not seen")
    for name in odd:
        b.put(b.ws, name, b"edited here")
        os.utime(os.path.join(b.ws, name), ns=(0, odd[name] * 10**9))
    b.sync("turn")
    for name in odd:
        with open(os.path.join(b.runtime, name), "rb") as f:
            want(f.read() == b"edited here", name, "did not go")


def flood(b):
    """27: a conflict in every round, the same ones again, names that leave no room for a suffix"""
    long = "n" * 250
    names = ["a", "b.txt", long, "d/" + long]
    for n in names:
        b.put(b.ws, n, b"begin\n")
    b.start()
    rounds = 6
    for k in range(rounds):
        for n in names:
            b.put(b.ws, n, b"user %d\n" % k)
            b.put(b.runtime, n, b"sandbox %d\n" % k)
        b.sync("turn", 3)
        b.sync("turn", 0, 3)
    have = b.listing(b.ws)
    said = {}
    for p in have:
        if have[p][0] == "file":
            with open(os.path.join(b.ws, p), "rb") as f:
                said.setdefault(f.read(), []).append(p)
    for k in range(rounds):
        want(
            len(said.get(b"sandbox %d\n" % k, [])) == len(names),
            "round",
            k,
            "kept",
            said.get(b"sandbox %d\n" % k),
        )
    for n in names:
        with open(os.path.join(b.ws, n), "rb") as f:
            want(f.read() == b"user %d\n" % (rounds - 1), n, "is not the user's")
    files = [p for p in have if have[p][0] == "file"]
    want(len(files) == len(names) * (rounds + 1), len(files), "files")
    want(all(len(os.fsencode(os.path.basename(p))) <= 255 for p in files), "a name is too long")


def git(b):
    """28: hooks, configuration, attributes, .git files and links, other spellings;
    git runs nothing of it"""
    ran = os.path.join(b.top, "ran")
    g = lambda *a, **k: subprocess.run(
        ["git", "-C", b.ws] + list(a),
        env=dict(os.environ, GIT_CONFIG_NOSYSTEM="1", HOME=b.top),
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **k
    )
    g("init", "-q", "-b", "main")
    g("config", "user.email", "t@example.com")
    g("config", "user.name", "t")
    b.put(b.ws, "src", b"int x;\n")
    g("add", "-A")
    g("commit", "-qm", "one")
    b.start()
    evil = (
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = touch %s\n"
        "\thooksPath = hooks\n\tpager = touch %s\n\tsshCommand = touch %s\n"
        '[alias]\n\tst = !touch %s\n[filter "x"]\n\tclean = touch %s\n'
        "[diff]\n\texternal = touch %s\n" % ((ran,) * 6)
    ).encode()
    script = b"#!/bin/sh\ntouch %s\n" % os.fsencode(ran)
    for p, d in (
        (".git/config", evil),
        (".git/hooks/post-index-change", script),
        (".git/hooks/pre-commit", script),
        (".git/info/attributes", b"* filter=x diff=x\n"),
        (".git/objects/info/alternates", b"/tmp\n"),
        (".git/commondir", b"../evil\n"),
        (".git/modules/m/config", evil),
        (".git/worktrees/w/gitdir", b"x\n"),
        ("evil/config", evil),
        ("evil/HEAD", b"ref: refs/heads/main\n"),
        ("evil/refs/x", b""),
        ("evil/objects/x", b""),
        ("sub/.git", b"gitdir: ../evil\n"),
        ("sub/file", b"f\n"),
        (".GIT/config", evil),
        ("git~1/config", evil),
        (".envrc", b"touch x\n"),
        (".vscode/tasks.json", b"{}"),
        ("Makefile", b"all:\n"),
    ):
        b.put(b.runtime, p, d, 0o755)
    os.mkdir(os.path.join(b.runtime, "sub2"))
    os.symlink("../evil", os.path.join(b.runtime, "sub2", ".git"))
    b.put(b.runtime, "src", b"int y;\n")
    b.sync("stop", 3)
    with open(os.path.join(b.ws, "src"), "rb") as f:
        want(f.read() == b"int y;\n", "the work did not come")
    for p in (
        ".git/hooks/pre-commit",
        ".git/hooks/post-index-change",
        ".git/info/attributes",
        ".git/objects/info/alternates",
        ".git/commondir",
        ".git/modules/m/config",
        ".git/worktrees/w/gitdir",
        "sub/.git",
        "sub2/.git",
        ".GIT",
        "git~1",
    ):
        want(not os.path.lexists(os.path.join(b.ws, p)), p, "came through")
    for p in (".envrc", ".vscode/tasks.json", "Makefile", "sub/file"):
        want(os.path.exists(os.path.join(b.ws, p)), p, "did not come through")
    with open(os.path.join(b.ws, ".git", "config"), "rb") as f:
        want(b"fsmonitor" not in f.read(), "the configuration came through")
    g("status")
    g("add", "-A", ":!evil")
    g("commit", "-qm", "two")
    g("diff", "HEAD~1")
    for d in ("sub", "sub2"):
        g("-C", d, "status")
    want(not os.path.exists(ran), "git ran what the sandbox wanted")


CASES = [modes, specials, times, flood] + ([git] if shutil.which("git") else [])


def run(case, opts, call):
    b = Bed(opts, call)
    try:
        case(b)
    finally:
        b.drop()
