#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stands before a host with the E2B API, writes down each request, checks it against the vendor's
own descriptions, and plays the errors that a service has.

usage: e2bproxy.py PORT-FILE UPSTREAM-URL RECORD FAULTS [SPEC-DIR]

RECORD gets a JSON object a line: method, target, headers, body, and "wrong" where the request is
none of SPEC-DIR (openapi.yml, process.proto, envd.yaml). FAULTS is read for each request: a JSON
list of rules, of which the first that fits and has some left is played, {"match": REGEX of
"METHOD TARGET", "times": N, "skip": N} with one of
  "status": N, "headers": {}, "body": TEXT   an answer instead
  "cut": true                                no answer, the connection closes; it was not passed on
  "after": true                              passed on, but the answer is lost
  "half": N                                  the answer breaks off behind N bytes
  "stall": true                              no answer until the client goes
  "kill": true                               the sandbox of the request is killed first
SIGUSR1 cuts every connection that there is."""
import base64
import http.client
import json
import os
import re
import signal
import socket
import sys
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT_FILE, UPSTREAM, RECORD, FAULTS = sys.argv[1:5]
SPECS = sys.argv[5] if len(sys.argv) > 5 else None
TO = urllib.parse.urlsplit(UPSTREAM)
LOCK = threading.Lock()
OPEN = set()
USED = {}


class Openapi:
    """Enough of OpenAPI for what a client sends: paths, queries, bodies, types."""

    def __init__(self, path):
        import yaml

        with open(path, encoding="utf-8") as f:
            self.doc = yaml.safe_load(f)

    def ref(self, node):
        while isinstance(node, dict) and "$ref" in node:
            at = self.doc
            for part in node["$ref"][2:].split("/"):
                at = at[part]
            node = at
        return node

    def operation(self, method, path):
        for name, item in self.doc["paths"].items():
            pattern = "".join(
                "[^/]+" if p.startswith("{") else re.escape(p)
                for p in re.split(r"(\{[^}]+\})", name)
            )
            if re.fullmatch(pattern, path) and method.lower() in item:
                op = item[method.lower()]
                return item.get("parameters", []) + op.get("parameters", []), op
        return None, None

    def check_value(self, schema, value, where):
        schema = self.ref(schema)
        if value is None and schema.get("nullable"):
            return []
        wrong = []
        for part in schema.get("allOf", []):
            wrong += self.check_value(part, value, where)
        for key in ("oneOf", "anyOf"):
            if key in schema and all(self.check_value(p, value, where) for p in schema[key]):
                wrong.append("%s fits none of %s" % (where, key))
        kind = schema.get("type") or ("object" if "properties" in schema else None)
        types = {
            "object": dict,
            "array": list,
            "string": str,
            "integer": int,
            "number": (int, float),
            "boolean": bool,
        }
        if kind in types and (
            not isinstance(value, types[kind])
            or (isinstance(value, bool) and kind in ("integer", "number"))
        ):
            return wrong + ["%s is no %s" % (where, kind)]
        if "enum" in schema and value not in schema["enum"]:
            wrong.append("%s: %r is none of %s" % (where, value, schema["enum"]))
        if "minimum" in schema and value < schema["minimum"]:
            wrong.append("%s is less than %s" % (where, schema["minimum"]))
        if "maximum" in schema and value > schema["maximum"]:
            wrong.append("%s is more than %s" % (where, schema["maximum"]))
        if kind == "array":
            for i, item in enumerate(value):
                wrong += self.check_value(schema.get("items", {}), item, "%s[%d]" % (where, i))
        if kind == "object":
            known = schema.get("properties", {})
            rest = schema.get("additionalProperties", not known)
            wrong += [
                "%s lacks %s" % (where, k) for k in schema.get("required", []) if k not in value
            ]
            for key, item in value.items():
                if key in known:
                    wrong += self.check_value(known[key], item, "%s.%s" % (where, key))
                elif rest is False:
                    wrong.append("%s has no member %s" % (where, key))
                elif isinstance(rest, dict):
                    wrong += self.check_value(rest, item, "%s.%s" % (where, key))
        return wrong

    def check_query(self, params, query):
        params = [self.ref(p) for p in params]
        known = {p["name"]: p for p in params if p["in"] == "query"}
        wrong = ["query %s is not known" % k for k in query if k not in known]
        for name, p in known.items():
            schema = self.ref(p.get("schema", {}))
            if name not in query:
                wrong += ["query %s is missing" % name] if p.get("required") else []
                continue
            value = query[name]
            if schema.get("type") == "integer":
                value = int(value) if value.isdigit() else value
            elif schema.get("type") == "array":
                value = value.split(",")
            wrong += self.check_value(schema, value, "query " + name)
        return wrong

    def check(self, method, path, query, headers, body):
        params, op = self.operation(method, path)
        if op is None:
            return ["there is no %s %s" % (method, path)]
        wrong = self.check_query(params, query)
        content = self.ref(op.get("requestBody") or {}).get("content", {})
        kind = (headers.get("content-type") or "").split(";")[0]
        if content and body:
            if kind not in content:
                wrong.append("content type %r is none of %s" % (kind, sorted(content)))
            elif kind == "application/json":
                wrong += self.check_value(content[kind]["schema"], json.loads(body), "body")
        elif not content and body:
            wrong.append("a body where there is none")
        elif self.ref(op.get("requestBody") or {}).get("required"):
            wrong.append("the body is missing")
        return wrong


class Proto:
    """Messages of a .proto file as proto3's JSON has them."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            text = re.sub(r"//[^\n]*", "", f.read())
        self.messages, self.enums, self.rpcs = {}, {}, {}
        for name, stream, kind in re.findall(r"rpc (\w+)\((stream )?(\w+)\)", text):
            self.rpcs[name] = (bool(stream), kind)
        words = re.findall(r"[\w.]+|[<>{}=;,]|map<[^>]*>", text)
        self.body(words, 0, None, None)

    def body(self, w, i, name, one):
        fields = self.messages.setdefault(name, {}) if name else None
        while i < len(w) and w[i] != "}":
            if w[i] == "message":
                i = self.body(w, i + 3, w[i + 1], None) + 1
            elif w[i] == "enum":
                j = w.index("}", i)
                self.enums[w[i + 1]] = [x for x in w[i + 3 : j] if re.match(r"[A-Z_]+$", x)]
                i = j + 1
            elif w[i] == "oneof" and name:
                i = self.body(w, i + 3, name, w[i + 1]) + 1
            elif w[i] == "map" and name:
                fields[self.camel(w[i + 6])] = ("map", w[i + 4], None)
                i += 10
            elif name and i + 3 < len(w) and w[i] in ("optional", "repeated"):
                fields[self.camel(w[i + 2])] = (w[i], w[i + 1], one)
                i += 6
            elif name:
                fields[self.camel(w[i + 1])] = ("", w[i], one)
                i += 5
            elif w[i] == "service":
                i = w.index("message", i)
            else:
                i += 1
        return i

    @staticmethod
    def camel(name):
        return re.sub(r"_(\w)", lambda m: m.group(1).upper(), name)

    def check_value(self, kind, value, where):
        if kind in self.messages:
            return self.check(kind, value, where)
        if kind in self.enums:
            return [] if value in self.enums[kind] else ["%s: %r" % (where, value)]
        if kind == "bytes":
            try:
                base64.b64decode(value, validate=True)
                return []
            except (ValueError, TypeError):
                return ["%s is not base64" % where]
        ok = {"string": str, "bool": bool, "uint32": int, "sint32": int}.get(kind)
        return [] if ok and isinstance(value, ok) else ["%s is no %s" % (where, kind)]

    def check(self, name, value, where):
        if not isinstance(value, dict):
            return ["%s is no object" % where]
        wrong, ones = [], {}
        for key, item in value.items():
            if key not in self.messages[name]:
                wrong.append("%s: %s has no member %s" % (where, name, key))
                continue
            how, kind, one = self.messages[name][key]
            if one:
                ones[one] = ones.get(one, 0) + 1
            for v in item if how == "repeated" else item.values() if how == "map" else [item]:
                wrong += self.check_value(kind, v, "%s.%s" % (where, key))
        return wrong + ["%s: several of %s" % (where, k) for k, n in ones.items() if n > 1]


