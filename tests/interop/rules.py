# SPDX-License-Identifier: MIT
"""Exclude rules: the bytes of sbsync-protocol(5), the meaning of gitignore(5), as far as tests
go."""
import re

from wire import Broken, Cursor

FROM_FILE, GITIGNORE, SBSYNCIGNORE, COMMAND, GITEXCLUDE, TRACKED = 1, 2, 3, 4, 5, 6


def to_regex(pattern):
    out, i = b"", 0
    while i < len(pattern):
        if pattern[i : i + 3] == b"**/":
            out, i = out + b"(?:.*/)?", i + 3
        elif pattern[i : i + 2] == b"**":
            out, i = out + b".*", i + 2
        elif pattern[i : i + 1] == b"*":
            out, i = out + b"[^/]*", i + 1
        elif pattern[i : i + 1] == b"?":
            out, i = out + b"[^/]", i + 1
        elif pattern[i : i + 1] == b"\\" and i + 1 < len(pattern):
            out, i = out + re.escape(pattern[i + 1 : i + 2]), i + 2
        else:
            out, i = out + re.escape(pattern[i : i + 1]), i + 1
    return re.compile(out + rb"\Z", re.S)


class Pattern:
    def __init__(self, text):
        self.keep = text.startswith(b"!")
        text = text[1:] if self.keep else text
        self.dirs_only = text.endswith(b"/")
        text = text.rstrip(b"/") if self.dirs_only else text
        self.anchored = b"/" in text
        self.regex = to_regex(text.lstrip(b"/"))

    def matches(self, path, is_dir):
        if self.dirs_only and not is_dir:
            return False
        return self.regex.match(path if self.anchored else path.rpartition(b"/")[2])


class Rules:
    def __init__(self, data):
        c = Cursor(data)
        version = c.u8()
        if version not in (1, 2):
            raise Broken("rules of another version")
        self.fold = version == 2 and c.u8() & 1
        self.lists, self.tracked = [], []
        for _ in range(c.varint()):
            source, at = c.u8(), c.bytes()
            if source == TRACKED:
                self.tracked = [c.bytes() for _ in range(c.varint())]
                continue
            self.lists.append((source, at, [Pattern(c.bytes()) for _ in range(c.varint())]))
        c.end()

    def strongest_first(self, path):
        ups, at = [], path
        while at:
            at = at.rpartition(b"/")[0]
            ups.append(at)
        yield from (v for v in self.lists if v[0] == COMMAND)
        for up in ups:
            for source in (SBSYNCIGNORE, GITIGNORE):
                yield from (v for v in self.lists if v[0] == source and v[1] == up)
        for up in ups:
            yield from (v for v in self.lists if v[0] == GITEXCLUDE and v[1] == up)
        yield from (v for v in self.lists if v[0] == FROM_FILE)
        yield from (v for v in self.lists if v[0] == 0)

    def excluded(self, path, is_dir):
        answer, by = False, None
        for source, at, patterns in self.strongest_first(path):
            inner = path[len(at) + 1 :] if at else path
            if self.fold and source in (GITIGNORE, GITEXCLUDE):
                inner = inner.lower()
            hits = [p for p in patterns if p.matches(inner, is_dir)]
            if hits:
                answer, by = not hits[-1].keep, source
                break
        if by in (None, GITIGNORE, GITEXCLUDE):
            if any(t.startswith(path + b"/") if is_dir else t == path for t in self.tracked):
                return False
            if any(t.endswith(b"/") and path.startswith(t) for t in self.tracked):
                return True
        return answer
