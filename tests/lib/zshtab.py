# SPDX-License-Identifier: MIT
"""Types words into zsh on a terminal, then Tab and Enter, and prints what the command was given.

    zshtab.py SCRIPTS PROGRAM "PROGRAM WORD..."

SCRIPTS holds PROGRAM.zsh. While it completes, zsh sees the real program on PATH; the one that runs
in the end is a function that writes down its words.
"""
import os
import pty
import select
import signal
import sys
import tempfile
import time

scripts, program, line = sys.argv[1:4]
deadline = time.monotonic() + 60


def wait_for(fd, seen, mark):
    """Reads until `mark` has come; what came is kept, for a failure to show."""
    while mark not in seen[0]:
        if time.monotonic() > deadline:
            raise SystemExit("zsh does not answer: %r" % seen[0][-2000:])
        if select.select([fd], [], [], 1)[0]:
            try:
                seen[0] += os.read(fd, 4096)
            except OSError:
                raise SystemExit("zsh ended: %r" % seen[0][-2000:])
    seen[0] = seen[0].split(mark, 1)[1]


with tempfile.TemporaryDirectory() as home:
    out = os.path.join(home, "out")
    with open(os.path.join(home, ".zshrc"), "w") as f:
        f.write(
            "PS1='rea''dy> '\nautoload -Uz compinit\ncompinit -u -D\n"
            "unsetopt beep\nzstyle ':completion:*' menu no\n"
            "source %s/%s.zsh\n" % (scripts, program)
            + "record() { print -r -- \"${(j: :)@[2,-1]}\" >%s; }\n" % out
            + "accept() { BUFFER=\"record $BUFFER\"; zle accept-line; }\n"
            "zle -N accept\nbindkey '^M' accept\n"
        )
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(ZDOTDIR=home, TERM="dumb")
        os.execvp("zsh", ["zsh", "-d", "-i"])
    try:
        seen = [b""]
        wait_for(fd, seen, b"ready> ")
        os.write(fd, line.encode() + b"\t\r")
        wait_for(fd, seen, b"ready> ")
        print(open(out).read().strip())
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(fd)
