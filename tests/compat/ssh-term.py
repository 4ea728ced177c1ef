# SPDX-License-Identifier: MIT
"""A person at a terminal: runs the given ssh command with -tt on a pty of its own and looks at the
size that the far side sees, before and after a change, at Ctrl-C and at the exit code."""
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

LIMIT = 40
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:2] + ["-tt"] + sys.argv[2:])
seen = b""


def size(cols, rows):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


def until(text):
    global seen
    end = time.time() + LIMIT
    while text not in seen:
        if time.time() > end or not select.select([fd], [], [], end - time.time())[0]:
            sys.exit("no %r in %r" % (text, seen[-2000:]))
        try:
            piece = os.read(fd, 65536)
        except OSError:
            piece = b""
        if not piece:
            sys.exit("the end instead of %r in %r" % (text, seen[-2000:]))
        seen += piece
    seen = seen[seen.index(text) + len(text) :]


def say(line):
    os.write(fd, line.encode())


size(91, 33)
os.kill(pid, signal.SIGWINCH)
say("PS1=; stty -echo; echo rea''dy\n")
until(b"ready")
# What was changed while it connected may come a moment later.
say("while [ \"$(stty size)\" != '33 91' ]; do sleep 0.05; done; echo first: $(stty size)\n")
until(b"first: 33 91")
size(120, 50)
say("while [ \"$(stty size)\" != '50 120' ]; do sleep 0.05; done; echo second: $(stty size)\n")
until(b"second: 50 120")
say("test -t 0 && test -t 1 && test -t 2 && echo tty: $TERM $(tty) $SSH_TTY\n")
until(b"tty: ")
if "SB_NO_SIGNALS" not in os.environ:
    # In one session with a shell of its own, so that it is surely sleeping by then.
    say("sh -c 'trap \"echo inter\"\"rupted; exit 9\" INT; echo sleep\"\"ing; "
        "while :; do sleep 0.1; done'\n")
    until(b"sleeping")
    say("\x03")
    until(b"interrupted")
say("exit 5\n")
end = time.time() + LIMIT
while time.time() < end:
    try:
        if not os.read(fd, 65536):
            break
    except OSError:
        break
status = os.waitpid(pid, 0)[1]
sys.exit(0 if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 5 else "status %d" % status)
