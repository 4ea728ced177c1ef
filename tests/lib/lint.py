#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""lint.py CHECK ROOT [ARG...]: prints one line for each place of the tree that breaks the rule, nothing when all is
well. The rules are those of doc/HACKING.md; tests/lint.sh runs them and first proves that each can fail."""
import os
import re
import subprocess
import sys

SOURCE_DIRS = ("lib", "sync", "bin", "tests", "demo")
MAX_FUNCTION = 100
MAX_FILE = 800

# Which layer may include which: a file may include its own rank and lower ones.
RANKS = (
    ("lib/base/", 0),
    ("sync/", 1),
    ("lib/control/", 3),
    ("lib/", 2),
    ("bin/", 4),
    ("tests/", 5),
)
RANK_NAMES = ("base", "sync", "provider/session/host", "control", "bin", "tests")

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


def rank_of(name, base):
    if name in base:
        return 0
    for prefix, rank in RANKS:
        if name.startswith(prefix):
            return rank
    return None


def check_layers(root):
    base = public_base_headers(root)
    for name, path in files(root, ("lib", "sync", "bin"), (".c", ".h")):
        own = rank_of(name, base)
        for number, line in enumerate(read(path).split("\n"), 1):
            m = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
            if not m:
                continue
            for place in (os.path.dirname(name), "lib", "sync", ""):
                target = os.path.normpath(os.path.join(place, m.group(1)))
                rank = rank_of(target, base)
                if rank is not None and os.path.exists(os.path.join(root, target)):
                    if rank > own:
                        print(
                            "%s:%d: %s may not include %s (%s)"
                            % (name, number, RANK_NAMES[own], target, RANK_NAMES[rank])
                        )
                    break


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
    if os.path.exists(os.path.join(root, "README")):
        yield "README", os.path.join(root, "README")


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
    """Every file of the source folders is named by a local.mk, itself or its folder, so that the tarball has it."""
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
    return set(re.findall(r"^  ([a-z][a-z-]*)(?: |$)", text, re.M))


def check_manual(root, page, overview, *helps):
    """Every verb and long option of the --help texts stands in the manual page and the other way round. A verb that
    the page promises and the command lacks is printed as "later: VERB", and so are options then."""
    text = read(page)
    name = os.path.basename(page)
    offered = options(read(overview)).union(*(options(read(path)) for path in helps))
    described = set(re.findall(r"\bFl -([a-z][a-z0-9-]*)", text))
    verbs = verbs_of_help(read(overview))
    named = set(re.findall(r"^\.It Cm ([a-z][a-z-]*)", text, re.M))
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
