#!/bin/sh
# SPDX-License-Identifier: MIT
# The network of a sandbox as its user and its operator see it: sbctl run --network, profiles and
# what cannot be enforced, lists of a session that change while it runs, its events, its token.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"
need python3

export SBSYNC_STATE_DIR="$scratch/sync" XDG_CONFIG_HOME="$scratch/config" XDG_STATE_HOME="$scratch"
export SBSYNC_AGENT="$build/sbsync-agent"
mkdir -p "$scratch/ws" "$scratch/config/sandbox"
cd "$scratch/ws" || exit 1

# said DESCRIPTION PATTERN: what must_fail saw has a line like that.
said()
{
	if printf '%s\n' "$output" | grep -q -- "$2"; then ok "$1"; else not_ok "$1" "$output"; fi
}

# What cannot be enforced is refused, whatever this machine can do.
must_fail "a list on this very machine" 1 "$sbctl" run -b local --network good.test -- true
said "says what cannot" 'backend local cannot enforce'
must_fail "no network on this very machine" 1 "$sbctl" run -b local --network off -- true
must_fail "a list over SSH" 1 "$sbctl" run -b ssh -H no.invalid --network good.test -- true
said "says what cannot" 'backend ssh cannot enforce'
must_fail "an entry that is none" 2 "$sbctl" run --network 'http://good.test' -- true
said "is named, with the form" '"http://good.test".*use HOST'
cat >"$scratch/config/sandbox/config.yaml" <<'END'
profiles:
  lists: {backend: local, network: {allow_list: [good.test]}}
  needs: {backend: local, network: {required: true}}
  open: {backend: local, network: {allow_public_ingress: true}}
  plain: {backend: local}
END
must_fail "profiles whose policy cannot be enforced" 1 "$sbctl" profile check
is "are told one by one" "$(printf '%s\n' "$output" | grep -c 'it would not start')" 3
said "and so is the one that nothing keeps off" \
	'^plain: backend local does not keep it off the network'
must_fail "a public address is refused, not promised" 1 "$sbctl" run -P open -- true
said "by its name" allow_public_ingress
cat >"$scratch/config/sandbox/config.yaml" <<'END'
profiles:
  bad: {backend: local, network: {allow_list: [good.test, "a/b"], deny_list: ["x:99999"]}}
END
must_fail "entries of a profile are checked" 1 "$sbctl" profile check
is "each" "$(printf '%s\n' "$output" | grep -c 'network entry')" 2
rm "$scratch/config/sandbox/config.yaml"

# From here on with the real thing: a server and a resolver on loopback.
"$build/sb-egress" probe >/dev/null 2>"$scratch/why" || why=$(cat "$scratch/why")
command -v bwrap >/dev/null && bwrap --unshare-user --unshare-net --ro-bind / / true 2>/dev/null ||
	why=${why:-bwrap does not work here}
if [ -n "${why:-}" ]; then
	skip "network outbound" "$why"
	finish
	exit
fi
cat >"$scratch/world.py" <<'END'
import http.server, socket, struct, sys, threading

dns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
dns.bind(("127.0.0.1", 0))
web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)


def answer():
    while True:
        q, who = dns.recvfrom(4096)
        good = q[12:23] == b"\4good\4test\0" and q[23:25] == b"\0\1"
        dns.sendto(q[:2] + struct.pack(">HHHHH", 0x8180, 1, good, 0, 0) + q[12:27] +
                   (b"\xc0\x0c\0\1\0\1\0\0\0\x1e\0\4\x7f\0\0\1" if good else b""), who)


threading.Thread(target=answer, daemon=True).start()
print(f"{web.server_port} {dns.getsockname()[1]}", flush=True)
web.serve_forever()
END
mkdir "$scratch/www" && echo hello >"$scratch/www/index.html"
(cd "$scratch/www" && exec python3 "$scratch/world.py" >"$scratch/ports" 2>/dev/null </dev/null) &
world=$!
at_exit "kill $world 2>/dev/null"
wait_for 20 test -s "$scratch/ports"
read -r web dns <"$scratch/ports"
fetch='import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=20).read().decode())'
url=http://host.sandbox.internal:$web/

