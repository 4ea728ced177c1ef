# SPDX-License-Identifier: MIT
"""Random plans of a hostile runtime, synced by the real program; then real git works in the result
and must not run what the runtime planted.

    canary.py SBSYNC FOLDER ROUNDS SEED [off]

"off": with --trust-git-config; ends well only when the canary ran, so the test can fail."""
import os
import random
import shutil
import sys

from world import HOOKS, World, put, wipe

PLAIN = ["data", "data/x", "pkg", "pkg/a/b", "deep/one", "deep", "sub", "file0", "file1"]
GUARDED = [
    ".git/hooks", ".git/config", ".git/info", ".git/info/attributes", ".git/objects",
    ".git/objects/info", ".git/modules", ".git/modules/lib", ".git/modules/lib/hooks",
    ".git/modules/lib/config", ".git/modules/lib/info", ".git/modules/new", ".git/worktrees",
    ".git/worktrees/wt", ".git/worktrees/wt/gitdir", ".git/worktrees/wt/commondir",
    ".git/commondir", ".git/rebase-merge", ".git/modules/lib/rebase-merge", ".git/sequencer",
    ".git/HEAD", ".git/refs", ".git/logs", ".git/COMMIT_EDITMSG", ".git/index", ".git", "lib/.git",
    "side/.git", "side/.bare", "side/.bare/hooks", "side/.bare/config", "side", "linked/.git",
    "linked", "store", "store/linked.git", "store/linked.git/hooks", "store/linked.git/config",
    "mirror.git/hooks", "mirror.git/config", "mirror.git", "wt/.git", "wt", "lib", "sub/.git",
    "deep/.git", "data/.git", "pkg/.GIT", "config", "hooks", "HEAD", "objects", "refs",
    ".githooks", ".githooks/pre-commit", ".githooks/reference-transaction", "tools",
    "tools/clean.sh", "lib/.githooks/post-index-change", "wt/.githooks", "sub/.githooks",
    "gitconfig", "more/gitconfig", "more", ".git/config.worktree", ".git/worktrees/wt/HEAD",
    ".git/worktrees/wt/config.worktree", ".git/objects/info/alternates", ".gitmodules",
]  # fmt: skip
PARTS = ["HEAD", "config", "hooks", "objects", "refs", "info", "modules", "index", "commondir"] + [
    "config.worktree", "alternates", "githooks"
]


class Hostile:
    """What a sandbox can do to its own tree."""

    def __init__(self, world, rng):
        self.w, self.rng, self.log = world, rng, []

    def at(self, path):
        return os.path.join(self.w.rt, path)

    def overlap(self, a, b):
        return (b + "/").startswith(a + "/") or (a + "/").startswith(b + "/")

    def any(self, *lists):
        return self.rng.choice([p for l in lists for p in l])

    def room(self, path):
        """Makes the way to a path free, as far as a sandbox could."""
        part = ""
        for c in os.path.dirname(path).split("/"):
            part = os.path.join(part, c)
            full = self.at(part)
            if c and os.path.lexists(full) and (os.path.islink(full) or not os.path.isdir(full)):
                os.unlink(full)
        os.makedirs(os.path.dirname(self.at(path)), exist_ok=True)
        return self.at(path)

    def part(self, where, name):
        w, full = self.w, self.room(where + "/" + name)
        if not os.path.isdir(self.at(where)) or os.path.lexists(full):
            return
        if name == "hooks":
            for h in HOOKS:
                put(os.path.join(full, h), w.canary, 0o755)
        elif name == "githooks":
            for h in HOOKS:
                put(os.path.join(self.at(where), ".githooks", h), w.canary, 0o755)
        elif name.startswith("config"):
            put(full, w.evil)
        elif name == "alternates":
            put(self.room(where + "/objects/info/alternates"), "../../data/objects\n")
        elif name == "info":
            put(full + "/attributes", "* filter=x merge=x\n")
        elif name == "modules":
            put(full + "/lib/config", w.evil)
        elif name == "HEAD":
            put(full, "ref: refs/heads/main\n")
        elif name == "commondir":
            put(full, self.rng.choice(["../data\n", "../pkg\n", ".\n"]))
        elif name == "index":
            return
        else:
            put(full + "/heads/x", "") if name == "refs" else put(full + "/info/packs", "\n")

    def plant(self):
        where = self.any(PLAIN)
        for name in PARTS[:7] if self.rng.random() < 0.5 else self.rng.sample(PARTS, 3):
            self.part(where, name)
        return where

    def copy_of_real(self):
        """A real git directory, copied to a plain name and armed."""
        src = self.rng.choice([".git", "mirror.git", ".git/modules/lib", "side/.bare"])
        dst = self.any(PLAIN[:7])
        if not os.path.isdir(self.at(src)) or (dst + "/").startswith(src + "/"):
            return None
        wipe(self.room(dst))
        shutil.copytree(self.at(src), self.at(dst), symlinks=True)
        for name in ("config", "hooks", "info"):
            if self.rng.random() < 0.7:
                wipe(self.at(dst + "/" + name))
                self.part(dst, name)
        return src, dst

    def move(self):
        a, b = self.any(PLAIN), self.any(PLAIN, GUARDED, GUARDED)
        if not os.path.lexists(self.at(a)) or self.overlap(a, b):
            return None
        wipe(self.room(b))
        if os.path.lexists(self.at(a)):
            os.rename(self.at(a), self.at(b))
        return a, b

    def copy(self):
        a, b = self.any(PLAIN), self.any(PLAIN, GUARDED)
        if not os.path.isdir(self.at(a)) or self.overlap(a, b):
            return None
        wipe(self.room(b))
        if os.path.isdir(self.at(a)):
            shutil.copytree(self.at(a), self.at(b), symlinks=True)
        return a, b

    def link(self):
        a, b = self.any(PLAIN), self.any(GUARDED, PLAIN)
        wipe(self.room(b))
        to = os.path.relpath(self.at(a), os.path.dirname(self.at(b)))
        if self.rng.random() < 0.2:
            to = self.w.victim
        os.symlink(to, self.at(b))
        return to, b

    def delete(self):
        b = self.any(GUARDED, PLAIN)
        wipe(self.at(b))
        return b

    def hard(self):
        """One inode under two names: what git writes to one is read from the other."""
        a, b = self.any(GUARDED, ["data/msg"]), self.any(GUARDED, ["data/msg"])
        if not os.path.isfile(self.at(a)) or os.path.islink(self.at(a)) or a == b:
            return None
        wipe(self.room(b))
        if os.path.isfile(self.at(a)):
            os.link(self.at(a), self.at(b))
            put(self.room(".git/MERGE_MSG"), self.w.evil)
        return a, b

    def file(self):
        b = self.any(GUARDED)
        wipe(self.room(b))
        text = self.rng.choice(
            [self.w.evil, "gitdir: ../data\n", "gitdir: data\n", "../data\n", "[include]path=x\n"]
            + ['[submodule "lib"]\n\tpath = lib\n\turl = ./src\n\tupdate = !%s\n' % self.w.shell]
        )
        put(self.at(b), self.w.canary if self.rng.random() < 0.3 else text, 0o755)
        return b

    def folder(self):
        b = self.any(GUARDED)
        if os.path.isdir(self.at(b)) and not os.path.islink(self.at(b)):
            return None
        wipe(self.room(b))
        os.mkdir(self.at(b))
        for name in self.rng.sample(PARTS, 4):
            self.part(b, name)
        return b

    def half_done(self):
        g = self.rng.choice([".git", ".git/modules/lib", "side/.bare", ".git/worktrees/wt"])
        to = g + "/rebase-merge" if self.rng.random() < 0.7 else self.any(PLAIN[:7])
        wipe(self.room(to))
        shutil.copytree(os.path.join(self.w.states, "rebase-merge"), self.at(to))
        return to

    def edit(self):
        p = self.rng.choice(["file0", "file2", "src/new", "lib/file1", ".gitattributes"])
        if os.path.isdir(self.at(p)):
            return None
        put(self.room(p), "* filter=x diff=x\n" if p[0] == "." else str(self.rng.random()))
        return p

    def act(self):
        step = self.rng.choice(
            [self.plant, self.plant, self.copy_of_real, self.move, self.move, self.copy, self.link]
            + [self.link, self.delete, self.hard, self.file, self.folder, self.half_done, self.edit]
        )
        try:
            what = step()
        except (OSError, shutil.Error) as e:
            what = "could not: %s" % e
        if what:
            self.log.append("%s %s" % (step.__name__, what))


