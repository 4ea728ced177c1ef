#!/bin/sh
# SPDX-License-Identifier: MIT
# Patterns and globs of a hostile tenant: the host answers, lives, keeps its memory, and ends what
# it must end, whatever they are.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"
need python3

start_host --storage-backend local-disk --sessions-root-dir "$scratch/sessions" \
	--container-runtime none
"$sbctl" host create --empty --id one >/dev/null
"$sbctl" host create --empty --id big >/dev/null
mkdir -p "$scratch/sessions/one/$(printf 'd/%.0s' $(seq 60))"
touch "$scratch/sessions/one/$(printf 'd/%.0s' $(seq 60))file" "$scratch/sessions/one/$(
	printf 'a%.0s' $(seq 250))"
python3 - "$scratch/sessions/big" <<'P'
import sys
line = (b"abcdx" * 12000 + b"\n")
for i in range(8):
    with open("%s/f%d" % (sys.argv[1], i), "wb") as f:
        f.write(line * 400)
P
timeout 280 python3 "$src/tests/hostile/tools.py" "$host_socket" "$host_pid" >"$scratch/out" 2>&1
status=$?
while IFS= read -r line; do
	case $line in
	"ok "*) ok "${line#*- }" ;;
	"not ok "*) not_ok "${line#*- }" ;;
	1..*) ;;
	*) printf '# %s\n' "${line#\# }" ;;
	esac
done <"$scratch/out"
is "all cases were tried" "$status" 0
wait "$host_pid"
is "the host ends well" "$?" 0
host_pid=
finish
