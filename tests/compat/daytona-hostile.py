#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What strangers and tenants may try against the Daytona API, by plain HTTP and raw sockets; every
JSON answer is held against the vendor's own descriptions, where these are at hand. argv: URL, key,
the folder of api.openapi.yaml and toolbox.openapi.yaml or ""."""
import base64
import json
import os
import socket
import struct
import sys
import urllib.error
import urllib.parse
import urllib.request

from openapi import checks, load

URL, KEY, SPECS = sys.argv[1:4]
HOST, PORT = URL.split("//")[1].split(":")
count = failed = 0


def result(name, ok, got=""):
    global count, failed
    count += 1
    failed += not ok
    print("%sok %d - %s" % ("" if ok else "not ", count, name))
    if not ok:
        print("# got: %r" % (got,))


def call(verb, path, body=None, headers=None, key=KEY):
    h = dict(headers or {})
    if key:
        h["Authorization"] = "Bearer " + key
    if isinstance(body, (dict, list)):
        body = json.dumps(body).encode()
        h.setdefault("Content-Type", "application/json")
    req = urllib.request.Request(URL + path, data=body, method=verb, headers=h)
    try:
        with urllib.request.urlopen(req, timeout=60) as r:
            return r.status, r.read(), dict(r.headers)
    except urllib.error.HTTPError as e:
        return e.code, e.read(), dict(e.headers)


def create(**more):
    s, b, _ = call("POST", "/sandbox", more)
    assert s == 200, b
    return json.loads(b)


def shape(name, answer, status, toolbox=False):
    """An error in the vendor's words."""
    s, b, _ = answer
    try:
        o = json.loads(b)
        ok = s == status and o["statusCode"] == status and o["message"] and o["path"]
        ok = ok and ("source" in o if toolbox else "error" in o)
    except (ValueError, KeyError, TypeError):
        ok = False
    result(name, ok, (s, b))


class Described:
    """Calls, each held against its description."""

    def __init__(self, spec, prefix=""):
        self.spec, self.prefix = spec, prefix

    def __call__(self, name, verb, path, route, body=None, headers=None):
        status, data, _ = call(verb, self.prefix + path, body, headers)
        doc = self.spec["paths"][route][verb.lower()]["responses"].get(str(status))
        value = None
        if doc is None:
            result("as described: " + name, False, (status, data))
            return None
        content = doc.get("content", {})
        wrong = None
        kind = next(iter(content), None)
        if kind and "json" in kind or kind == "*/*":
            value = json.loads(data)
            wrong = checks(self.spec, content[kind]["schema"], value)
        result("as described: " + name, wrong is None, (status, wrong, data[:300]))
        return value


