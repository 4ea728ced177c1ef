#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trees to measure with, and changes to them. The same arguments give the same names,
bytes and modes everywhere.

    workload.py make code DIR --files 50000       source-like files, a few KiB each
    workload.py make modules DIR --files 30000    many small packages, nested
    workload.py make blob DIR --size 1GiB         one large file, half of it compressible
    workload.py make log DIR --size 1GiB          one large log
    workload.py make repo DIR --files 2000        a git repository with a history (needs git)
    workload.py change edit DIR --count 500 --round 3

Changes: edit, add-delete, rename (a fifth of a code tree, there and back), insert, append, commits.
Each depends on the tree it finds and on --round only."""
import argparse
import itertools
import json
import math
import os
import random
import subprocess
import sys
from multiprocessing import Pool

PAST = 1_600_000_000  # modification times count up from here
BATCH = 400  # files that one worker writes at a time
SYLLABLES = (
    "an be co da el fo gra hi in jo ka lo mu net or pri qua re sta ti un vo we xi ya zo "
    "sh tr pl ck nd rt able tion ment ize"
).split()
LINES = (
    "static int {0}_{1}(struct {2} *{3}, size_t {0})\n{{\n",
    "\tif ({0}->{1} < {2} || !{3}[{n}])\n\t\treturn -{n};\n",
    "\t{0} = {1}_{2}({3}, {n});\n",
    "\tfor (size_t {0} = 0; {0} < {1}; {0}++)\n\t\t{2}[{0}] = {3}({0} + {n});\n",
    "#include <{0}/{1}.h>\n",
    "/* {0} the {1} of every {2}; a {3} takes at most {n}. */\n",
    '\treturn {0}({1}, "{2} {3}", {n});\n}}\n\n',
    "#define {0}_{1} {n}\n",
    "\tconst struct {0} {1} = {{ .{2} = {n}, .{3} = NULL }};\n",
    "    def {0}(self, {1}, {2}={n}):\n        return self.{3}.{1}({2})\n",
)


def word(r):
    return "".join(r.choices(SYLLABLES, k=r.randint(2, 4)))


def vocabulary():
    r = random.Random("vocabulary")
    return sorted({word(r) for _ in range(6000)})


WORDS = vocabulary()
WEIGHTS = list(itertools.accumulate(1 / (i + 5) for i in range(len(WORDS))))


def text(r, size):
    """About `size` bytes that compress like source code: each file repeats the few
    names that are its own."""
    own = r.choices(WORDS, cum_weights=WEIGHTS, k=max(8, min(240, size // 90)))
    weights = list(itertools.accumulate(1 / (i + 2) for i in range(len(own))))
    parts, have = [], 0
    while have < size:
        names = r.choices(own, cum_weights=weights, k=4 * 48)
        for i, line in enumerate(r.choices(LINES, k=48)):
            s = line.format(*names[4 * i : 4 * i + 4], n=r.getrandbits(10))
            parts.append(s)
            have += len(s)
            if have >= size:
                break
    return "".join(parts).encode()[:size]


def file_size(r, median, sigma=1.4):
    return min(4 << 20, max(1, round(r.lognormvariate(math.log(median), sigma))))


def write(path, data, mode=0o644, when=None):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        if when is not None:
            os.utime(fd, (when, when))
    finally:
        os.close(fd)


def write_batch(job):
    root, seed, median, batch = job
    total = 0
    for i, rel in batch:
        r, path = random.Random("%s %d" % (seed, i)), os.path.join(root, rel)
        if i % 90 == 17:
            os.symlink("../" * rel.count("/") + "README", path)
            os.utime(path, (PAST + i, PAST + i), follow_symlinks=False)
            continue
        data = b"" if i % 120 == 5 else text(r, file_size(r, median))
        write(path, data, 0o755 if i % 60 == 29 else 0o644, PAST + i)
        total += len(data)
    return total


def write_all(root, paths, seed, median):
    """Directories, then files by all cores, then the directories' times."""
    dirs = {root}
    for rel in paths:
        d = os.path.dirname(rel)
        while d:
            dirs.add(os.path.join(root, d))
            d = os.path.dirname(d)
    for d in sorted(dirs):
        os.makedirs(d, exist_ok=True)
    numbered = list(enumerate(paths))
    jobs = [(root, seed, median, numbered[n : n + BATCH]) for n in range(0, len(numbered), BATCH)]
    with Pool(min(4, os.cpu_count() or 1)) as pool:
        total = sum(pool.imap_unordered(write_batch, jobs))
    write(os.path.join(root, "README"), b"generated\n", when=PAST)
    for d in sorted(dirs, reverse=True):
        os.utime(d, (PAST, PAST))
    return {"files": len(paths) + 1, "directories": len(dirs), "bytes": total}


