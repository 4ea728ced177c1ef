# SPDX-License-Identifier: MIT
"""Makes the changes of a plan: everything beside the tree first, then into place."""
import os
import shutil

import tree
from agent import CLONE, DATA, DELETE, HARDLINK, MAKE, META, MOVE

SOURCE_LOST = 3


class Commit:
    def __init__(self, root, before, plan, items, root_meta):
        self.root, self.before, self.plan, self.items = root, before, plan, items
        self.root_meta = root_meta
        self.stage = os.path.join(root, tree.STAGE)
        self.files = self.dirs = self.deleted = self.moved = self.bytes = 0
        self.left = []

    def full(self, path):
        return os.path.join(self.root, path)

    def staged(self, n):
        return os.path.join(self.stage, b"%d" % n)

    def run(self):
        os.makedirs(self.root, exist_ok=True)
        os.makedirs(self.stage, mode=0o700, exist_ok=True)
        # Directories that are only disturbed keep their times.
        self.meta = {p: e for p, e in self.before.entries.items() if e.type == tree.DIR and p}
        for n, c in enumerate(self.plan):
            if c.method in (DATA, CLONE):
                self.stage_file(n, c)
        for n, c in enumerate(self.plan):
            if c.method == MOVE:
                os.rename(self.full(c.source), self.staged(n))
        for c in reversed(self.plan):
            if c.method == DELETE:
                self.delete(c.path)
        for n, c in enumerate(self.plan):
            self.place(n, c)
        for n, c in enumerate(self.plan):
            if c.method == HARDLINK:
                self.link(c)
        shutil.rmtree(self.stage)
        self.dress()
        return self

    def stage_file(self, n, c):
        if c.method == CLONE:
            shutil.copyfile(self.full(c.source), self.staged(n))
            return
        item = self.items[c.path]
        if item.status:
            self.left.append((c.path, SOURCE_LOST))
            c.method = None
            return
        with open(self.staged(n), "wb") as f:
            f.write(item.data)
        self.bytes += len(item.data)

    def delete(self, path):
        e = self.before.entries[path]
        inside = [p for p in self.before.entries if p == path or p.startswith(path + b"/")]
        for p in sorted(inside, key=tree.order, reverse=True):
            self.meta.pop(p, None)
            if not os.path.lexists(self.full(p)):
                continue
            if self.before.entries[p].type == tree.DIR:
                os.rmdir(self.full(p))
            else:
                os.unlink(self.full(p))
            self.deleted += 1
        return e

    def place(self, n, c):
        e, to = c.entry, self.full(c.path)
        if c.method in (DATA, CLONE):
            os.rename(self.staged(n), to)
            self.files += 1
        elif c.method == MOVE:
            os.rename(self.staged(n), to)
            self.moved += 1
            if e.type == tree.DIR:
                # What is in it came along as it was.
                for p, old in self.before.entries.items():
                    if p.startswith(c.source + b"/") and old.type == tree.DIR:
                        self.meta[c.path + p[len(c.source) :]] = old
        elif c.method == MAKE and e.type == tree.DIR:
            os.mkdir(to)
            self.dirs += 1
        elif c.method == MAKE:
            if os.path.lexists(to):
                os.unlink(to)
            if e.type == tree.LINK:
                os.symlink(e.target, to)
            else:
                open(to, "w").close()
            self.files += 1
        elif c.method != META:
            return
        if e.type == tree.DIR:
            self.meta[c.path] = e
        else:
            self.set_meta(to, e)

    def link(self, c):
        to = self.full(c.path)
        if os.path.lexists(to):
            os.unlink(to)
        os.link(self.full(c.entry.leader), to, follow_symlinks=False)
        self.files += 1

    def set_meta(self, full, e):
        if e.type != tree.LINK:
            os.chmod(full, e.mode)
        os.utime(full, ns=(e.mtime, e.mtime), follow_symlinks=False)

    def dress(self):
        for path in sorted(self.meta, key=tree.order, reverse=True):
            if os.path.isdir(self.full(path)):
                self.set_meta(self.full(path), self.meta[path])
        mode, mtime = self.root_meta or (self.before.root.mode, self.before.root.mtime)
        if mtime:
            os.chmod(self.root, mode)
            os.utime(self.root, ns=(mtime, mtime))
