#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""lint.py CHECK ROOT [ARG...]: prints one line for each place of the tree that breaks the rule,
nothing when all is well. The rules are those of doc/HACKING.md; tests/lint.sh runs them and first
proves that each can fail."""
import os
import re
import subprocess
import sys

SOURCE_DIRS = ("lib", "sync", "bin", "tests", "demo")
MAX_FUNCTION = 80
MAX_FILE = 800
MAX_COLUMNS = 100

# The rooms from the ground up; rooms of one line do not know each other. doc/ARCHITECTURE.md draws
# the same (check_drawing).
RANKS = (
    ("lib/base",),
    ("sync/sbsync",),
    ("sync/tree",),
    ("sync/scan", "sync/codec", "sync/wire"),
    ("sync/plan", "sync/replica", "sync/ssh"),
    ("sync/remote",),
    ("sync/run",),
    ("sync/session", "sync"),
    ("lib/sb",),
    ("lib/cloud/http",),
    ("lib/cloud/aws",),
    ("lib/fleet/etcd",),
    ("lib/tool", "lib/egress", "lib/docker"),
    ("lib/host/cold",),
    ("lib/host/storage", "lib/host/runtime", "lib/host/files"),
    ("lib/host",),
    ("lib/host/tool",),
    ("lib/host/guest",),
    ("lib/rpc/protocol",),
    ("lib/rpc/server",),
    ("lib/rpc/service",),
    ("lib/compat/http", "lib/compat/keep"),
    ("lib/compat/e2b", "lib/compat/daytona", "lib/compat/ssh"),
    ("lib/rpc/client", "lib/cloud/e2b"),
    ("lib/fleet",),
    ("lib/provider", "lib/mcp"),
    ("lib/control", "lib/session", "lib/conform", "lib"),
    ("bin",),
)
# What programs include: public headers, the base, and what programs share. The exceptions and why:
PROGRAMS_INCLUDE = ("lib/sb/", "lib/base/", "sync/sbsync/", "bin/common/")
PROGRAM_INCLUDES = {
    # The inner half of what these rooms speak to.
    "bin/sb-box": ("lib/host/runtime/", "lib/host/guest/", "lib/compat/ssh/"),
    "bin/sb-files": ("lib/host/files/",),  # a program of lib/host/files, without libsandbox
    "bin/sb-egress": ("lib/egress/",),  # the program around that room
    "bin/sb-ssh": ("lib/compat/ssh/",),  # the outer half of what that room speaks to
    "bin/sbsync-agent": ("lib/tool/",),  # a static program of sync and lib/tool, without libsandbox
}
# External names that stand for the whole project and so do not carry the noun of their file.
COMMON_NAMES = {"lib/base/error.c": ("sb_fail", "sb_fail_errno", "sb_wrap", "sb_code")}

BANNED = re.compile(
    r"(?<![\w.>])(v?sprintf|strcpy|stpcpy|strcat|atoi|atol|atoll|strtok|system|alloca|gets|"
    r"tmpnam|mktemp)\s*\("
)
# A library neither ends the process nor writes to its standard streams.
BANNED_IN_LIBRARY = re.compile(
    r"(?<![\w.>])(exit|abort|v?printf|puts|putchar|perror)\s*\(|(?<![\w.>])(stdout|stderr)\b"
)
LEXEME = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def read(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as f:
        return f.read()


def files(root, dirs, suffixes):
    for top in dirs:
        for where, subdirs, names in os.walk(os.path.join(root, top)):
            subdirs[:] = sorted(
                d
                for d in subdirs
                if d not in ("corpus", "node_modules", "__pycache__", ".deps", ".libs")
            )
            for name in sorted(names):
                if name.endswith(suffixes):
                    path = os.path.join(where, name)
                    yield os.path.relpath(path, root), path


def code(text):
    """The text without comments and literals; line numbers stay."""
    return LEXEME.sub(lambda m: "\n" * m.group().count("\n") or " ", text)


def matches(name, text, pattern, why):
    for number, line in enumerate(text.split("\n"), 1):
        m = pattern.search(line)
        if m:
            print("%s:%d: %s %s" % (name, number, m.group().strip(), why))


def check_banned(root):
    for name, path in files(root, SOURCE_DIRS, (".c", ".h")):
        matches(name, code(read(path)), BANNED, "is banned")


def check_library(root):
    for name, path in files(root, ("lib", "sync"), (".c", ".h")):
        matches(name, code(read(path)), BANNED_IN_LIBRARY, "has no place in a library")


CLEANED = re.compile(
    r"sb_auto(?:free|close)?(?:\([a-z_]+\))? (?:const )?(?:struct )?[a-z_]+ \**([a-z_]+);"
)


def check_cleanup(root):
    """What is cleaned up when it goes out of scope has a value before the function can return."""
    for name, path in files(root, SOURCE_DIRS, (".c", ".h")):
        lines = code(read(path)).split("\n")
        for at, line in enumerate(lines):
            m = CLEANED.search(line)
            if not m:
                continue
            var = m.group(1)
            valued = re.compile(r"[(,] ?&%s\b(?![.>-])|(?<![\w.>])%s =" % (var, var))
            for later in lines[at + 1 :]:
                if valued.search(later):
                    break
                if re.search(r"\b(return|goto)\b", later) or later.startswith("}"):
                    print("%s:%d: %s may be cleaned up without a value" % (name, at + 1, var))
                    break


def public_base_headers(root):
    """The headers in lib/sb that belong to the base: the ones lib/base/local.mk installs."""
    path = os.path.join(root, "lib/base/local.mk")
    return set(re.findall(r"lib/sb/[\w-]+\.h", read(path))) if os.path.exists(path) else set()


def room_of(name, base):
    """The room a file lies in. Public headers that belong to the base count as
    lib/base, every program as bin."""
    if name in base:
        return "lib/base"
    return "bin" if name.startswith("bin/") else os.path.dirname(name)


def rank_of(room):
    return next((n for n, rooms in enumerate(RANKS) if room in rooms), None)


def includes(root, name, path):
    """(line, file of the tree) for each include of one."""
    for number, line in enumerate(read(path).split("\n"), 1):
        m = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        for place in (os.path.dirname(name), "lib", "sync", "") if m else ():
            target = os.path.normpath(os.path.join(place, m.group(1)))
            if os.path.isfile(os.path.join(root, target)):
                yield number, target
                break


def check_layers(root):
    base = public_base_headers(root)
    for name, path in files(root, ("lib", "sync", "bin"), (".c", ".h")):
        room = room_of(name, base)
        if rank_of(room) is None:
            print(
                "%s: the room %s has no rank: give it one in RANKS and in doc/ARCHITECTURE.md"
                % (name, room)
            )
            continue
        for number, target in includes(root, name, path):
            other = room_of(target, base)
            if other == room or rank_of(other) is None:
                continue
            if rank_of(other) >= rank_of(room):
                print("%s:%d: %s may not include %s of %s" % (name, number, room, target, other))


def check_programs(root):
    """A program uses the libraries as any other program could."""
    for name, path in files(root, ("bin",), (".c", ".h")):
        program = os.path.dirname(name)
        allowed = PROGRAMS_INCLUDE + (program + "/",) + PROGRAM_INCLUDES.get(program, ())
        for number, target in includes(root, name, path):
            if not target.startswith(allowed):
                print("%s:%d: %s is not public" % (name, number, target))


def check_drawing(root):
    """The drawing of doc/ARCHITECTURE.md, top to bottom, names the rooms of RANKS and the
    folders that hold code."""
    page = os.path.join(root, "doc/ARCHITECTURE.md")
    m = re.search(
        r"<!-- rooms -->\n(.*?)<!-- end -->", read(page) if os.path.exists(page) else "", re.S
    )
    if not m:
        print("doc/ARCHITECTURE.md: no drawing between <!-- rooms --> and <!-- end -->")
        return
    drawn = []
    for line in m.group(1).split("\n"):
        rooms = tuple(
            sorted(set(re.findall(r"(?<![\w/])(?:lib|sync|bin)(?:/[a-z0-9-]+)*/(?=\s|$)", line)))
        )
        if rooms:
            drawn.append(tuple(r.rstrip("/") for r in rooms))
    ranks = [
        tuple(sorted(r for r in rooms if r not in ("sync", "lib"))) for rooms in reversed(RANKS)
    ]
    for n in range(max(len(drawn), len(ranks))):
        have, want = (v[n] if n < len(v) else () for v in (drawn, ranks))
        if have != want:
            print(
                "doc/ARCHITECTURE.md: line %d of the drawing has %s, RANKS has %s"
                % (n + 1, " ".join(have) or "nothing", " ".join(want) or "nothing")
            )
    there = {room_of(name, set()) for name, _ in files(root, ("lib", "sync", "bin"), (".c", ".h"))}
    for room in sorted(there - {r for rooms in RANKS for r in rooms}):
        print("%s: holds code and has no rank" % room)
    for room in sorted({r for rooms in RANKS for r in rooms} - there - {"lib", "sync"}):
        print("%s: has a rank and holds no code" % room)


def definitions(path):
    """(line, name) of each function with external linkage: return type on its own
    line, name in column 0."""
    lines = code(read(path)).split("\n")
    for at in range(1, len(lines)):
        m = re.match(r"([A-Za-z_]\w*)\(", lines[at])
        before = lines[at - 1]
        if not m or not re.match(r"[A-Za-z_]", before) or before.rstrip().endswith((";", ")", ",")):
            continue
        if re.match(r"(static|typedef|#|return|else)\b", before):
            continue
        body = next((x for x in lines[at : at + 12] if x == "{" or x.rstrip().endswith(";")), "")
        if body == "{":
            yield at + 1, m.group(1)


def check_names(root):
    """a-b.c exports sb_a_* or sb_a_b_*; in lib/rpc and lib/host the tree's
    word may stand between."""
    for name, path in files(root, ("lib", "sync"), (".c",)):
        stem = os.path.basename(name)[:-2]
        noun, whole = stem.split("-")[0], stem.replace("-", "_")
        tree = name.split("/")[1]
        allowed = ["sb_" + noun, "sb_" + whole]
        if tree in ("rpc", "host"):
            allowed += ["sb_%s_%s" % (tree, noun), "sb_%s_%s" % (tree, whole)]
        allowed += COMMON_NAMES.get(name, ())
        for number, symbol in definitions(path):
            if not any(re.match(re.escape(a) + r"(e?s)?(_|$)", symbol) for a in allowed):
                print(
                    "%s:%d: %s: %s exports %s_*"
                    % (name, number, symbol, os.path.basename(name), allowed[0])
                )


def check_twice(root):
    """One name, one thing: external functions, and struct, union and enum tags
    of headers or with sb_."""
    seen, tags = {}, {}
    for name, path in files(root, ("lib", "sync", "bin"), (".c", ".h")):
        program = name.split("/")[1] if name.startswith("bin/") else ""
        for number, symbol in definitions(path) if name.endswith(".c") else ():
            if symbol == "main":
                continue
            other = seen.setdefault((program, symbol), name)
            if other != name:
                print("%s:%d: %s is defined in %s too" % (name, number, symbol, other))
        for m in re.finditer(r"^(?:struct|union|enum) (\w+)\s*\{", code(read(path)), re.M):
            tags.setdefault(m.group(1), []).append(name)
    for tag, where in sorted(tags.items()):
        if len(where) > 1 and (tag.startswith("sb_") or any(w.endswith(".h") for w in where)):
            print(
                "%s: the tag %s is defined %d times: %s"
                % (where[0], tag, len(where), " ".join(where))
            )


def check_opening(root):
    """A .c file has a header of its own, which says what it is for, or says
    so in its first comment."""
    for name, path in files(root, SOURCE_DIRS, (".c",)):
        if os.path.exists(path[:-2] + ".h"):
            continue
        text = read(path)
        m = re.match(r"/\* SPDX[^\n]*\n(/\*.*?\*/)?", text, re.S)
        if not m or not m.group(1) or len(m.group(1).split()) < 6:
            print("%s: no header of its own and no opening comment that says what it is for" % name)


def check_private(root):
    """Headers that only their own room includes are called -priv.h, and
    nobody else includes them."""
    for name, path in files(root, ("lib", "sync", "bin"), (".c", ".h")):
        if re.search(r"(-int|-impl|impl|-internal)\.h$", name):
            print("%s: a private header is called -priv.h" % name)
        for number, target in includes(root, name, path):
            if target.endswith("-priv.h") and os.path.dirname(target) != os.path.dirname(name):
                print(
                    "%s:%d: %s is private to %s" % (name, number, target, os.path.dirname(target))
                )


def check_columns(root):
    """Tabs count eight. Tables of Markdown and addresses cannot be wrapped."""
    for name, path in files(
        root,
        SOURCE_DIRS + ("doc", "m4"),
        (".c", ".h", ".sh", ".py", ".mk", ".m4", ".md", ".mjs", ".ts"),
    ):
        if name.startswith("m4/l"):
            continue
        for number, line in enumerate(read(path).split("\n"), 1):
            if len(line.expandtabs(8)) > MAX_COLUMNS and not (
                name.endswith(".md") and re.match(r"\s*(\||\[|<)", line)
            ):
                print(
                    "%s:%d: %d columns, wrap past %d"
                    % (name, number, len(line.expandtabs(8)), MAX_COLUMNS)
                )


def check_whereto(root):
    """Each row of "Where things go" in doc/ARCHITECTURE.md names a file that is there and
    a symbol that it holds."""
    page = os.path.join(root, "doc/ARCHITECTURE.md")
    m = re.search(
        r"<!-- where -->\n(.*?)<!-- end -->", read(page) if os.path.exists(page) else "", re.S
    )
    rows = re.findall(r"^\| (.+?) \| `([^`]+)` \| `([^`]+)` \|", m.group(1), re.M) if m else []
    if len(rows) < 12:
        print(
            "doc/ARCHITECTURE.md: %d rows between <!-- where --> and <!-- end -->, 12 wanted"
            % len(rows)
        )
    for what, where, symbol in rows:
        path = os.path.join(root, where)
        if not os.path.isfile(path):
            print("doc/ARCHITECTURE.md: %s: %s is not there" % (what, where))
        elif not re.search(r"(?<!\w)%s(?!\w)" % re.escape(symbol), read(path)):
            print("doc/ARCHITECTURE.md: %s: %s does not hold %s" % (what, where, symbol))


def seed_fault(root, where, symbol, is_test):
    """What is wrong with one cell of doc/SEEDS.md, or ""."""
    path = os.path.join(root, where)
    if not os.path.isfile(path):
        return "%s is not there" % where
    text = read(path)
    if is_test and not where.startswith(("tests/", "lib/conform/")):
        return "%s is no test" % where
    # A test in C is defined, and its table has it, too.
    if is_test and where.endswith(".c"):
        found = re.search(r"^%s\(" % re.escape(symbol), text, re.M) and len(
            re.findall(r"(?<!\w)%s(?!\w)" % re.escape(symbol), text)
        ) > 1
    else:
        found = re.search(r"(?<!\w)%s(?!\w)" % re.escape(symbol), text)
    return "" if found else "%s does not hold %s" % (where, symbol)


def check_seeds(root):
    """Each row of the tables in doc/SEEDS.md has a place and a test, and both are there."""
    page = os.path.join(root, "doc/SEEDS.md")
    tables = re.findall(
        r"<!-- seeds -->\n(.*?)<!-- end -->", read(page) if os.path.exists(page) else "", re.S
    )
    rows = [
        line for table in tables for line in table.split("\n") if line.startswith("| `")
    ]
    if len(rows) < 250:
        print("doc/SEEDS.md: %d rows in its tables, 250 wanted" % len(rows))
    for row in rows:
        m = re.match(r"\| (.+?) \| `([^` ]+)` `([^`]+)` \| `([^` ]+)` `([^`]+)` \|$", row)
        if not m:
            print("doc/SEEDS.md: no place or no test: %s" % row)
            continue
        for where, symbol, is_test in ((m[2], m[3], False), (m[4], m[5], True)):
            fault = seed_fault(root, where, symbol, is_test)
            if fault:
                print("doc/SEEDS.md: %s: %s" % (m[1], fault))


def check_walks(root):
    """Each function that a walk of doc/ARCHITECTURE.md names is defined in a file it names."""
    page = os.path.join(root, "doc/ARCHITECTURE.md")
    text = read(page) if os.path.exists(page) else ""
    walks = re.findall(r"^## (The life of .*?)\n(.*?)(?=^## )", text, re.S | re.M)
    if len(walks) < 3:
        print("doc/ARCHITECTURE.md: %d walks (## The life of ...), 3 wanted" % len(walks))
    for title, walk in walks:
        names = re.findall(r"`([\w./-]+)`", walk)
        paths = [os.path.join(root, n) for n in names if re.search(r"\.[ch]$", n) and "/" in n]
        defined = "\n".join(read(p) for p in paths if os.path.isfile(p))
        for name in names:
            if re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)+", name):
                if not re.search(r"^(?:\w.* \**)?%s\(" % name, defined, re.M):
                    print("doc/ARCHITECTURE.md: %s: no file of it defines %s" % (title, name))


def check_functions(root):
    """House style puts the braces of a function alone in column 0."""
    for name, path in files(root, SOURCE_DIRS, (".c",)):
        start, title = None, "?"
        for number, line in enumerate(read(path).split("\n"), 1):
            if start is None and re.match(r"[A-Za-z_].*\(", line):
                title = line.split("(")[0].split()[-1]
            if line == "{":
                start = number
            elif line == "}" and start is not None:
                if number - start - 1 > MAX_FUNCTION:
                    print(
                        "%s:%d: %s has %d lines, split past %d"
                        % (name, start, title, number - start - 1, MAX_FUNCTION)
                    )
                start = None


def check_files(root):
    for name, path in files(root, SOURCE_DIRS, (".c", ".h", ".sh", ".py")):
        lines = read(path).count("\n")
        if lines > MAX_FILE:
            print("%s: %d lines, split past %d" % (name, lines, MAX_FILE))


def check_spdx(root):
    for name, path in files(root, SOURCE_DIRS, (".c", ".h", ".sh", ".py")):
        if not any("SPDX-License-Identifier: MIT" in line for line in read(path).split("\n")[:3]):
            print("%s: no SPDX-License-Identifier in its first lines" % name)


def documents(root):
    for name, path in files(root, ("doc",), (".md", ".1", ".3", ".5", ".8")):
        yield name, path
    if os.path.exists(os.path.join(root, "README.md")):
        yield "README.md", os.path.join(root, "README.md")


def check_symbols(root):
    known = set()
    for _, path in files(root, SOURCE_DIRS, (".sh", ".mk")):  # variables of the build and the tests
        known.update(re.findall(r"\bSB_[A-Z_]+", read(path)))
    for _, path in files(root, ("lib", "sync", "bin", "tests"), (".h",)):
        text = read(path)
        known.update(re.findall(r"\b(?:sb|SB)_\w+", text))
        # Names that an X-macro puts together: SB_CODE_MAP's X(-1, SYS, ...) is SB_E_SYS.
        for prefix in re.findall(r"\b(SB_\w*_)##name", text):
            known.update(prefix + n for n in re.findall(r"\bX\(-?\d+, (\w+),", text))
    for name, path in documents(root):
        for number, line in enumerate(read(path).split("\n"), 1):
            for symbol in re.findall(r"\b(?:sb|SB)_[A-Za-z0-9_]*[A-Za-z0-9]\b(?![-*<])", line):
                if symbol not in known:
                    print("%s:%d: %s is in no header" % (name, number, symbol))


def check_paths(root):
    """A path in backticks must be there; folder/NAME and globs are patterns, not paths."""
    for name, path in documents(root):
        for number, line in enumerate(read(path).split("\n"), 1):
            for there in re.findall(r"`((?:lib|sync|bin|tests|doc|m4|demo)/[a-z0-9_./-]*)`", line):
                if not os.path.exists(os.path.join(root, there)):
                    print("%s:%d: %s is not there" % (name, number, there))


def check_leftovers(root):
    unfinished = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
    machine = re.compile(r"/work/(?:wt|main|shared)\b")
    everything = (
        ".c",
        ".h",
        ".sh",
        ".py",
        ".md",
        ".mk",
        ".m4",
        ".am",
        ".ac",
        ".in",
        ".1",
        ".5",
        ".8",
        ".js",
        ".ts",
        ".json",
    )
    for name, path in files(root, SOURCE_DIRS + ("doc", "m4"), everything):
        if name.startswith("m4/l"):  # libtool's, copied there by bootstrap
            continue
        text = read(path)
        matches(name, text, unfinished, "left behind")
        matches(name, text, machine, "is a path of one machine")


def tracked(root):
    """Git's list of files; in an unpacked tarball, all there are."""
    if os.path.exists(os.path.join(root, ".git")):
        out = subprocess.run(
            ["git", "-C", root, "ls-files", "-z"], capture_output=True, check=True, text=True
        ).stdout
        return [n for n in out.split("\0") if n and os.path.exists(os.path.join(root, n))]
    return [name for name, _ in files(root, SOURCE_DIRS + ("doc",), ("",))]


