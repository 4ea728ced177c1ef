#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Manual pages of section 3 from the public headers, which hold the contracts.

    man3.py --out DIR --date "November 16, 2025" HEADER...

Writes a page for each header (lib/sb/env.h is sb_env.3, sync/sbsync/session.h is
sbsync_session.3) and, for each function, a page of its name that leads there. A header is read as
its author laid it out: a comment belongs to the declarations that follow it without a blank line;
one by itself is about the whole.
"""
import argparse
import os
import re
import textwrap

LIBRARY = {"sb": ("libsandbox", "sb_"), "sbsync": ("libsbsync", "sbsync_")}
FUNCTION = re.compile(r"(?:^|[\s*])(sb_\w+)\s*\(")
# Not of interest to readers: guards, includes, how C++ sees it.
NOISE = re.compile(
    r"#(ifndef|endif|include|ifdef|else|define\s+SB_(API|PRINTF|CLEANUP_\w+|\w+_H)\b)"
)


class Item:
    """One or more declarations and the comment before them."""

    def __init__(self, comment, code):
        self.comment, self.code = comment, code

    def functions(self):
        if not self.code or "SB_API" not in self.code:
            return []
        names = []
        for piece in re.split(r";\s*", self.code):
            if "SB_API" in piece:
                found = FUNCTION.search(piece.split("SB_API", 1)[1])
                names += [found.group(1)] if found else []
        return names


def blocks(text):
    """The parts of a header between blank lines, none of which lies in a comment or braces."""
    block, depth, comment = [], 0, False
    for line in text.split("\n"):
        if not line.strip() and depth == 0 and not comment:
            if block:
                yield block
            block = []
            continue
        block.append(line)
        rest = line
        while rest:
            if comment:
                _, end, rest = rest.partition("*/")
                comment = not end
            else:
                code, begin, rest = rest.partition("/*")
                depth += code.count("{") - code.count("}")
                comment = bool(begin)
    if block:
        yield block


def strip_comment(lines):
    text = "\n".join(lines)
    text = re.sub(r"^/\*|\*/\s*$", "", text)
    return textwrap.dedent("\n".join(re.sub(r"^ \* ?", "", x) for x in text.split("\n"))).strip()


def items(text):
    for block in blocks(text):
        comment, code = [], []
        lines = iter(block)
        for line in lines:
            starts = line.startswith("/*")
            if starts and code:
                yield Item(strip_comment(comment), "\n".join(code))
                comment, code = [], []
            if starts:
                comment = [line]
                while "*/" not in line:
                    line = next(lines)
                    comment.append(line)
                continue
            if NOISE.match(line):
                while line.endswith("\\"):
                    line = next(lines)
                continue
            code.append(line)
        if code or comment:
            yield Item(strip_comment(comment), "\n".join(code))


def escape(line):
    line = line.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + line if line[:1] in ".'" else line


def literal(out, code):
    out.append(".Bd -literal -offset indent")
    out.extend(escape(x.expandtabs(8)) for x in code.replace("SB_API ", "").split("\n"))
    out.append(".Ed")


def prose(out, comment):
    """Paragraphs; what is indented or a list stays as it is."""
    for number, part in enumerate(re.split(r"\n\s*\n", comment)):
        if number:
            out.append(".Pp")
        if re.search(r"^(\s{2,}|- )", part, re.M):
            out.append(".Bd -literal")
            out.extend(escape(x) for x in part.split("\n"))
            out.append(".Ed")
            continue
        flat = " ".join(part.split())
        for sentence in re.split(r"(?<=[.:;?])\s+(?=[A-Z`])", flat):
            out.extend(escape(x) for x in textwrap.wrap(sentence, 90, break_on_hyphens=False))
    return out


def page(header, date, names):
    folder, stem = header.split(os.sep)[-2], os.path.basename(header)[:-2]
    library, prefix = LIBRARY[folder]
    title = prefix + stem.replace("-", "_")
    parts = [i for i in items(open(header, encoding="utf-8").read())
             if not i.comment.startswith("SPDX") or i.code]
    functions = [f for i in parts for f in i.functions()]
    about = next((i.comment for i in parts if i.comment), "declarations of " + library)
    about = re.split(r"[.:;]\s|[.:;]$", " ".join(about.split()))[0].rstrip(".")
    out = [
        ".\\\" SPDX-License-Identifier: MIT",
        ".\\\" Made by doc/man3.py from %s/%s.h." % (folder, stem),
        ".Dd " + date,
        ".Dt %s 3" % title.upper(),
        ".Os",
        ".Sh NAME",
    ]
    shown = [title] + [f for f in functions if f != title]
    out += [".Nm %s%s" % (f, " ," if f != shown[-1] else "") for f in shown]
    out.append(".Nd " + escape(about[:1].lower() + about[1:] if about[1:2].islower() else about))
    out += [".Sh LIBRARY", "%s: compile and link with what" % library,
            ".Dq pkg\\-config \\-\\-cflags \\-\\-libs %s" % library, "prints."]
    out += [".Sh SYNOPSIS", ".In %s/%s.h" % (folder, stem), ".Sh DESCRIPTION"]
    for number, item in enumerate(parts):
        if number and not item.code:
            out.append(".Pp")
        if item.code:
            literal(out, item.code)
        if item.comment:
            prose(out, item.comment)
    others = sorted(n for n in names if n != title)
    out.append(".Sh SEE ALSO")
    out += [".Xr %s 3%s" % (n, " ," if n != others[-1] else "") for n in others]
    return title, functions, "\n".join(out) + "\n"


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    args.add_argument("--out", required=True)
    args.add_argument("--date", required=True)
    args.add_argument("headers", nargs="+")
    args = args.parse_args()
    os.makedirs(args.out, exist_ok=True)
    names = [LIBRARY[h.split(os.sep)[-2]][1] + os.path.basename(h)[:-2].replace("-", "_")
             for h in args.headers]
    pages = [page(h, args.date, names) for h in args.headers]
    for title, functions, text in pages:
        for function in functions:
            if function not in names:
                with open(os.path.join(args.out, function + ".3"), "w", encoding="utf-8") as f:
                    f.write(".so man3/%s.3\n" % title)
        with open(os.path.join(args.out, title + ".3"), "w", encoding="utf-8") as f:
            f.write(text)


if __name__ == "__main__":
    main()
