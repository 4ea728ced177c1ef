# SPDX-License-Identifier: MIT
"""Runs a command on a terminal of its own and answers its questions.

    onterm.py [--at PROMPT] ANSWER COMMAND [ARG]...

Waits for "[y/N] ", or for what ends in PROMPT and a blank, types ANSWER and Enter (^C for the
answer "INT") each time, prints what the command printed and ends with its exit status; 97 when it
ended without asking, 98 when it did not end within a minute.
"""
import os
import pty
import select
import signal
import sys
import time

argv = sys.argv[1:]
prompt = b"[y/N] "
if argv[0] == "--at":
    prompt = argv[1].encode() + b" "
    argv = argv[2:]
answer, argv = argv[0], argv[1:]
pid, fd = pty.fork()
if pid == 0:
    os.execvp(argv[0], argv)
out, asked, ended, until = b"", 0, False, time.monotonic() + 60
while time.monotonic() < until:
    if not select.select([fd], [], [], 1)[0]:
        continue
    try:
        chunk = os.read(fd, 4096)
    except OSError:
        chunk = b""
    if not chunk:
        ended = True
        break
    out += chunk
    if len(out) > asked and out[asked:].rstrip(b"\r\n").endswith(prompt):
        asked = len(out)
        os.write(fd, b"\x03" if answer == "INT" else answer.encode() + b"\n")
if not ended:
    os.kill(pid, signal.SIGKILL)
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.stdout.write(out.decode(errors="replace").replace("\r\n", "\n"))
sys.exit(98 if not ended else status if asked else 97)