def described_control(spec):
    d = Described(spec)
    one = "/sandbox/{sandboxIdOrName}"
    box = d("create", "POST", "/sandbox", "/sandbox", {"name": "spec", "labels": {"k": "v"}})
    at = "/sandbox/" + box["id"]
    d("get", "GET", at, one)
    d("list", "GET", "/sandbox?limit=5", "/sandbox")
    d("the older list", "GET", "/sandbox/paginated?limit=5", "/sandbox/paginated")
    d("labels", "PUT", at + "/labels", one + "/labels", {"labels": {"a": "b"}})
    for word in ("autostop", "autoarchive", "autodelete"):
        d(word, "POST", "%s/%s/100" % (at, word), "%s/%s/{interval}" % (one, word))
    d("public", "POST", at + "/public/true", one + "/public/{isPublic}")
    d("last activity", "POST", at + "/last-activity", "/sandbox/{sandboxId}/last-activity")
    d("toolbox url", "GET", at + "/toolbox-proxy-url", "/sandbox/{sandboxId}/toolbox-proxy-url")
    for word in ("stop", "archive", "start", "pause", "start"):
        d(word, "POST", at + "/" + word, one + "/" + word)
    d("preview", "GET", at + "/ports/80/preview-url", one + "/ports/{port}/preview-url")
    s = d("signed preview", "GET", at + "/ports/80/signed-preview-url",
          one + "/ports/{port}/signed-preview-url")
    d("expire", "POST", at + "/ports/80/signed-preview-url/" + s["token"] + "/expire",
      one + "/ports/{port}/signed-preview-url/{token}/expire")
    ssh = d("ssh access", "POST", at + "/ssh-access?expiresInMinutes=5", one + "/ssh-access")
    d("ssh validate", "GET", "/sandbox/ssh-access/validate?token=" + ssh["token"],
      "/sandbox/ssh-access/validate")
    d("ssh revoke", "DELETE", at + "/ssh-access", one + "/ssh-access")
    if call("POST", at + "/snapshot", {"name": "spec snap"})[0] == 200:
        fork = d("fork", "POST", at + "/fork", one + "/fork", {"name": "spec fork"})
        d("forks", "GET", at + "/forks", one + "/forks")
        d("parent", "GET", "/sandbox/spec%20fork/parent", one + "/parent")
        d("ancestors", "GET", "/sandbox/spec%20fork/ancestors", one + "/ancestors")
        call("DELETE", "/sandbox/" + fork["id"])
        d("snapshot", "POST", at + "/snapshot", one + "/snapshot", {"name": "spec snap 2"})
        d("snapshots", "GET", "/snapshots?limit=1", "/snapshots")
        d("one snapshot", "GET", "/snapshots/spec%20snap", "/snapshots/{id}")
        d("delete a snapshot", "DELETE", "/snapshots/spec%20snap", "/snapshots/{id}")
        d("delete another", "DELETE", "/snapshots/spec%20snap%202", "/snapshots/{id}")
    return d, box


def described_toolbox(spec, box):
    d = Described(spec, "/toolbox/" + box["id"])
    d("execute", "POST", "/process/execute", "/process/execute", {"command": "echo x >f"})
    d("code-run", "POST", "/process/code-run", "/process/code-run",
      {"code": "print(1)", "language": "python"})
    d("home", "GET", "/user-home-dir", "/user-home-dir")
    d("work dir", "GET", "/work-dir", "/work-dir")
    d("version", "GET", "/version", "/version")
    d("files", "GET", "/files", "/files")
    d("info", "GET", "/files/info?path=f", "/files/info")
    d("search", "GET", "/files/search?path=.&pattern=f", "/files/search")
    d("find", "GET", "/files/find?path=.&pattern=x", "/files/find")
    d("replace", "POST", "/files/replace", "/files/replace",
      {"files": ["f", "no"], "pattern": "x", "newValue": "y"})
    d("folder", "POST", "/files/folder?path=d&mode=755", "/files/folder")
    d("permissions", "POST", "/files/permissions?path=f&mode=600", "/files/permissions")
    d("move", "POST", "/files/move?source=f&destination=g", "/files/move")
    form = (b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"n\"\r\n\r\nhi"
            b"\r\n--b--\r\n")
    d("upload", "POST", "/files/upload?path=up", "/files/upload", form,
      {"Content-Type": "multipart/form-data; boundary=b"})
    d("download", "GET", "/files/download?path=up", "/files/download")
    d("delete", "DELETE", "/files?path=d&recursive=true", "/files")
    d("ports", "GET", "/port", "/port")
    d("port in use", "GET", "/port/1/in-use", "/port/{port}/in-use")
    s, one = "/process/session", "/process/session/{sessionId}"
    d("session", "POST", s, s, {"sessionId": "s"})
    run = d("session exec", "POST", s + "/s/exec", one + "/exec", {"command": "echo x"})
    d("session exec async", "POST", s + "/s/exec", one + "/exec",
      {"command": "read x", "runAsync": True})
    d("sessions", "GET", s, s)
    d("one session", "GET", s + "/s", one)
    at = s + "/s/command/" + run["cmdId"]
    d("session command", "GET", at, one + "/command/{commandId}")
    d("session logs", "GET", at + "/logs", one + "/command/{commandId}/logs")
    d("session delete", "DELETE", s + "/s", one)
    p, one = "/process/pty", "/process/pty/{sessionId}"
    d("pty", "POST", p, p, {"id": "t", "cols": 80, "rows": 24, "lazyStart": True})
    d("ptys", "GET", p, p)
    d("one pty", "GET", p + "/t", one)
    d("pty resize", "POST", p + "/t/resize", one + "/resize", {"cols": 100, "rows": 40})
    d("pty delete", "DELETE", p + "/t", one)
    call("POST", d.prefix + "/process/execute", {"command": "git init -q -b main r"})
    call("POST", d.prefix + "/process/execute", {"command": "echo 1 >r/f"})
    d("git add", "POST", "/git/add", "/git/add", {"path": "r", "files": ["f"]})
    d("git commit", "POST", "/git/commit", "/git/commit",
      {"path": "r", "message": "m", "author": "a", "email": "e"})
    d("git status", "GET", "/git/status?path=r", "/git/status")
    d("git history", "GET", "/git/history?path=r", "/git/history")
    d("git branch", "POST", "/git/branches", "/git/branches", {"path": "r", "name": "b"})
    d("git branches", "GET", "/git/branches?path=r", "/git/branches")
    d("git checkout", "POST", "/git/checkout", "/git/checkout", {"path": "r", "branch": "b"})
    d("git checkout", "POST", "/git/checkout", "/git/checkout", {"path": "r", "branch": "main"})
    d("git delete", "DELETE", "/git/branches", "/git/branches", {"path": "r", "name": "b"})
    d("git clone", "POST", "/git/clone", "/git/clone", {"url": "/home/daytona/r", "path": "c"})
    d("git pull", "POST", "/git/pull", "/git/pull", {"path": "c"})
    return d


