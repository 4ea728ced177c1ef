#!/bin/sh
# SPDX-License-Identifier: MIT
# read_file over RPC by 100 clients at once. Called by `make bench-tools`.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"

start_host_for local-disk --container-runtime none --log-level info
"$sbctl" host create --id bench --base img >/dev/null
seq 100 >"$scratch/root/sessions/bench/file"
call='{"SessionID":"bench","ToolCallID":"call-########",'
call=$call'"ToolName":"read_file","Params":{"path":"file"}}'
for rate in 500 2000; do
	printf 'read_file over RPC: '
	"$build/tests/bench/bench-rpc" "$host_socket" ExecuteTool "$call" 100 $rate 5
done
stop_host
