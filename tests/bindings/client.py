# SPDX-License-Identifier: MIT
"""The Python clients against a real host and real sync sessions; a line for each thing."""
import os
import sys
import tempfile
import threading

from sbsync import Host, HostError, Sync, SyncError

host = Host()


def fails(fn, *args, **kw):
    try:
        fn(*args, **kw)
        return "no error"
    except HostError as e:
        return " ".join(x for x in (e.code, e.reason, e.field) if x)


session = host.create_session(session_id="py", empty=True, labels={"a": "b"})["Session"]
print("session", session["ID"], session["State"], session["Labels"]["a"])
call = {"session_id": "py", "tool_name": "bash",
        "params": {"cmd": 'echo "out\ntwo"; echo err >&2'}}
done = host.execute_tool(**call)
print("tool", done["ExitCode"], done["Content"].split()[0], "err" in done["Content"])
out, code = "", -1
for m in host.execute_tool_stream(**call):
    out += m["Progress"]["Content"] if m.get("Progress") else ""
    code = m["Response"]["ExitCode"] if m.get("Response") else code
print("stream", code, " ".join(sorted(out.split())))
print("fails", fails(host.get_session, session_id="none"))
print("fails", fails(host.create_session, session_id="../x"))
print("fails", fails(host.create_session, quota="many"))
print("fails", fails(Host("unix:/nowhere/sock").health_check))
slow = {"session_id": "py", "tool_name": "bash", "params": {"cmd": "sleep 600"}}
print("timeout", fails(host.execute_tool, timeout=0.2, **slow))
for event in host.stream_events():
    print("event", event["Kind"])
    break
said = []
threads = [threading.Thread(target=lambda: said.append(host.health_check()["Version"]))
           for _ in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
print("threads", len(said))
host.destroy_session(session_id="py")
print("left", len(host.list_sessions()["Sessions"]))

# Sync sessions.
folder = tempfile.TemporaryDirectory()
here = folder.name
local, far = os.path.join(here, "local"), os.path.join(here, "far")
os.mkdir(local)


def write(where, text):
    with open(os.path.join(where, "f"), "w", encoding="utf-8") as f:
        f.write(text)


sync = Sync(sys.argv[1])
write(local, "1")
print("start", sync.start(local, far, name="s")["files_synced"])
write(local, "22")
write(far, "333")
result = sync.sync("s")
print("sync", result["result"], [c["path"] for c in result["conflicts"]])
print("conflicts", [c["path"] for c in sync.conflicts("s")])
print("status", sync.status("s")["state"], [s["name"] for s in sync.sessions()])
print("log", [r["reason"] for r in sync.log("s")])
try:
    sync.sync("nope")
except SyncError as e:
    print("error", e.status, e)
print("stop", sync.stop("s")["result"])
folder.cleanup()
