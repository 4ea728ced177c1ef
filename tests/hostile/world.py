# SPDX-License-Identifier: MIT
"""A workspace with git directories of every kind, and what a sandbox would plant in it."""
import os
import shutil
import subprocess


def put(path, data, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.lexists(path):
        os.unlink(path)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())
    os.chmod(path, mode)


def wipe(path):
    if os.path.islink(path) or not os.path.isdir(path):
        if os.path.lexists(path):
            os.unlink(path)
    else:
        shutil.rmtree(path, ignore_errors=True)


HOOKS = (
    "applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg "
    "commit-msg post-commit pre-rebase post-checkout post-merge pre-push pre-receive update "
    "reference-transaction post-receive post-update push-to-checkout pre-auto-gc post-rewrite "
    "fsmonitor-watchman post-index-change"
).split()


class World:
    """ws, made anew from a template for each session; everything lies in `top`."""

    def __init__(self, top, sbsync):
        self.top, self.sbsync = top, sbsync
        self.ws, self.rt = os.path.join(top, "ws"), os.path.join(top, "rt")
        self.state, self.home = os.path.join(top, "state"), os.path.join(top, "home")
        self.ran, self.victim = os.path.join(top, "ran"), os.path.join(top, "victim")
        self.template = os.path.join(top, "template")
        self.env = {
            k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "SBSYNC_", "XDG_"))
        }
        self.env.update(
            HOME=self.home,
            SBSYNC_STATE_DIR=self.state,
            GIT_CONFIG_NOSYSTEM="1",
            GIT_TERMINAL_PROMPT="0",
            EDITOR="true",
            LC_ALL="C",
        )
        os.makedirs(self.home)
        put(
            os.path.join(self.home, ".gitconfig"),
            "[user]\n\tname = t\n\temail = t@example.com\n[protocol \"file\"]\n\tallow = always\n"
            "[init]\n\tdefaultBranch = main\n[advice]\n\tdetachedHead = false\n[gc]\n\tauto = 0\n",
        )
        self.canary = "#!/bin/sh\necho ran >>%s\n" % self.ran
        self.evil = (
            "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = echo fsmonitor >>{0}; false\n"
            "\teditor = echo editor >>{0};true\n\tsshCommand = echo ssh >>{0}\n"
            "\talternateRefsCommand = echo refs >>{0}\n"
            '[filter "x"]\n\tclean = echo clean >>{0}; cat\n\tsmudge = echo smudge >>{0}; cat\n'
            "[diff]\n\texternal = echo diff >>{0}\n"
            '[merge "x"]\n\tdriver = echo merge >>{0}\n'
            "[commit]\n\tgpgsign = true\n[gpg]\n\tprogram = {1}\n"
            '[submodule "lib"]\n\tupdate = !echo submodule >>{0}\n\tactive = true\n'
        ).format(self.ran, os.path.join(self.top, "gpg"))
        self.shell = "echo shell >>%s" % self.ran
        put(os.path.join(self.top, "gpg"), self.canary, 0o755)
        self.make_template()

    def git(self, at, *args, check=True, **more):
        return subprocess.run(
            ["git", "-C", at] + list(args),
            env=dict(self.env, **more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=check,
            timeout=60,
        )

    def make_template(self):
        """A repository with a submodule, a worktree, a separate, a linked and a bare git
        directory, and hooks of the user's own."""
        src = os.path.join(self.top, "src")
        ws, g = self.ws, self.git
        for d in (src, ws):
            os.mkdir(d)
            g(d, "init", "-q")
            for i in range(3):
                put(os.path.join(d, "file%d" % i), "line %d\n" % i)
            g(d, "add", "-A")
            g(d, "commit", "-qm", "one")
        g(ws, "submodule", "add", "-q", src, "lib")
        g(ws, "clone", "-q", "--bare", src, os.path.join(ws, "mirror.git"))
        g(ws, "remote", "add", "near", "mirror.git")
        for name, store in (("side", "side/.bare"), ("linked", "store/linked.git")):
            os.makedirs(os.path.dirname(os.path.join(ws, store)), exist_ok=True)
            g(ws, "clone", "-q", "--separate-git-dir", store, src, name)
        put(os.path.join(ws, "side", ".git"), "gitdir: ./.bare\n")
        os.unlink(os.path.join(ws, "linked", ".git"))
        os.symlink("../store/linked.git", os.path.join(ws, "linked", ".git"))
        put(os.path.join(ws, ".gitignore"), "/mirror.git\n/side\n/linked\n/store\n/wt\n")
        g(ws, "add", "-A")
        g(ws, "commit", "-qm", "two")
        g(ws, "worktree", "add", "-q", os.path.join(ws, "wt"), "-b", "wt")
        put(os.path.join(ws, ".git/hooks/pre-push"), "#!/bin/sh\nexit 0\n", 0o755)
        put(os.path.join(ws, ".git/info/attributes"), "*.none -text\n")
        self.make_states()
        shutil.copytree(ws, self.template, symlinks=True)

    def make_states(self):
        """A rebase that was begun: its files, whose list of things to do becomes evil."""
        scratch = os.path.join(self.top, "scratch")
        self.git(self.top, "clone", "-q", os.path.join(self.top, "src"), scratch)
        put(os.path.join(scratch, "more"), "more\n")
        self.git(scratch, "add", "-A")
        self.git(scratch, "commit", "-qm", "more")
        stop = {"GIT_SEQUENCE_EDITOR": "sed -i 1ibreak"}
        self.git(scratch, "rebase", "-q", "-i", "HEAD~1", check=False, **stop)
        self.states = os.path.join(self.top, "states")
        os.mkdir(self.states)
        shutil.copytree(
            os.path.join(scratch, ".git/rebase-merge"), os.path.join(self.states, "rebase-merge")
        )
        todo = "exec echo rebase >>%s\n" % self.ran
        put(os.path.join(self.states, "rebase-merge/git-rebase-todo"), todo)
        shutil.rmtree(scratch)

    def fresh(self):
        for d in (self.ws, self.rt, self.state):
            wipe(d)
        for f in (self.ran,):
            wipe(f)
        put(self.victim, "mine\n")
        shutil.copytree(self.template, self.ws, symlinks=True)

    # What a user may have set: programs and files of the tree that git then obeys.
    SETTINGS = {
        "hooks": ("core.hooksPath", ".githooks"),
        "global": ("--global", "core.hooksPath", ".githooks"),
        "filter": ("filter.x.clean", "tools/clean.sh %f"),
        "fsmonitor": ("core.fsmonitor", "tools/clean.sh"),
        "include": ("include.path", "../gitconfig"),
        "onbranch": ("includeIf.onbranch:main.path", "../more/gitconfig"),
        "worktree": ("extensions.worktreeConfig", "true"),
        "auto": ("--global", "gc.auto", "1"),
    }

    def configure(self, names):
        for v in ("core.hooksPath", "gc.auto"):
            self.git(self.ws, "config", "--global", "--unset-all", v, check=False)
        for n in names:
            self.git(self.ws, "config", *self.SETTINGS[n])
        for f in (".githooks/pre-push", "tools/clean.sh"):
            put(os.path.join(self.ws, f), "#!/bin/sh\ncat\n", 0o755)
        put(os.path.join(self.ws, "gitconfig"), "[include]\n\tpath = more/gitconfig\n")

    def run(self, *args):
        p = subprocess.run(
            [self.sbsync] + list(args),
            env=self.env,
            cwd=self.top,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120,
        )
        return p.returncode, p.stdout.decode("utf-8", "replace")

    def repositories(self):
        """Every directory in which git would work on something."""
        found = []
        for at, dirs, files in os.walk(self.ws):
            names = set(dirs) | set(files)
            bare = {"HEAD", "objects", "refs"} <= names or {"HEAD", "commondir"} <= names
            if ".git" in names or bare:
                found.append(at)
            dirs[:] = sorted(set(dirs) - {"objects", "refs", "logs", ".sbsync-stage"})
        return found

    def ask(self, at, n, rng):
        """A user works with git there, as a terminal's prompt and an editor would, too."""
        put(os.path.join(self.ws, "touched"), "%d\n" % n)
        calls = (
            ("status",),
            ("diff", "HEAD"),
            ("rebase", "--continue"),
            ("am", "--continue"),
            ("fetch", "-q", os.path.join(self.ws, "mirror.git"), "main"),
            ("fetch", "-q", "near"),
            ("submodule", "update", "-q", "--init", "--force"),
            ("checkout", "-q", "-f", "HEAD"),
            ("add", "-A"),
            ("commit", "-q", "--allow-empty"),
            ("commit", "-q", "--allow-empty", "-m", "three"),
            ("cherry-pick", "--continue"),
            ("log", "-p", "-1"),
            ("stash",),
            ("push", "-q", "near", "HEAD:refs/heads/pushed"),
            ("merge", "-q", "FETCH_HEAD"),
            ("update-ref", "refs/heads/more", "HEAD"),
            ("gc", "-q", "--auto"),
            ("gc", "-q"),
        )
        chosen = sorted(rng.sample(range(len(calls)), 8))
        for c in [calls[i] for i in chosen]:
            self.git(at, *c, check=False)
            if self.fired():
                return "git %s in %s" % (" ".join(c), os.path.relpath(at, self.ws))
        return None

    def fired(self):
        with open(self.victim, "rb") as f:
            return os.path.exists(self.ran) or f.read() != b"mine\n"
