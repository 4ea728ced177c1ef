#!/bin/sh
# SPDX-License-Identifier: MIT
# Controls of kind node against real sandbox hosts: the conformance suite, capabilities that are
# asked for, limits of calls, addresses that the caller reaches.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"

suite=$build/sbcontrol-check
listener="exec python3 -m http.server --bind 127.0.0.1 \$PORT"
(umask 077 && echo token-of-this-test-0123456789 >"$scratch/token")

# passes OPTION...: every check of the suite; prints those that did not.
passes()
{
	timeout 250 "$suite" --kind node --listener "$listener" "$@" >"$scratch/out" 2>&1 &&
		return
	grep -A1 '^not ok' "$scratch/out" || cat "$scratch/out"
	return 1
}

port=$(free_port)
start_host --storage-backend local-disk --sessions-root-dir "$scratch/sessions" \
	--listen "127.0.0.1:$port" --token-file "$scratch/token"
check "a host without snapshots passes" passes -o "url=http://127.0.0.1:$port" \
	-o "token_file=$scratch/token"
check "it was asked, not assumed: rollback and fork were skipped" \
	test "$(grep -cE '(rollback|fork) # SKIP' "$scratch/out")" = 2
must_fail "a wrong token is said to be so" 1 "$suite" -k node -o "url=http://127.0.0.1:$port"
is "by the host's own word" "$(echo "$output" | grep -c -i 'token\|unauth')" 1
check "nothing is left on the host" test -z "$("$sbctl" host ls | tail -n +2)"
stop_host

# A host that takes longer to make a sandbox than anything else may take, and one that is stuck.
# What is launched there has ended before the answer is written.
python3 - "$scratch/slow.sock" <<'PY' &
import json, socketserver, sys, time
from http.server import BaseHTTPRequestHandler
class H(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def address_string(self): return "unix"
    def log_message(self, *a): pass
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        what = self.path.rsplit("/", 1)[1]
        time.sleep({"CreateSession": 3, "LaunchProcess": 0, "GetProcessStatus": 0}.get(what, 60))
        out = {"Session": {"ID": body["SessionID"], "State": "active", "Runtime": "gvisor",
            "Labels": body["Labels"]}} if what == "CreateSession" else {
            "ProcessID": "1", "Status": "exited"}
        if what == "GetProcessStatus":
            out["ExitCode"] = 7
        out = json.dumps(out).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(out)))
        self.end_headers()
        self.wfile.write(out)
class S(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
S(sys.argv[1], H).serve_forever()
PY
slow=$!
at_exit "kill $slow 2>/dev/null; wait $slow 2>/dev/null"
wait_for 20 test -S "$scratch/slow.sock"
cat >"$scratch/slow.yaml" <<END
controls:
  slow:
    kind: node
    url: unix:$scratch/slow.sock
    ask_timeout: 500ms
END
check "create has a limit of its own, which is longer" timeout 60 "$sbctl" control create \
	--config "$scratch/slow.yaml" --control slow
must_fail "a process that has ended before its port answered fails the launch" 1 timeout 40 \
	"$sbctl" control launch --config "$scratch/slow.yaml" --control slow --port 80 \
	--ready 5s sb-1 prog
is "with its exit code" "$(echo "$output" | grep -c 'prog ended with 7 before it answered')" 1
must_fail "a host that is stuck is not waited for so long" 1 timeout 40 "$sbctl" control show \
	--config "$scratch/slow.yaml" --control slow sb-1

# In a network of its own: the host listens where others reach it, its ports do not.
apart='ip link set lo up && ip addr add 192.0.2.7/32 dev lo && exec "$@"'
if unshare -rn sh -c "$apart" sh true 2>/dev/null && [ "$(id -u)" = 0 ]; then
	unshare -n sh -c "$apart" sh sleep 1000 &
	net=$!
	at_exit "kill $net 2>/dev/null; wait $net 2>/dev/null"
	wait_for 20 sh -c "nsenter -n -t $net ip addr | grep -q 192.0.2.7"
	inside() { nsenter -n -t $net "$@"; }
	far_host()
	{
		nsenter -n -t $net "$build/sbhostd" --listen 192.0.2.7:9100 \
			--listen "unix:$host_socket" --token-file "$scratch/token" --plain-tcp \
			--state-dir "$scratch/far" --storage-backend local-disk \
			--sessions-root-dir "$scratch/farsess" "$@" >>"$host_log" 2>&1 &
		host_pid=$!
		at_exit "kill $host_pid 2>/dev/null; wait $host_pid 2>/dev/null"
		wait_for 20 "$sbctl" host health
	}
	far="-o url=http://192.0.2.7:9100 -o token_file=$scratch/token"
	far_host
	# shellcheck disable=SC2086
	must_fail "an address that only the host reaches is not given out" 1 \
		inside "$suite" -k node $far --listener "$listener" -c port
	check "and the way out is said" \
		test "${output#*--advertise-addr}" != "$output"
	check "what was launched does not go on" test -z "$("$sbctl" host ls | tail -n +2)"
	stop_host
	far_host --bind-addr 192.0.2.7
	# shellcheck disable=SC2086
	check "with an address of its own the port is reached" inside "$suite" -k node $far \
		--listener "$listener" -c port
	stop_host
else
	skip "addresses that only the host reaches" "network namespaces need root here"
fi

# With snapshots, where there are overlays.
if [ "$(id -u)" = 0 ]; then
	start_host --storage-backend overlay --sessions-root-dir "$scratch/over"
	check "a host with snapshots passes" passes -o "url=unix:$host_socket" -c rollback \
		-c fork -c key -c refuse -c pause
	check "rollback and fork were tried" test "$(grep -c SKIP "$scratch/out")" = 0
	stop_host
else
	skip "a host with snapshots passes" "overlays need root"
fi
finish
