# SPDX-License-Identifier: MIT
"""Runs a command on a terminal of its own and answers its question.

    onterm.py ANSWER COMMAND [ARG]...

Waits for "[y/N] ", types ANSWER and Enter (^C for the answer "INT"), prints what the command
printed and ends with its exit status; 97 when it ended without asking.
"""
import os
import pty
import select
import signal
import sys
import time

answer, argv = sys.argv[1], sys.argv[2:]
pid, fd = pty.fork()
if pid == 0:
    os.execvp(argv[0], argv)
out, asked, until = b"", False, time.monotonic() + 60
while time.monotonic() < until:
    if not select.select([fd], [], [], 1)[0]:
        continue
    try:
        chunk = os.read(fd, 4096)
    except OSError:
        chunk = b""
    if not chunk:
        break
    out += chunk
    if not asked and out.rstrip(b"\r\n").endswith(b"[y/N] "):
        asked = True
        os.write(fd, b"\x03" if answer == "INT" else answer.encode() + b"\n")
else:
    os.kill(pid, signal.SIGKILL)
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.stdout.write(out.decode(errors="replace").replace("\r\n", "\n"))
sys.exit(status if asked else 97)