run()
{
	"$sbctl" run -q -b host -s runtime=bwrap "$@" -- python3 -c "$fetch" "$url"
}

is "a listed address is reached" "$(run --network "127.0.0.1:$web" 2>/dev/null)" hello
must_fail "not with the network on alone" 1 run --network on
must_fail "nor by another port of the list" 1 run --network "127.0.0.1:1"
must_fail "nor with the network off" 1 run --network off
"$sbctl" run -b host -s runtime=bwrap -- python3 -c "$fetch" "$url" >"$scratch/out" 2>&1
check "who has no network gets a hint" grep -q 'hint: the sandbox has no network' "$scratch/out"
"$sbctl" run -b host -s runtime=bwrap --network good.test -- python3 -c "$fetch" "$url" \
	>"$scratch/out" 2>&1
check "and who was refused, by whom" \
	grep -q "hint: the network policy refused host.sandbox.internal:$web at 127.0.0.1 (loop" \
	"$scratch/out"
# A session of a host.
start_host --storage-backend local-disk --sessions-root-dir "$scratch/sessions" \
	--container-runtime bwrap --egress-resolver "127.0.0.1:$dns"
is "the host says that it can" "$("$sbctl" host capabilities --json |
	json 'o["ServerCapabilities"]["NetworkLists"]')" True
is "a session has its lists" "$("$sbctl" host create --empty --id one --network outbound \
	--allow good.test --allow "127.0.0.1:$web" --deny evil.test --json |
	json '(o["Session"]["Network"], o["Session"]["Allow"], o["Session"]["Deny"])')" \
	"('outbound', ['good.test', '127.0.0.1:$web'], ['evil.test'])"
"$sbctl" host events one --kind network >"$scratch/events" 2>/dev/null &
events=$!
at_exit "kill $events 2>/dev/null"
wait_for 20 grep -q stream.started "$scratch/events"

ask()
{
	"$sbctl" host attach one python3 -c "$fetch" "http://good.test:$web/" 2>/dev/null
}

is "a listed name is reached" "$(ask)" hello
"$sbctl" host attach one python3 -c "$fetch" "http://evil.test/" >/dev/null 2>&1
check "each refusal is an event" wait_for 20 \
	grep -q 'network.deny.*evil.test' "$scratch/events"
check "and so is what was allowed" grep -q 'network.allow.*good.test' "$scratch/events"
"$sbctl" host token one >"$scratch/one.token"
chmod 600 "$scratch/one.token"
check "the lists are replaced" "$sbctl" host network one --allow other.test
must_fail "at once" 1 ask
check "and back" "$sbctl" host network one --allow good.test --allow "127.0.0.1:$web"
is "which lets it through again" "$(ask)" hello
must_fail "a wrong entry" 1 "$sbctl" host network one --allow a/b
is "changes nothing" "$(ask)" hello
"$sbctl" host create --empty --id two --network none >/dev/null
must_fail "a session without lists takes none" 1 "$sbctl" host network two --allow good.test
stop_host
SANDBOX_AUTH_TOKEN=admin-token-0123456789
export SANDBOX_AUTH_TOKEN
# A host that asks for tokens.
start_host --storage-backend local-disk --sessions-root-dir "$scratch/sessions" \
	--container-runtime bwrap --egress-resolver "127.0.0.1:$dns" --socket-auth \
	--default-network outbound
is "what there was is there after a restart" "$("$sbctl" host get one --json |
	json 'o["Session"]["Allow"]')" "['good.test', '127.0.0.1:$web']"
must_fail "a session's own token" 1 "$sbctl" host network one --allow '*' \
	--token-file "$scratch/one.token"
said "does not open its own door" 'may not call'
check "though it is good for other things" "$sbctl" host get one --token-file "$scratch/one.token"
"$sbctl" host destroy one && "$sbctl" host destroy two
stop_host
finish
