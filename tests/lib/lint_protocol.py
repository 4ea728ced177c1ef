#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares sbsync-protocol(5) with the code that speaks the protocol.

  lint_protocol.py TREE

Prints what the code has and the manual lacks: messages and their numbers, fields, flags, values,
columns, attributes. The manual writes a value as "name (number)" and a field as ".Va name".
"""
import os
import re
import sys

MANUAL = "doc/sbsync-protocol.5"
# Where a list of values is, its prefix, and what the manual writes in place of the name.
ENUMS = [
    ("sync/wire/proto.h", "SB_FEATURE_", {}),
    ("sync/wire/proto.h", "SB_BEGIN_", {}),
    ("sync/wire/proto.h", "SB_SCAN_", {}),
    ("sync/wire/proto.h", "SB_METHOD_", {}),
    ("sync/wire/proto-plan.c", "WANT_", {}),
    ("sync/wire/proto.h", "SB_SENT_", {}),
    ("sync/wire/proto.h", "SB_WHY_", {}),
    ("sync/scan/scan.h", "SB_SKIP_", {}),
    ("sync/scan/rules.h", "SB_RULES_", {}),
    ("sync/replica/commit.h", "SB_DURABLE_", {}),
    ("sync/tree/entry.h", "SB_ENTRY_", {"DIR": "directory", "LINK": "symbolic link"}),
    ("sync/tree/manifest-codec-priv.h", "FORM_", {}),
    ("sync/tree/manifest-codec-priv.h", "KIND_", {}),
    ("sync/tree/diff-codec.c", "ROW_", {}),
    ("sync/codec/pack.h", "SB_PACK_", {}),
]
# Masks, sums and what never travels.
NOT_VALUES = {
    "FORM_ALL", "KIND_ALL", "KIND_TYPE", "ROW_ALL", "ROW_TYPE", "SB_ENTRY_UNHASHED",
    "SB_ENTRY_RACY", "SB_ENTRY_MARK", "SB_PACK_WHOLE", "SB_PACK_PATCH", "SB_PACK_DELTA",
    "SB_PACK_RANGE", "SB_PACK_SPARSE", "SB_RULES_SOURCES",
}
STRUCTS = """sb_hello sb_begin sb_scan_reply sb_commit_req sb_plan_step sb_want sb_commit_result
    sb_listed""".split()
# Members that are not fields of a message by themselves.
NOT_FIELDS = {"n_left", "cap_left", "sig_len", "e", "method", "whole"}


def read(root, name):
    path = os.path.join(root, name)
    return open(path, encoding="utf-8").read() if os.path.exists(path) else ""


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def enums(text, prefix):
    """name -> number of every enumerator with that prefix."""
    out = {}
    for body in re.findall(r"enum\s*\w*\s*\{(.*?)\}", without_comments(text), re.S):
        number = -1
        for item in body.split(","):
            m = re.match(r"\s*(\w+)\s*(?:=\s*(.+?))?\s*$", item, re.S)
            if not m:
                continue
            value = m.group(2)
            if value and re.fullmatch(r"[0-9]+(\s*<<\s*[0-9]+)?", value.strip()):
                number = eval(value)  # a number or a shift of two, as checked
            elif value:
                continue
            else:
                number += 1
            if m.group(1).startswith(prefix):
                out[m.group(1)] = number
    return out


def members(text, struct):
    m = re.search(r"struct %s \{(.*?)\n\};" % struct, without_comments(text), re.S)
    return re.findall(r"(\w+)(?:\[\d+\])?;", m.group(1)) if m else []


def plain(manual):
    """The text without macros, so that a value and its number stand side by side."""
    text = re.sub(r"^\.(It|Li|Va|Pq|Sy|Em|Dq)\b", "", manual, flags=re.M)
    text = re.sub(r"\b(Va|Li)\b", "", text)
    return re.sub(r"\s+", " ", text)


def missing(root):
    manual = read(root, MANUAL)
    text = plain(manual)
    for name, number in enums(read(root, "sync/wire/proto.h"), "SB_MSG_").items():
        if not re.search(r"^\.It %s \(%d\)" % (name[7:], number), manual, re.M):
            yield "message %s (%d)" % (name[7:], number)
    for path, prefix, words in ENUMS:
        found = enums(read(root, path), prefix)
        if not found:
            yield "%s: %s* (is it elsewhere now?)" % (path, prefix)
        for name, number in found.items():
            word = words.get(name[len(prefix) :], name[len(prefix) :].lower())
            if name not in NOT_VALUES and not re.search(
                r"\b%s \(%d[:)]" % (re.escape(word), number), text
            ):
                yield "%s: %s (%d)" % (path, word, number)
    for struct in STRUCTS:
        if not members(read(root, "sync/wire/proto.h"), struct):
            yield "struct %s (is it elsewhere now?)" % struct
        for field in members(read(root, "sync/wire/proto.h"), struct):
            if field not in NOT_FIELDS and not re.search(r"\bVa %s\b" % field, manual):
                yield "field %s of struct %s" % (field, struct)
    columns = enums(read(root, "sync/tree/manifest-codec-priv.h"), "COL_")
    for name in columns:
        if not re.search(r"\b%s\b" % name[4:].lower(), text):
            yield "column %s of a manifest" % name[4:].lower()
    attrs = re.findall(r'"(user\.sbsync\.\w+)"', read(root, "sync/codec/pack-priv.h"))
    for attr in attrs + re.findall(r'"(user\.sbsync\.\w+)"', read(root, "sync/replica/agent.c")):
        if attr not in manual:
            yield "attribute %s" % attr


if __name__ == "__main__":
    for line in missing(sys.argv[1]):
        print("%s: %s is missing" % (MANUAL, line))