def bring(w, rng, trust):
    """One sync of some kind; its output."""
    kind = rng.random()
    if kind < 0.15:
        how = ["--rsh", os.path.join(w.top, "rsh"), "--max-delete", "100000"] + trust
        return w.run("mirror", "box:" + w.rt, w.ws, *how)
    out = w.run("sync", "c", "--max-delete", "100000", *trust)
    if kind > 0.75:
        more = w.run("resolve", "--name", "c", "--take", "runtime", "--all")
        out = (more[0], out[1] + "resolve:\n" + more[1])
    elif kind > 0.6:
        more = w.run("undo", "c")
        out = (more[0], out[1] + "undo:\n" + more[1])
    return out


def session(w, seed, rounds, trust):
    """Some rounds with one workspace; why it failed, or None."""
    rng = random.Random(seed)
    w.fresh()
    w.configure(rng.sample(sorted(w.SETTINGS), rng.randint(0, 2)))
    code, text = w.run("start", "--name", "c", w.ws, w.rt)
    if code:
        return "start: exit %d: %s" % (code, text)
    h = Hostile(w, rng)
    for n in range(rounds):
        for _ in range(rng.randint(1, 6)):
            h.act()
        code, text = bring(w, rng, trust)
        h.log.append("sync: exit %d\n%s" % (code, text))
        if code not in (0, 1, 3, 5):
            return "exit %d\n%s" % (code, "\n".join(h.log))
        places = w.repositories()
        for at in rng.sample(places, min(len(places), 4)):
            why = w.ask(at, n, rng)
            if why:
                with open(w.ran) if os.path.exists(w.ran) else open(w.victim) as f:
                    ran = f.read()
                return "%s ran: %s\n%s" % (why, ran, "\n".join(h.log))
    return None


def main():
    sbsync, top, rounds, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    off = sys.argv[5:] == ["off"]
    w = World(top, os.path.abspath(sbsync))
    put(os.path.join(top, "rsh"), '#!/bin/sh\nshift\nexec sh -c "$*"\n', 0o755)
    done = 0
    while done < rounds:
        why = session(w, seed, min(5, rounds - done), ["--trust-git-config"] if off else [])
        if why and off:
            print("the canary ran, as it must without the guard: seed %d" % seed)
            return 0
        if why:
            print("seed %d: %s" % (seed, why))
            return 1
        done, seed = done + 5, seed + 1
        if done % 100 == 0:
            print("# %d rounds" % done, flush=True)
    print("%d rounds" % rounds)
    return 1 if off else 0


sys.exit(main())
