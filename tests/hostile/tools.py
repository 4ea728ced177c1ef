#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A tenant who wants to fell the host with patterns. usage: tools.py SOCKET PID: prints one TAP
line a case; PID is sbhostd, whose life and memory are watched. The session "one" is there, and
"big" holds long lines."""
import http.client
import json
import os
import socket
import sys
import threading
import time

SOCKET, HOST = sys.argv[1], int(sys.argv[2])
# Minutes of work for any engine: so many states, and every character goes on with all of them.
SLOW = "[a-x]*" + "[\\x{0}-\\x{10ffff}]{1000}" * 12 + "y"
# What the host may grow by while tenants try; the greps of old took 738 MB and 1.84 GB.
GROWTH_KB = 64 << 10
seen = 0
calls = 0
lock = threading.Lock()


def case(name, good, detail=""):
    global seen
    seen += 1
    print("%sok %d - %s" % ("" if good else "not ", seen, name), flush=True)
    if not good and detail:
        print("# %s" % str(detail)[:300], flush=True)


def connect():
    c = http.client.HTTPConnection("localhost")
    c.sock = socket.socket(socket.AF_UNIX)
    c.sock.settimeout(100)
    c.sock.connect(SOCKET)
    return c


def request(c, verb, **fields):
    c.request(
        "POST",
        "/rpc.v1.SandboxService/" + verb,
        json.dumps(fields),
        {"Content-Type": "application/json"},
    )


def rpc(verb, **fields):
    c = connect()
    request(c, verb, **fields)
    r = json.loads(c.getresponse().read())
    c.close()
    return r


def tool_fields(name, session, params, ms=0):
    global calls
    with lock:
        calls += 1
        n = calls
    fields = {"SessionID": session, "ToolCallID": "t%d-%d" % (os.getpid(), n)}
    fields.update(ToolName=name, Params=params)
    if ms:
        fields["Resources"] = {"Timeout": ms * 1000000}
    return fields


def tool(name, session="one", ms=20000, **params):
    try:
        return rpc("ExecuteTool", **tool_fields(name, session, params, ms))
    except (OSError, http.client.HTTPException, ValueError) as e:
        return {"broken": repr(e)}


def status(pid, field):
    try:
        with open("/proc/%d/status" % pid) as f:
            for line in f:
                if line.startswith(field + ":"):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0


def workers():
    """The processes that work on files for the host, and that still are processes."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as f:
                name, rest = f.read().rsplit(")", 1)
        except OSError:
            continue
        if name.endswith("(sb-files") and rest.split()[0] != "Z" and int(rest.split()[1]) == HOST:
            found.append(int(pid))
    return found


def until(cond, seconds=20):
    end = time.monotonic() + seconds
    while not cond():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def active():
    return rpc("GetSession", SessionID="big").get("Session", {}).get("ActiveTools", -1)


def lives(what):
    case("the host lives after " + what, status(HOST, "VmRSS") > 0)
    peak = status(HOST, "VmHWM")
    case("and has not grown", 0 < peak - START < GROWTH_KB or peak == START, "%d KB" % peak)


def answered(r):
    return "broken" not in r and ("Content" in r or "code" in r)


START = status(HOST, "VmHWM")


