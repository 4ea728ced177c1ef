#!/bin/sh
# SPDX-License-Identifier: MIT
# The benchmark harness itself: repeatable workloads, a relay that counts and delays, a run that
# measures, verifies and tells when a tool left a wrong destination. Trees are tiny; nothing here
# says how fast anything is.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"

bench=${SB_TOP_SRCDIR:-.}/tests/bench
build=${SB_TOP_BUILDDIR:-.}

if ! command -v python3 >/dev/null; then
	skip "benchmark harness" "python3 is not installed"
	finish
fi

# Names, modes, times and bytes of a tree in one digest.
fingerprint()
{
	(
		cd "$1" && find . ! -type d -printf '%p %m %T@ %l\n' | LC_ALL=C sort &&
			find . -type f -print0 | LC_ALL=C sort -z | xargs -0 cat
	) | cksum
}

for kind in code modules; do
	for n in 1 2; do
		python3 "$bench/workload.py" make $kind "$scratch/$kind$n" --files 200 >/dev/null
	done
	is "two $kind trees are the same" \
		"$(fingerprint "$scratch/${kind}1")" "$(fingerprint "$scratch/${kind}2")"
done
python3 "$bench/workload.py" make code "$scratch/code3" --files 200 --seed 2 >/dev/null
if [ "$(fingerprint "$scratch/code1")" = "$(fingerprint "$scratch/code3")" ]; then
	not_ok "another seed gives another tree"
else
	ok "another seed gives another tree"
fi
for n in 1 2; do
	python3 "$bench/workload.py" change edit "$scratch/code$n" --count 20 --round 1 >/dev/null
	find "$scratch/code$n" -exec touch -h -d @0 {} +
done
is "two edits are the same" "$(fingerprint "$scratch/code1")" "$(fingerprint "$scratch/code2")"
must_fail "a change is nothing to make" 2 python3 "$bench/workload.py" make edit "$scratch/x"

cat >"$scratch/relay.py" <<'PY'
import json, socket, subprocess, sys, threading, time
server = socket.create_server(("127.0.0.1", 0))
def answer():
    c, _ = server.accept()
    n = 0
    while True:
        data = c.recv(65536)
        if not data:
            break
        n += len(data)
    c.sendall(b"%d" % n)
    c.close()
threading.Thread(target=answer, daemon=True).start()
relay = subprocess.Popen([sys.argv[1], str(server.getsockname()[1]), "40", "80"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
port = int(relay.stdout.readline())
start = time.monotonic()
c = socket.create_connection(("127.0.0.1", port))
c.sendall(bytes(1000000))
c.shutdown(socket.SHUT_WR)
got = c.recv(100)
took = time.monotonic() - start
relay.stdin.write("stats\n")
stats = json.loads(relay.stdout.readline())
relay.stdin.close()
assert relay.wait(10) == 0
assert got == b"1000000", got
assert stats == {"up": 1000000, "down": 7, "connections": 1}, stats
# Two round trips and the time of a million bytes at 10 MB/s; never faster than the wire.
assert took >= 0.080 + 0.100, took
PY
check "the relay counts every byte and is never faster than its wire" \
	python3 "$scratch/relay.py" "$build/tests/bench/slowlink"

must_fail "an unknown case is named" 2 "$bench/run" --case nonsense
case $output in
*nonsense*cold-push*) ok "the known cases are listed" ;;
*) not_ok "the known cases are listed" "$output" ;;
esac

if ! command -v rsync >/dev/null ||
	{ ! command -v sshd >/dev/null && [ ! -x /usr/sbin/sshd ]; }; then
	skip "a run with rivals" "rsync or sshd is not installed"
	finish
fi

# A tool that claims to mirror and does nothing.
cat >"$scratch/idle" <<'SH'
#!/bin/sh
echo '{"result":"ok"}'
SH
chmod +x "$scratch/idle"
must_fail "a wrong destination fails the run" 1 \
	"$bench/run" --builddir "$build" --sbsync "$scratch/idle" --rival rsync --scale tiny \
	--case edit-1pct --link local --rounds 1 --image 0 --work "$scratch/w1" --out "$scratch/o1"
case $output in
*"FAILED: destination differs"*) ok "the table says so" ;;
*) not_ok "the table says so" "$output" ;;
esac

check "a run with rivals over ssh" "$bench/run" --builddir "$build" --sbsync "$scratch/none" \
	--rival rsync,tar-zstd --scale tiny --case cold-push,noop --link direct,50ms --rounds 1 \
	--image 0 --work "$scratch/w2" --out "$scratch/o2"
cat >"$scratch/result.py" <<'PY'
import json, sys
doc = json.load(open(sys.argv[1] + "/bench.json"))
assert [(b["case"], b["link"]) for b in doc["blocks"]] == [
    ("cold-push", "direct"), ("cold-push", "50ms"), ("noop", "direct"), ("noop", "50ms")
], doc["blocks"]
for b in doc["blocks"]:
    for r in b["results"]:
        assert r["verified"] is True and not r["error"] and len(r["runs"]) == 1, r
        run = r["runs"][0]
        assert r["wire_bytes"] > 1000 and run["cpu_local"] > 0 and run["rss_local_kib"] > 500, r
        assert run["rss_remote_kib"] > 500 and run["cpu_remote"] >= 0, r
        assert b["link"] == "direct" or run["wall"] >= 0.2, r
assert "<svg" in open(sys.argv[1] + "/bench.svg").read()
PY
check "its JSON is complete and its chart is there" python3 "$scratch/result.py" "$scratch/o2"
if [ -e "$scratch/w2" ]; then
	not_ok "the work directory is gone" "$(ls "$scratch/w2")"
else
	ok "the work directory is gone"
fi
finish