def check_dist(root):
    """Every file of the source folders is named by a local.mk, itself or its folder, so
    that the tarball has it."""
    listed = set()
    for name, path in [("Makefile.am", os.path.join(root, "Makefile.am"))] + list(
        files(root, SOURCE_DIRS + ("doc",), (".mk",))
    ):
        if os.path.exists(path):
            here = os.path.dirname(name)
            listed.update(read(path).replace("%D%", here).split())
            listed.add(name)
    for name in tracked(root):
        parts = name.split("/")
        if parts[0] not in SOURCE_DIRS + ("doc",) or name.endswith(".in"):
            continue
        if not any("/".join(parts[:n]) in listed for n in range(2, len(parts) + 1)):
            print("%s: not in the tarball: name it in a local.mk" % name)


def options(text):
    return set(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]*[a-z0-9])", text))


def verbs_of_help(text):
    """The verbs a command's --help lists: two blanks, the verb, then its arguments or its help."""
    return set(re.findall(r"^  ([a-z][a-z0-9-]*)(?: |$)", text, re.M))


def check_manual(root, page, overview, *helps):
    """Every verb and long option of the --help texts stands in the manual page and the other
    way round. A verb that the page promises and the command lacks is printed as "later: VERB",
    and so are options then."""
    text = read(page)
    name = os.path.basename(page)
    offered = options(read(overview)).union(*(options(read(path)) for path in helps))
    described = set(re.findall(r"\bFl -([a-z][a-z0-9-]*)", text))
    verbs = verbs_of_help(read(overview))
    named = set(re.findall(r"^\.It Cm ([a-z][a-z0-9-]*)", text, re.M))
    for verb in sorted(verbs - named):
        print("%s: %s is not described" % (name, verb))
    for option in sorted(offered - described):
        print("%s: --%s is not described" % (name, option))
    for verb in sorted(named - verbs):
        print("later: %s" % verb)
    for option in sorted(described - offered):
        if named - verbs:
            print("later: --%s" % option)
        else:
            print("%s: --%s is described but no command takes it" % (name, option))


def check_verbs(root, overview):
    print("\n".join(sorted(verbs_of_help(read(overview)))))


if __name__ == "__main__":
    globals()["check_" + sys.argv[1]](*sys.argv[2:])