def strangers():
    for name, key in (("no key", None), ("a wrong key", "dtn_wrong_wrong_wrong"),
                      ("half of it", KEY[:-1])):
        shape(name + " is refused", call("GET", "/sandbox", key=key), 401)
    shape("strangers do not learn what there is", call("GET", "/no/such", key="x" * 20), 401)
    shape("what does not exist", call("GET", "/no/such"), 404)
    shape("odd ids", call("GET", "/sandbox/" + urllib.parse.quote("../../etc", safe="")), 404)
    for name, body in (("no JSON", b"{"), ("a list", b"[]"), ("labels of numbers",
                       b'{"labels":{"a":1}}'), ("a negative interval",
                       b'{"autoStopInterval":-3}'), ("a path as snapshot",
                       b'{"snapshot":"../../etc"}'), ("an unknown user", b'{"user":"www-data"}'),
                       ("more memory than there is", b'{"memory":99999999}')):
        shape("create with " + name, call("POST", "/sandbox", body,
              {"Content-Type": "application/json"}), 400)
    for query in ("limit=0", "limit=x", "order=up", "sort=x", "labels=x", "createdAtAfter=now"):
        shape("a list with " + query, call("GET", "/sandbox?" + query), 400)


def tenants(a, b):
    box, other = "/toolbox/" + a["id"], "/toolbox/" + b["id"]
    shape("a toolbox without a key", call("GET", box + "/files", key=None), 401, True)
    shape("with another's token", call("GET", box + "/files", key=None, headers={
        "X-Daytona-Preview-Token": "x" * 32}), 401, True)
    shape("of a sandbox that is not", call("GET", "/toolbox/nope/files"), 404, True)
    call("POST", box + "/process/execute",
         {"command": "ln -s / out; ln -s /etc/shadow sh; echo mine >own"})
    for path in ("out/etc/shadow", "sh", "/etc/shadow", "../../etc/shadow",
                 "out/root/.ssh/id_rsa", "/proc/1/environ"):
        s, data, _ = call("GET", box + "/files/download?path=" + urllib.parse.quote(path))
        result("no way out by " + path, s != 200 or b"root:" not in data or
               os.path.exists("/etc/shadow") and
               open("/etc/shadow", "rb").read() not in data, (s, data[:80]))
    for path in ("/usr/x", "/bin/sh", "out/usr/bin/x"):
        s, data, _ = call("POST", box + "/files/upload?path=" + path, (
            b"--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nx\r\n--b--\r\n"),
            {"Content-Type": "multipart/form-data; boundary=b"})
        result("nothing is written to " + path, s in (400, 403), (s, data))
    result("nothing of one is in the other",
           call("GET", other + "/files/download?path=own")[0] == 404)
    for at, body in (("/process/session", {"sessionId": "../x"}),
                     ("/process/session", {"sessionId": "a/b"}),
                     ("/process/pty", {"id": "a/b"}),
                     ("/process/pty", {"id": "x", "cols": 99999}),
                     ("/git/checkout", {"path": ".", "branch": "--help"}),
                     ("/git/clone", {"path": "x", "url": "--upload-pack=touch /tmp/x"})):
        shape("%s with %s" % (at, body), call("POST", box + at, body), 400, True)
    shape("a session that is a path", call("GET", box + "/process/session/..%2f.."), 404, True)
    shape("a token that is none", call("GET", "/sandbox/ssh-access/validate?token="), 400)
    token = json.loads(call("POST", "/sandbox/" + a["id"] + "/ssh-access")[1])["token"]
    s, data, _ = call("GET", "/sandbox/ssh-access/validate?token=" + token[:-1] + "!")
    result("a token that is nearly one", s == 200 and not json.loads(data)["valid"], data)
    shape("an ssh token is no key", call("GET", "/sandbox", key=token), 401)
    for what in ("22-" + a["id"], "0-" + a["id"], "x-y", "99999-" + a["id"], "22", "22-",
                 "22-" + "x" * 32):
        s, data, _ = call("GET", "/preview/" + what + "/", key=None)
        result("no preview of " + what[:10], s == 401, (s, data))
    token = json.loads(call("GET", "/sandbox/" + b["id"] + "/ports/22/preview-url")[1])["token"]
    s, data, _ = call("GET", "/preview/22-" + a["id"] + "/", key=None,
                      headers={"X-Daytona-Preview-Token": token})
    result("no preview by another's token", s == 401, (s, data))
    for port in ("0", "65536", "x", "22%00"):
        shape("no address of port " + port,
              call("GET", "/sandbox/" + a["id"] + "/ports/" + port + "/preview-url"), 400)
    shape("a NUL in a path", call("GET", box + "/files/info?path=a%00b"), 400)
    shape("a path without end", call("GET", box + "/files/info?path=" + "a/" * 3000), 400, True)