def bombs():
    """Each is answered, and the host lives."""
    nested = "(" * 1700 + "a" + ")" * 1700
    for name, pattern in (
        ("1,700 nested parentheses", nested),
        ("2,000 opened ones", "(" * 2000),
        ("20 stacked +", "a" + "+" * 20),
        ("20 stacked groups with +", "(" * 20 + "a" + ")+" * 20),
        ("counts in counts", "((a{1,100}){1,100}){1,100}"),
        ("counts beside counts", "a{1000}" * 400),
        ("a class of everything", "[\\x{0}-\\x{10ffff}]{1000}" * 50),
        ("backtracking of old", "(x+x+)+y"),
        ("alternatives that are the same", "(x|x|x|xx)*y"),
        ("4,096 alternatives", "|".join("ab" for _ in range(1365))),
    ):
        r = tool("grep", "big", ms=2000, pattern=pattern)
        case("grep answers " + name, answered(r), r)
    lives("the patterns")
    for name, pattern in (
        ("a chain of **/", "**/" * 600 + "nothere"),
        ("a chain of **/*", "**/*/" * 300 + "nothere"),
        ("many stars", "*a" * 1000 + "b"),
        ("stars and stars", "*" * 4000),
    ):
        r = tool("glob", "one", pattern=pattern)
        case("glob answers " + name, answered(r), r)
        r = tool("grep", "one", pattern="x", include=pattern.replace("/", "") or "*")
        case("and grep with it as include", answered(r), r)
    lives("the globs")


def time_limit():
    begin = time.monotonic()
    r = tool("grep", "big", ms=300, pattern=SLOW)
    case("a time limit ends a slow grep", r.get("code") == "deadline_exceeded", r)
    print("# it took %.0f ms" % ((time.monotonic() - begin) * 1000))
    case("its worker is gone", until(lambda: active() == 0))


def start_slow():
    """A grep of minutes under way; its connection."""
    c = connect()
    request(c, "ExecuteTool", **tool_fields("grep", "big", {"pattern": SLOW}))
    if not until(lambda: active() > 0):
        case("a slow grep begins", False)
    busy = until(lambda: any(ticks(p) > 5 for p in workers()))
    case("a slow grep is under way in a worker", busy)
    return c


def ticks(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))
    except OSError:
        return 0


def hang_up():
    c = start_slow()
    begin = time.monotonic()
    c.sock.close()
    c.close()
    case("a hang-up ends a slow grep", until(lambda: active() == 0))
    print("# it took %.0f ms" % ((time.monotonic() - begin) * 1000))


def pause():
    c = start_slow()
    busy = [p for p in workers() if ticks(p) > 5]
    begin = time.monotonic()
    r = rpc("PauseSession", SessionID="big")
    took = time.monotonic() - begin
    case("a pause does not wait for a slow grep", "code" not in r, r)
    print("# it took %.0f ms" % (took * 1000))
    r = json.loads(c.getresponse().read())
    c.close()
    case("the grep says that the session is paused", "paused" in r.get("message", ""), r)
    case("its worker is gone", until(lambda: not set(busy) & set(workers())))
    rpc("ResumeSession", SessionID="big")


def many():
    """Thirty at once: they take turns, within bounded memory."""
    peak = [0]
    stop = threading.Event()

    def watch():
        while not stop.is_set():
            peak[0] = max(peak[0], sum(status(p, "VmRSS") for p in workers()))
            time.sleep(0.02)

    def one(out):
        out.append(tool("grep", "big", ms=1500, pattern=SLOW))

    out = []
    th = [threading.Thread(target=one, args=(out,)) for _ in range(30)]
    w = threading.Thread(target=watch)
    w.start()
    for t in th:
        t.start()
    r = tool("ls", "one")
    case("meanwhile another session is served", "Content" in r, r)
    for t in th:
        t.join()
    stop.set()
    w.join()
    codes = {r.get("code", "fine") for r in out}
    case("30 greps end by their time limit", codes == {"deadline_exceeded"}, codes)
    case("their workers keep to their memory", 0 < peak[0] < 4 * 512 << 10, "%d KB" % peak[0])
    print("# workers together: %d KB at most" % peak[0])
    lives("30 greps at once")


def term():
    c = start_slow()
    begin = time.monotonic()
    os.kill(HOST, 15)
    case("a slow grep does not keep the host from its end", until(lambda: gone(HOST), 20))
    print("# it took %.0f ms" % ((time.monotonic() - begin) * 1000))
    case("no worker outlives it", until(lambda: not workers()))
    c.close()


def gone(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


for part in (bombs, time_limit, hang_up, pause, many, term):
    part()
print("1..%d" % seen)