def code_paths(files, seed):
    """Ten to a directory, up to six deep; a fifth of them beneath one top directory, "a-fifth"."""
    r = random.Random("paths %s" % seed)
    tops = ["a-fifth"] + ["part-%d" % i for i in range(8)]
    dirs = {t: [t] for t in tops}
    for i in range(files // 10):
        t = tops[0] if i % 5 == 0 else tops[1 + i % 8]
        parent = r.choice(dirs[t][-40:])
        dirs[t].append("%s/%s%d" % (parent if parent.count("/") < 5 else t, word(r), i))
    for i in range(files):
        t = tops[0] if i % 5 == 0 else tops[1 + i % 8]
        yield "%s/%s_%d.%s" % (
            r.choice(dirs[t]),
            word(r),
            i,
            r.choice(("c", "c", "h", "py", "txt")),
        )


def make_code(root, files=50000, median=3000, seed=1, **_):
    return write_all(root, list(code_paths(files, seed)), "code %s" % seed, median)


def make_modules(root, files=30000, median=900, seed=1, **_):
    r, paths, i = random.Random("modules %s" % seed), [], 0
    while len(paths) < files:
        name, i = "%s-%s%d" % (word(r), word(r), i), i + 1
        top = "node_modules/" + name
        if r.random() < 0.2 and paths:
            top = (
                paths[r.randrange(len(paths))].split("/lib/")[0].split("/package.json")[0]
                + "/node_modules/"
                + name
            )
            if top.count("node_modules") > 4:
                continue
        paths.append(top + "/package.json")
        paths += ["%s/lib/%s%d.js" % (top, word(r), k) for k in range(r.randint(1, 40))]
    return write_all(root, paths[:files], "modules %s" % seed, median)


def stretches(r, size, compressible):
    """Text and noise in turn, made from a small stock so that a GiB does not take minutes."""
    stock = [text(r, 1 << 20) for _ in range(8)]
    left = size
    while left > 0:
        n = min(left, r.randint(64 << 10, 1 << 20))
        if r.random() < compressible:
            at = r.randrange((1 << 20) - n + 1)
            yield b"%020d" % r.getrandbits(60) + stock[r.randrange(8)][
                at : at + n - 20
            ] if n > 20 else b"x" * n
        else:
            yield r.randbytes(n)
        left -= n


def make_blob(root, size=1 << 30, seed=1, **_):
    os.makedirs(root, exist_ok=True)
    path = os.path.join(root, "big.bin")
    with open(path, "wb") as f:
        for part in stretches(random.Random("blob %s" % seed), size, 0.5):
            f.write(part)
    os.utime(path, (PAST, PAST))
    return {"files": 1, "bytes": os.path.getsize(path)}


def log_lines(r, size):
    have, out = 0, []
    words = r.choices(WORDS, k=400)
    while have < size:
        s = "%d.%03d %s %s[%d]: %s %s=%x\n" % (
            PAST + have // 90,
            r.randrange(1000),
            r.choice(("info", "warn", "debug")),
            words[r.randrange(12)],
            r.randrange(9000),
            words[r.randrange(400)],
            words[r.randrange(400)],
            r.getrandbits(32),
        )
        out.append(s)
        have += len(s)
    return "".join(out).encode()[:size]


def make_log(root, size=1 << 30, seed=1, **_):
    os.makedirs(root, exist_ok=True)
    r, left = random.Random("log %s" % seed), size
    stock = [log_lines(r, 1 << 20) for _ in range(16)]
    with open(os.path.join(root, "service.log"), "wb") as f:
        while left > 0:
            part = (b"%020d " % r.getrandbits(60) + stock[r.randrange(16)])[: min(left, 1 << 20)]
            f.write(part)
            left -= len(part)
    os.utime(os.path.join(root, "service.log"), (PAST, PAST))
    return {"files": 1, "bytes": size}


def git(root, *args, when=PAST):
    stamp = "%d +0000" % when
    env = dict(
        os.environ,
        GIT_AUTHOR_DATE=stamp,
        GIT_COMMITTER_DATE=stamp,
        GIT_CONFIG_NOSYSTEM="1",
        GIT_CONFIG_GLOBAL="/dev/null",
        HOME=root,
    )
    who = (
        "-c",
        "user.name=bench",
        "-c",
        "user.email=bench@localhost",
        "-c",
        "gc.auto=0",
        "-c",
        "commit.gpgsign=false",
    )
    subprocess.run(["git", "-C", root, *who, *args], env=env, check=True, stdout=subprocess.DEVNULL)


def commit_some(root, r, commits, when):
    for i in range(commits):
        edit_some(root, r, r.randint(1, 8))
        git(
            root,
            "commit",
            "-q",
            "-a",
            "-m",
            "%s %s %d" % (word(r), word(r), i),
            when=when + 600 * i,
        )


def make_repo(root, files=2000, seed=1, **_):
    done = make_code(root, files=files, seed=seed)
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "all of it")
    commit_some(root, random.Random("history %s" % seed), 60, PAST)
    git(root, "repack", "-q", "-a", "-d")
    return dict(done, commits=61)