def multiparts(box):
    at = "/toolbox/" + box["id"] + "/files/bulk-upload"
    kind = {"Content-Type": "multipart/form-data; boundary=b"}
    head = b"--b\r\nContent-Disposition: form-data; name=\"files[0].%s\"\r\n\r\n"
    for name, body in (("that breaks off", head % b"path" + b"x"),
                       ("with a file before its path", head % b"file" + b"x\r\n--b--\r\n"),
                       ("that is none", b"\x00" * 100),
                       ("with a NUL in a path", head % b"path" + b"a\x00b\r\n" +
                        head % b"file" + b"x\r\n--b--\r\n"),
                       ("with a path without end", head % b"path" + b"a" * 10000 +
                        b"\r\n--b--\r\n")):
        s, data, _ = call("POST", at, body, kind)
        result("a body " + name, s == 400, (s, data))
    s, data, _ = call("POST", at, head % b"path" + b"/usr/x\r\n" + head % b"file" +
                      b"x\r\n--b--\r\n", kind)
    result("an upload to where nobody writes", s == 400 and "errors" in json.loads(data), data)


def upgrade(path, headers=""):
    """The socket and the status line of a WebSocket's handshake."""
    s = socket.create_connection((HOST, int(PORT)), timeout=20)
    s.sendall(("GET %s HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
               "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n%s\r\n" % (
                   path, base64.b64encode(b"0123456789abcdef").decode(), headers)).encode())
    head = b""
    while b"\r\n\r\n" not in head:
        piece = s.recv(1)
        if not piece:
            break
        head += piece
    return s, head.split(b"\r\n")[0], head