API = Openapi(SPECS + "/openapi.yml") if SPECS else None
ENVD = Openapi(SPECS + "/envd.yaml") if SPECS else None
PROCESS = Proto(SPECS + "/process.proto") if SPECS else None


def check_process(method, headers, body):
    if method not in PROCESS.rpcs:
        return ["process.Process has no %s" % method]
    wrong = []
    if headers.get("connect-protocol-version") != "1":
        wrong.append("Connect-Protocol-Version is missing")
    stream = method in ("Start", "Connect")
    want = "application/connect+json" if stream else "application/json"
    if headers.get("content-type") != want:
        wrong.append("content type %s must be %s" % (headers.get("content-type"), want))
    if stream:
        if len(body) < 5 or body[0] != 0 or int.from_bytes(body[1:5], "big") != len(body) - 5:
            return wrong + ["the body is not one envelope"]
        body = body[5:]
    return wrong + PROCESS.check(PROCESS.rpcs[method][1], json.loads(body), "body")


def check(method, target, headers, body):
    if not SPECS:
        return []
    parts = urllib.parse.urlsplit(target)
    query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
    try:
        if parts.path.startswith("/process.Process/"):
            wrong = check_process(parts.path.split("/")[2], headers, body)
        elif parts.path in ("/files", "/health"):
            wrong = ENVD.check(method, parts.path, query, headers, body)
        else:
            wrong = API.check(method, parts.path, query, headers, body)
            return wrong + ([] if "x-api-key" in headers else ["X-API-Key is missing"])
    except ValueError as e:
        return ["the body is not JSON: %s" % e]
    for name in ("e2b-sandbox-id", "e2b-sandbox-port", "x-access-token"):
        if name not in headers:
            wrong.append("%s is missing" % name)
    return wrong


