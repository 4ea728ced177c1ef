#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the typed part of the clients from doc/sandbox.proto, with its comments.

    generate.py PROTO ts|python      prints bindings/ts/api.d.ts, or bindings/python/sbsync/api.py

The wire is the proto's JSON as its head describes it: names are the json_name, times are texts,
durations are numbers of nanoseconds, 64-bit integers are numbers up to 2^53.
"""
import re
import sys

TS = {"string": "string", "bool": "boolean", "int32": "number", "int64": "Int64",
      "double": "number", "bytes": "Base64", "google.protobuf.Timestamp": "Time",
      "google.protobuf.Struct": "Record<string, unknown>"}
PY = {"string": "str", "bool": "bool", "int32": "int", "int64": "int", "double": "float",
      "bytes": "str", "google.protobuf.Timestamp": "str",
      "google.protobuf.Struct": "Dict[str, Any]"}


class Field:
    def __init__(self, comment, label, kind, name, json_name):
        self.comment, self.label, self.kind = comment, label, kind
        self.name, self.json_name = name, json_name


def parse(text):
    """Messages as {name: (comment, [Field])} and methods as [(comment, name, in, out, stream)]."""
    messages, methods, comment = {}, [], []
    current = None
    text = re.sub(r"rpc (\w+)\(([^)]*)\)\s*returns", r"rpc \1(\2) returns", text)
    for line in text.split("\n"):
        line = line.strip()
        if line.startswith("//"):
            comment.append(line[2:].strip())
            continue
        if m := re.match(r"message (\w+) \{(\})?", line):
            messages[m.group(1)] = (comment, [])
            current = None if m.group(2) else m.group(1)
        elif m := re.match(r"rpc (\w+)\((\w+)\) returns \((stream )?(\w+)\)", line):
            methods.append((comment, m.group(1), m.group(2), m.group(4), bool(m.group(3))))
        elif m := re.match(r"(optional |repeated )?([\w.]+|map<string, string>) (\w+) = \d+"
                           r" \[json_name = \"(\w+)\"\];", line):
            if not current:
                raise SystemExit("a field outside of a message: " + line)
            messages[current][1].append(
                Field(comment, (m.group(1) or "").strip(), m.group(2), m.group(3), m.group(4)))
        elif line == "}":
            current = None
        elif current and line:
            raise SystemExit("not understood: " + line)
        comment = []
    return messages, methods


def snake(name):
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def ts_type(f):
    if f.kind.startswith("map"):
        return "Record<string, string>"
    kind = TS.get(f.kind, f.kind)
    return kind + "[]" if f.label == "repeated" else kind


def ts_doc(comment, indent):
    if not comment:
        return []
    if len(comment) == 1:
        return ["%s/** %s */" % (indent, comment[0])]
    return [indent + "/**"] + ["%s * %s" % (indent, c) for c in comment] + [indent + " */"]


def typescript(messages, methods):
    out = ["// SPDX-License-Identifier: MIT",
           "// Made by bindings/generate.py from doc/sandbox.proto.", "",
           "/** A number; beyond 2^53 a text, so that no digit is lost. */",
           "export type Int64 = number | string;",
           "/** Bytes as base64. */", "export type Base64 = string;",
           "/** As RFC 3339 has it, in UTC. */", "export type Time = string;", ""]
    for name, (comment, fields) in messages.items():
        out += ts_doc(comment, "")
        given = name.endswith("Request") or name == "Resources"
        out.append("export interface %s {" % name)
        for f in fields:
            out += ts_doc(f.comment, "\t")
            # What was not set is null, or left out; a request leaves out what it likes.
            empty = not given and (f.label == "optional" or (
                f.label != "repeated" and f.kind not in TS and not f.kind.startswith("map"))
                or f.kind.startswith("google.") and f.label != "repeated")
            out.append("\t%s%s: %s%s;" % (f.json_name, "?" if given or empty else "", ts_type(f),
                                          " | null" if empty else ""))
        out += ["}", ""]
    out += ["/** What every call takes besides its request. */", "export interface CallOptions {",
            "\t/** Ends the call, here and in the host. */", "\tsignal?: AbortSignal;",
            "\t/** Milliseconds; told to the host. */", "\ttimeoutMs?: number;", "}", "",
            "/** One answer, or a ConnectError. */",
            "export type Unary<Request, Answer> =",
            "\t(request?: Request, options?: CallOptions) => Promise<Answer>;",
            "/** Messages as they come; leaving the loop ends the call. */",
            "export type Streaming<Request, Answer> =",
            "\t(request?: Request, options?: CallOptions) => AsyncGenerator<Answer, void, void>;",
            "", "/** The procedures of a sandbox host. */", "export interface SandboxService {"]
    for comment, name, request, answer, stream in methods:
        out += ts_doc(comment, "\t")
        out.append("\t%s: %s<%s, %s>;" % (
            name[0].lower() + name[1:], "Streaming" if stream else "Unary", request, answer))
    out += ["}", "", "/** Their names on the wire, and whether they answer with a stream. */",
            "export declare const METHODS: {",
            "\treadonly [name in keyof SandboxService]: readonly [string, boolean];", "};"]
    return "\n".join(out)


def ts_methods(methods):
    out = ["// SPDX-License-Identifier: MIT",
           "// Made by bindings/generate.py from doc/sandbox.proto.", "",
           "export const METHODS = {"]
    for _, name, _, _, stream in methods:
        out.append("\t%s: [\"%s\", %s]," % (name[0].lower() + name[1:], name, str(stream).lower()))
    return "\n".join(out + ["};"])


def py_type(f):
    if f.kind.startswith("map"):
        return "Dict[str, str]"
    kind = PY.get(f.kind, '"%s"' % f.kind)
    kind = "List[%s]" % kind if f.label == "repeated" else kind
    return "Optional[%s]" % kind if f.label == "optional" or f.kind.startswith("google.") else kind


def python(messages, methods):
    out = ["# SPDX-License-Identifier: MIT",
           "# Made by bindings/generate.py from doc/sandbox.proto.",
           '"""The messages and procedures of a sandbox host."""',
           "from typing import Any, Dict, Iterator, List, Optional, TypedDict", ""]
    for name, (comment, fields) in messages.items():
        if name.endswith("Request"):
            continue
        out += ["", "class %s(TypedDict, total=False):" % name]
        out += ["    # " + c for c in comment]
        for f in fields:
            out += ["    # " + c for c in f.comment]
            out.append("    %s: %s" % (f.json_name, py_type(f)))
        if not fields:
            out.append("    pass")
        out.append("")
    out += ["", "class Procedures:",
            '    """Each takes the fields of its request by name; the others are not sent."""',
            "", "    def _call(self, method: str, request: Dict[str, Any], timeout: "
            "Optional[float]) -> Any:", "        raise NotImplementedError", "",
            "    def _stream(",
            "        self, method: str, request: Dict[str, Any], timeout: Optional[float]",
            "    ) -> Iterator[Any]:", "        raise NotImplementedError"]
    for comment, name, request, answer, stream in methods:
        fields = messages[request][1]
        out += ["", "    def %s(" % snake(name), "        self,"]
        out += ["        *,"]
        out += ["        %s: Optional[%s] = None," % (
            f.name + ("_" if f.name in ("from",) else ""),
            re.sub(r"^Optional\[(.*)\]$", r"\1", py_type(f))) for f in fields]
        kind = "Iterator[%s]" % answer if stream else answer
        out += ["        timeout: Optional[float] = None,", "    ) -> %s:" % kind]
        if comment:
            out.append('        """' + "\n        ".join(comment) + '"""')
        out += ["        request = {"]
        out += ["            \"%s\": %s," % (
            f.json_name, f.name + ("_" if f.name == "from" else "")) for f in fields]
        out += ["        }", "        return self._%s(\"%s\", request, timeout)" % (
            "stream" if stream else "call", name)]
    return "\n".join(out)


def main():
    messages, methods = parse(open(sys.argv[1], encoding="utf-8").read())
    made = {"ts": lambda: typescript(messages, methods), "js": lambda: ts_methods(methods),
            "python": lambda: python(messages, methods)}
    print(made[sys.argv[2]]())


if __name__ == "__main__":
    main()