def regular_files(root):
    out = []
    for d, dirs, names in os.walk(root):
        dirs[:] = sorted(x for x in dirs if x != ".git")
        out += [p for p in (os.path.join(d, n) for n in names) if not os.path.islink(p)]
    return sorted(out)


def edit_some(root, r, count):
    """A line or so replaced or put in somewhere, in the file itself, as an editor
    without a backup does."""
    found = regular_files(root)
    chosen = sorted(r.sample(found, min(count, len(found))))
    for path in chosen:
        with open(path, "r+b") as f:
            data, line = f.read(), text(r, r.randint(12, 120))
            at = r.randint(0, len(data))
            f.seek(at)
            f.write(line + data[at + (len(line) if r.random() < 0.5 else 0) :])
            f.truncate()
    return len(chosen)


def change_edit(root, r, count=500, **_):
    return {"edited": edit_some(root, r, count)}


def change_add_delete(root, r, count=500, round=0, **_):
    found = regular_files(root)
    homes = sorted({os.path.dirname(p) for p in found})
    gone = r.sample(found, min(count, len(found)))
    for path in gone:
        os.unlink(path)
    for i in range(count):
        write(
            os.path.join(r.choice(homes), "added_%d_%d.c" % (round, i)), text(r, file_size(r, 3000))
        )
    return {"added": count, "deleted": len(gone)}


def change_rename(root, r, **_):
    there, back = os.path.join(root, "a-fifth"), os.path.join(root, "moved-fifth")
    if not os.path.isdir(there):
        there, back = back, there
    os.rename(there, back)
    return {"renamed_files": len(regular_files(back))}


def change_insert(root, r, count=100, **_):
    path = os.path.join(root, "big.bin")
    size, pos = os.path.getsize(path), 0
    with open(path, "rb") as src, open(path + ".new", "wb") as dst:
        for off in sorted(r.randrange(size) for _ in range(count)) + [size]:
            while pos < off:
                n = os.copy_file_range(src.fileno(), dst.fileno(), off - pos)
                if n == 0:
                    raise OSError("%s ended early" % path)
                pos += n
            if off < size:
                os.write(dst.fileno(), r.randbytes(r.randint(20, 200)))
    os.replace(path + ".new", path)
    return {"inserts": count}


def change_append(root, r, size=8 << 20, **_):
    with open(os.path.join(root, "service.log"), "ab") as f:
        return {"appended": f.write(log_lines(r, size))}


def change_commits(root, r, count=15, round=0, **_):
    """A day: some commits on a branch of its own, merged back, and a repack now and then."""
    when = PAST + 86400 * (round + 2)
    git(root, "checkout", "-q", "-b", "day-%d" % round)
    commit_some(root, r, count, when)
    git(root, "checkout", "-q", "main")
    git(
        root,
        "merge",
        "-q",
        "--no-ff",
        "-m",
        "merge day %d" % round,
        "day-%d" % round,
        when=when + 80000,
    )
    if round % 2:
        git(root, "repack", "-q", "-d")
    return {"commits": count + 1}


MAKE = {
    "code": make_code,
    "modules": make_modules,
    "blob": make_blob,
    "log": make_log,
    "repo": make_repo,
}
CHANGE = {
    "edit": change_edit,
    "add-delete": change_add_delete,
    "rename": change_rename,
    "insert": change_insert,
    "append": change_append,
    "commits": change_commits,
}


def make(kind, root, **args):
    return MAKE[kind](root, **args)


def change(kind, root, round=0, seed=1, **args):
    return CHANGE[kind](root, random.Random("%s %s %d" % (kind, seed, round)), round=round, **args)


def parse_size(s):
    units = {"KiB": 10, "MiB": 20, "GiB": 30}
    shift = units.get(s[-3:], 0)
    return int(float(s[:-3]) * (1 << shift)) if shift else int(s)


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("verb", choices=("make", "change"))
    p.add_argument("kind", choices=(*MAKE, *CHANGE))
    p.add_argument("dir")
    p.add_argument("--files", type=int)
    p.add_argument("--median", type=int, help="median size of a file in bytes")
    p.add_argument("--size", type=parse_size)
    p.add_argument("--count", type=int)
    p.add_argument("--round", type=int, default=0)
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    given = {
        k: v
        for k, v in vars(a).items()
        if k in ("files", "median", "size", "count") and v is not None
    }
    if a.kind not in (MAKE if a.verb == "make" else CHANGE):
        p.error("%s is nothing to %s" % (a.kind, a.verb))
    if a.verb == "make":
        done = make(a.kind, a.dir, seed=a.seed, **given)
    else:
        done = change(a.kind, a.dir, round=a.round, seed=a.seed, **given)
    print(json.dumps(done))


if __name__ == "__main__":
    sys.exit(main())