def rule_for(line):
    with LOCK:
        with open(FAULTS, encoding="utf-8") as f:
            rules = json.load(f)
        for rule in rules:
            if not re.search(rule["match"], line):
                continue
            key = json.dumps(rule, sort_keys=True)
            USED[key] = USED.get(key, 0) + 1
            first = rule.get("skip", 0)
            if first < USED[key] <= first + rule.get("times", 1 << 30):
                return rule
    return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        OPEN.add(self.connection)

    def finish(self):
        OPEN.discard(self.connection)
        super().finish()

    def log_message(self, *args):
        pass

    def body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            out = b""
            while True:
                n = int(self.rfile.readline().split(b";")[0], 16)
                out += self.rfile.read(n)
                self.rfile.readline()
                if n == 0:
                    return out
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def away(self):
        self.close_connection = True

    def kill(self):
        box = self.headers.get("E2b-Sandbox-Id") or self.path.split("/")[2]
        c = http.client.HTTPConnection(TO.hostname, TO.port)
        c.request("DELETE", "/sandboxes/" + box, headers={"X-API-Key": os.environ["E2B_API_KEY"]})
        c.getresponse().read()
        c.close()

    def play(self, rule):
        """True when there is nothing more to do."""
        if rule.get("kill"):
            self.kill()
        if rule.get("stall"):
            while self.connection.recv(65536):
                pass
        if rule.get("cut") or rule.get("stall"):
            self.away()
            return True
        if "status" in rule:
            text = rule.get("body", '{"code": %d, "message": "played"}' % rule["status"]).encode()
            self.send_response(rule["status"])
            for k, v in rule.get("headers", {}).items():
                self.send_header(k, v)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
            return True
        return False

    def any(self):
        body = self.body()
        headers = {k.lower(): v for k, v in self.headers.items()}
        wrong = check(self.command, self.path, headers, body)
        with LOCK, open(RECORD, "a", encoding="utf-8") as f:
            json.dump(
                {
                    "method": self.command,
                    "target": self.path,
                    "headers": headers,
                    "body": body.decode("latin-1"),
                    "wrong": wrong,
                },
                f,
            )
            f.write("\n")
        rule = rule_for("%s %s" % (self.command, self.path))
        if rule and self.play(rule):
            return
        self.forward(body, rule or {})

    def forward(self, body, rule):
        c = http.client.HTTPConnection(TO.hostname, TO.port)
        keep = {
            k: v
            for k, v in self.headers.items()
            if k.lower() not in ("transfer-encoding", "connection")
        }
        keep["Content-Length"] = str(len(body))
        try:
            c.request(self.command, self.path, body, keep)
            r = c.getresponse()
            if rule.get("after"):
                r.read()
                self.away()
                return
            self.answer(r, rule)
        except (OSError, http.client.HTTPException):
            self.away()
        finally:
            c.close()

    def answer(self, r, rule):
        left = rule.get("half", 1 << 60)
        self.send_response(r.status)
        for k, v in r.getheaders():
            if k.lower() not in ("transfer-encoding", "connection", "date", "server"):
                self.send_header(k, v)
        chunked = r.getheader("Content-Length") is None and r.status != 204
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while left > 0:
            data = r.read1(min(left, 65536))
            if not data:
                break
            left -= len(data)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) if chunked else data)
            self.wfile.flush()
        if left <= 0:
            self.away()
        elif chunked:
            self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = any


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # clients go as they like


def cut_all(*_):
    for s in list(OPEN):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


signal.signal(signal.SIGUSR1, cut_all)
server = Server(("127.0.0.1", 0), Handler)
with open(PORT_FILE + ".new", "w", encoding="utf-8") as out:
    out.write(str(server.server_address[1]))
os.rename(PORT_FILE + ".new", PORT_FILE)
server.serve_forever()