def frame(op, data, fin=True, mask=True, bits=0):
    n = len(data)
    head = bytes([op | (0x80 if fin else 0) | bits])
    m = 0x80 if mask else 0
    head += bytes([m | n]) if n < 126 else bytes([m | 126]) + struct.pack(">H", n) if n < 65536 \
        else bytes([m | 127]) + struct.pack(">Q", n)
    return head + (b"\0\0\0\0" if mask else b"") + data


def read_all(s):
    out = b""
    try:
        while True:
            piece = s.recv(65536)
            if not piece:
                return out
            out += piece
    except OSError:
        return out


def sockets():
    at = "/api/socket.io/?EIO=4&transport=websocket"
    s, line, head = upgrade(at)
    result("a WebSocket's handshake", b"101" in line and
           b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" not in head and b"Sec-WebSocket-Accept:" in head, head)
    s.sendall(frame(1, b'40{"token":"wrong"}'))
    out = read_all(s)
    result("events need a key", b'44{"message":' in out and b'40{"sid"' not in out, out)
    for name, code, data in (
            ("without a mask", 1002, frame(1, b"x", mask=False)),
            ("with reserved bits", 1002, frame(1, b"x", bits=0x40)),
            ("of an unknown kind", 1002, frame(5, b"x")),
            ("that goes on with nothing", 1002, frame(0, b"x")),
            ("of a huge length", 1009, b"\x81\xff\x7f" + b"\xff" * 7 + b"\0\0\0\0"),
            ("that is no text", 1007, frame(1, b"\xff\xfe")),
            ("a long ping", 1002, frame(9, b"x" * 126)),
            ("a close in parts", 1002, frame(8, b"", fin=False))):
        s, line, _ = upgrade(at)
        s.sendall(data)
        out = read_all(s)
        result("a frame " + name, struct.pack(">H", code) in out, out)
    for name, change in (("without a key", ("Sec-WebSocket-Key: ", "X: ")),
                         ("of another version", ("Version: 13", "Version: 8")),
                         ("with a short key", ("Key: M", "Key: "))):
        s = socket.create_connection((HOST, int(PORT)), timeout=20)
        text = ("GET %s HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n" % (
                    at, base64.b64encode(b"0123456789abcdef").decode()))
        s.sendall(text.replace(*change).encode())
        result("a handshake " + name, b" 400 " in s.recv(1000).split(b"\r\n")[0])
        s.close()
    result("no WebSocket", call("GET", "/socket.io/?transport=polling", key=None)[0] == 400)


strangers()
first, second = create(), create()
tenants(first, second)
multiparts(first)
sockets()
if SPECS:
    control, spec_box = described_control(load(SPECS + "/api.openapi.yaml"))
    described_toolbox(load(SPECS + "/toolbox.openapi.yaml"), spec_box)
    control("delete", "DELETE", "/sandbox/" + spec_box["id"], "/sandbox/{sandboxIdOrName}")
else:
    count += 1
    print("ok %d - as described # SKIP the vendor's descriptions or python3-yaml are not here"
          % count)
for box in (first, second):
    result("delete", call("DELETE", "/sandbox/" + box["id"])[0] == 200)
print("1..%d" % count)
sys.exit(1 if failed else 0)
