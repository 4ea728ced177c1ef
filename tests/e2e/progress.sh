#!/bin/sh
# SPDX-License-Identifier: MIT
# Progress: on a terminal of any width, as JSON, and none where nobody looks.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/tmux.sh"
sbsync=$(cd "${SB_TOP_BUILDDIR:-.}" && pwd)/sbsync
export SBSYNC_STATE_DIR="$scratch/state"
export PATH="$(dirname "$sbsync"):$PATH"

mkdir "$scratch/a"
head -c 6000000 /dev/urandom >"$scratch/a/big"
echo small >"$scratch/a/small"

"$sbsync" mirror --bwlimit 20M "$scratch/a" "$scratch/piped" >/dev/null 2>"$scratch/err"
is "nothing when piped" "$(cat "$scratch/err")" ""
"$sbsync" mirror -q --progress json --bwlimit 8M "$scratch/a" "$scratch/json" \
	2>"$scratch/lines" >/dev/null
check "json: an object a line, bytes in the middle of a file, all of them at the end" \
	python3 -c '
import json, sys
rows = [json.loads(l) for l in open(sys.argv[1])]
moves = [r for r in rows if r["progress"] == "transfer"]
middle = [r for r in moves if 0 < r["bytes"] < 6000000 and r["files"] < 2]
assert middle, moves
assert moves[-1]["bytes"] == moves[-1]["bytes_total"] == 6000006, moves[-1]
assert moves[-1]["files"] == moves[-1]["files_total"] == 2, moves[-1]
hashed = [r for r in rows if r["progress"] == "scan" and r["bytes_total"]]
assert hashed[-1]["bytes"] == hashed[-1]["bytes_total"] >= 6000000, hashed
steps = [r["progress"] for r in rows]
assert steps.index("connect") < steps.index("transfer") < steps.index("commit"), steps
assert all(b["passed_ms"] >= a["passed_ms"] for a, b in zip(rows, rows[1:]))' "$scratch/lines"

terminal 100 10
type_in "sbsync start --bwlimit 200K a ./b"
sees "a wide terminal: bar, per cent, files, bytes, speed, time left" \
	'^transfer \[#+\.+\] [0-9]+% [01]/2 files [0-9.]+ [kM]B of 6\.0 MB [0-9.]+ kB/s [0-9]+s'
on_tmux resize-window -x 30 -y 10
sees "narrow: the short form" '^transfer [0-9]+% [0-9]+s left$'
on_tmux resize-window -x 100 -y 10
sees "and wide again" 'of 6\.0 MB'
press C-z
sees "Ctrl-Z stops it" 'Stopped|Suspended'
type_in "clear; echo again; fg"
sees "it is asked to go on" '^again'
sees "and it goes on" '^transfer .*[0-9]+%'
press C-c
sees "Ctrl-C ends it with a message" 'cancel'
type_in 'echo ended-$?'
sees "and its status" 'ended-1$'
check "nothing is lost" test -f "$scratch/a/big"
check "half a sync is not visible" test ! -e "$scratch/b/big"
finish
