# SPDX-License-Identifier: MIT
"""ssh-paramiko.py PORT USER KEY TOKEN: the gateway through python3-paramiko: streams, codes,
terminals, many channels at once, signals by request, files; passwords and names that are tokens."""
import io
import sys
import threading

import paramiko

port, user, key, token = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
count = 0


def check(what, ok):
    global count
    count += 1
    print("%s %d - %s" % ("ok" if ok else "not ok", count, what))


def connect(**how):
    c = paramiko.SSHClient()
    c.set_missing_host_key_policy(paramiko.AutoAddPolicy())
    c.connect("127.0.0.1", port, look_for_keys=False, allow_agent=False, timeout=20, **how)
    return c


def channel(t, command=None):
    ch = t.open_session(timeout=20)
    ch.settimeout(30)
    if command:
        ch.exec_command(command)
    return ch


def rest(ch, read):
    out = b""
    while True:
        piece = read(65536)
        if not piece:
            return out
        out += piece


c = connect(username=user, pkey=paramiko.Ed25519Key.from_private_key_file(key))
t = c.get_transport()
ch = channel(t, "echo out; echo err >&2; cat; exit 5")
ch.sendall(b"in")
ch.shutdown_write()
out = rest(ch, ch.recv)
check("streams by themselves", (out, rest(ch, ch.recv_stderr)) == (b"out\nin", b"err\n"))
check("a code", ch.recv_exit_status() == 5)

ch = channel(t, "trap 'echo got; exit 9' USR1; echo ready; while :; do sleep 0.05; done 2>&-")
check("it runs", ch.recv(6) == b"ready\n")
m = paramiko.Message()
m.add_byte(b"\x62")
m.add_int(ch.remote_chanid)
m.add_string("signal")
m.add_boolean(False)
m.add_string("USR1")
t._send_user_message(m)
check("a signal arrives", ch.recv(4) == b"got\n" and ch.recv_exit_status() == 9)

ch = channel(t)
ch.get_pty("xterm", 100, 40)
ch.invoke_shell()
ch.resize_pty(121, 51)
ch.sendall(b"while [ \"$(stty size)\" != '51 121' ]; do sleep 0.05; done; exit 3\n")
rest(ch, ch.recv)
check("a terminal of a new size", ch.recv_exit_status() == 3)

got = [None] * 20


def one(i):
    x = channel(t, "head -c 300000 /dev/zero | tr '\\0' %c" % (65 + i))
    got[i] = rest(x, x.recv)


threads = [threading.Thread(target=one, args=(i,)) for i in range(20)]
for x in threads:
    x.start()
for x in threads:
    x.join()
check("twenty channels at once", all(got[i] == bytes([65 + i]) * 300000 for i in range(20)))
try:
    many = [channel(t) for _ in range(200)]
    check("channels have an end", False)
except paramiko.ChannelException as e:
    check("channels have an end", e.code in (1, 2, 4))
many = None
try:
    t.request_port_forward("127.0.0.1", 0)
    check("no port of the host is forwarded", False)
except paramiko.SSHException:
    check("no port of the host is forwarded", True)
for where in (("127.0.0.1", 1), ("10.0.0.1", 80), ("nowhere.example", 80), ("/etc/passwd", 1)):
    try:
        t.open_channel("direct-tcpip", where, ("127.0.0.1", 1), timeout=30)
        check("nothing is at %s %d" % where, False)
    except paramiko.ChannelException:
        check("nothing is at %s %d" % where, True)
try:
    t.open_channel("x11", src_addr=("127.0.0.1", 1), timeout=20)
    check("other kinds of channels are refused", False)
except paramiko.ChannelException:
    check("other kinds of channels are refused", True)
c.close()

c = connect(username=user, password=token)
s = c.open_sftp()
data = bytes(range(256)) * 8192
s.putfo(io.BytesIO(data), "pm")
back = io.BytesIO()
s.getfo("pm", back)
check("a file there and back", back.getvalue() == data and s.stat("pm").st_size == len(data))
with s.open("pm", "r+") as f:
    f.seek(1000)
    f.write(b"middle")
    f.seek(999)
    check("a write in the middle", f.read(8) == b"\xe7middle\xee")
s.truncate("pm", 5)
s.chmod("pm", 0o640)
s.utime("pm", (1000, 2000))
st = s.stat("pm")
check("attributes", (st.st_size, st.st_mode & 0o7777, st.st_mtime) == (5, 0o640, 2000))
s.symlink("pm", "pm-link")
kind = s.lstat("pm-link").st_mode & 0o170000
check("a link", s.readlink("pm-link") == "pm" and kind == 0o120000)
s.mkdir("pm-dir")
for i in range(250):
    s.open("pm-dir/f%d" % i, "w").close()
check("a long directory", len(s.listdir("pm-dir")) == 250)
s.posix_rename("pm", "pm-dir/f0")
try:
    s.rename("pm-dir/f1", "pm-dir/f2")
    check("a rename replaces nothing", False)
except IOError:
    check("a rename replaces nothing", True)
for bad in ("nosuch", "nosuch/x", "pm-dir/f3/x", "x" * 5000):
    try:
        s.stat(bad)
        check("%.12s is not there" % bad, False)
    except IOError:
        check("%.12s is not there" % bad, True)
for i in range(250):
    s.remove("pm-dir/f%d" % i)
s.rmdir("pm-dir")
s.remove("pm-link")
check("all of it goes", not [n for n in s.listdir(".") if n.startswith("pm")])
handles = []
try:
    for i in range(400):
        handles.append(s.open("/dev/null"))
    check("open files have an end", False)
except IOError:
    check("open files have an end", len(handles) == 256)
c.close()

for how in (
    dict(username=user, password="x" * 40),
    dict(username=user, password=""),
    dict(username="other", password=token),
    dict(username=user, pkey=paramiko.RSAKey.generate(2048)),
):
    try:
        connect(**how)
        check("a wrong login", False)
    except (paramiko.AuthenticationException, paramiko.SSHException):
        check("a wrong login", True)
print("1..%d" % count)
