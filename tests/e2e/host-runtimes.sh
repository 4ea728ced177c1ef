#!/bin/sh
# SPDX-License-Identifier: MIT
# What an operator and a caller choose of a sandbox: runtime and network of a session, the
# network namespace and the root of all of them, a host without root's rights, limits by
# control groups of version 2.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"
need python3

disk="--storage-backend local-disk --sessions-root-dir $scratch/sessions"
sessions=$scratch/sessions
# Runs a line of shell in a session; what it says goes to $scratch/out.
tool()
{
	printf '%s\n' "$2" >"$sessions/$1/run.sh"
	"$sbctl" host tool --params '{"cmd":"sh run.sh"}' "$1" bash >"$scratch/out" 2>&1
}

# Says the code and the field of a refusal.
refusal()
{
	python3 - "$host_socket" "$1" <<'P'
import http.client, json, socket, sys
c = http.client.HTTPConnection("localhost")
c.sock = socket.socket(socket.AF_UNIX)
c.sock.connect(sys.argv[1])
url = "/rpc.v1.SandboxService/CreateSession"
c.request("POST", url, sys.argv[2], {"Content-Type": "application/json"})
r = json.loads(c.getresponse().read())
print(r.get("code", "fine"), *(d["debug"].get("Field", "") for d in r.get("details", [])))
P
}

works()
{
	case $1 in
	gvisor) command -v runsc >/dev/null && [ "$(id -u)" = 0 ] ;;
	bwrap) command -v bwrap >/dev/null && bwrap --unshare-user --ro-bind / / true 2>/dev/null ;;
	esac
}

network_of()
{
	"$sbctl" host get --json "$1" | json 'o["Session"]["Network"]'
}

# Isolation is what nobody has to ask for, and its absence is what somebody has to write out.
unset SANDBOX_CONTAINER_RUNTIME
"$build/sbhostd" --state-dir "$scratch/state" $disk --bwrap-path /nowhere/bwrap \
	--runsc-path /nowhere/runsc >"$scratch/out" 2>&1
is "a host where nothing isolates does not start" $? 1
check "and says the way out" grep -q 'install bubblewrap .* none' "$scratch/out"
mkdir "$scratch/plain"
run_plain()
{
	PATH=/nowhere SBSYNC_STATE_DIR=$scratch/own SBSYNC_BOX_DIR=$scratch/box \
		SBSYNC_AGENT=$build/sbsync-agent "$sbctl" run -C "$scratch/plain" "$@" \
		-- /bin/sh -c 'echo ran >ran' >"$scratch/out" 2>&1
}
run_plain -b host
is "nor does sbctl run" $? 1
check "which says the way out" grep -q 'install bubblewrap.*runtime=none' "$scratch/out"
check "and has run nothing" test ! -e "$scratch/plain/ran"
run_plain -b host --set runtime=none
is "runtime none, written out, runs it" "$(cat "$scratch/plain/ran")" ran
check "and warns" grep -q 'warning: no isolation' "$scratch/out"
if works bwrap; then
	start_host $disk
	check "without a word it isolates" wait_for 5 \
		grep -q 'sessions run in \(bwrap\|gvisor\)' "$host_log"
	"$sbctl" host create --empty --id quiet >/dev/null
	tool quiet pwd
	check "every session" grep -qx /workspace "$scratch/out"
	"$sbctl" host destroy quiet
	stop_host
	start_host $disk --container-runtime none
	"$sbctl" host create --empty --id bare >/dev/null
	tool bare pwd
	check "runtime none does not" grep -qx "$sessions/bare" "$scratch/out"
	stop_host
	start_host $disk
	tool bare pwd
	check "a session from a host without isolation has it" grep -qx /workspace "$scratch/out"
	is "and its network" "$(network_of bare)" none
	"$sbctl" host destroy bare
	stop_host
else
	skip "without a word it isolates" "bwrap does not work here"
fi

start_host $disk --container-runtime none
check "runtime none is warned of" wait_for 5 \
	grep -q '"warn".*runtime none isolates nothing' "$host_log"
is "a runtime that is none" \
	"$(refusal '{"Empty":true,"Runtime":"chroot"}')" "invalid_argument Runtime"
is "a network that is none" \
	"$(refusal '{"Empty":true,"Network":"some"}')" "invalid_argument Network"
is "a network that runtime none cannot enforce" \
	"$(refusal '{"Empty":true,"Network":"none"}')" "failed_precondition "
is "nothing was made" "$("$sbctl" host ls --json)" '{"Sessions":[],"NextAfter":""}'
for rt in bwrap gvisor; do
	if ! works $rt; then
		skip "a session in $rt" "$rt does not work here"
		continue
	fi
	"$sbctl" host create --empty --id in-$rt --runtime $rt --network none >/dev/null
	is "a session in $rt on a host of runtime none" \
		"$("$sbctl" host get --json in-$rt |
			json '" ".join(o["Session"][k] for k in ("Runtime", "Network"))')" \
		"$rt none"
	tool in-$rt pwd
	check "is isolated" grep -qx /workspace "$scratch/out"
	tool in-$rt "cut -d: -f1 /proc/net/dev | tr -d ' ' | tail -n +3 | sort | tr '\\n' +"
	check "and has no network but its own loopback" grep -q '^lo+' "$scratch/out"
	is "host's own network is not for the asking" \
		"$(refusal "{\"Empty\":true,\"Runtime\":\"$rt\",\"Network\":\"host\"}")" \
		"permission_denied "
	is "network sandbox needs a namespace" \
		"$(refusal "{\"Empty\":true,\"Runtime\":\"$rt\",\"Network\":\"sandbox\"}")" \
		"failed_precondition "
	"$sbctl" host destroy in-$rt
done
stop_host

# The weaker one is refused where the operator chose the stronger.
if works bwrap; then
	start_host $disk --container-runtime bwrap
	is "less isolation than the host's" \
		"$(refusal '{"Empty":true,"Runtime":"none"}')" "permission_denied "
	# A caller of that host knows that it isolates.
	mkdir "$scratch/ws"
	warned=$(SBSYNC_STATE_DIR=$scratch/own SBSYNC_AGENT=$build/sbsync-agent \
		"$sbctl" run -q -b host --set "url=unix:$host_socket" -C "$scratch/ws" -- true 2>&1)
	is "sbctl run there warns of nothing" "$warned" ""
	# A session keeps the network it was made with, whatever the host's default is later.
	"$sbctl" host create --empty --id kept >/dev/null
	is "the default network has a name" "$(network_of kept)" none
	stop_host
	start_host $disk --container-runtime bwrap --default-network host --allow-host-network
	is "another default is not for a session that is there" "$(network_of kept)" none
	tool kept "cut -d: -f1 /proc/net/dev | tr -d ' ' | tail -n +3 | sort | tr '\\n' +"
	check "which still has no network but its own loopback" grep -q '^lo+$' "$scratch/out"
	"$sbctl" host create --empty --id open >/dev/null
	is "a new one has it" "$(network_of open)" host
	"$sbctl" host destroy kept
	"$sbctl" host destroy open
	stop_host
else
	skip "less isolation than the host's" "bwrap does not work here"
fi

# A network that the operator has prepared: what is in it is reached, the machine's own is not.
netns=sbtest$$
if [ "$(id -u)" != 0 ] || ! command -v ip >/dev/null || ! ip netns add $netns 2>"$scratch/err"; then
	skip "network sandbox" \
		"no network namespace can be made: $(tail -n 1 "$scratch/err" 2>/dev/null)"
else
	at_exit "ip netns del $netns"
	ip -n $netns link set lo up
	serve='
import http.server, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(sys.argv[1].encode())
    def log_message(self, *a): pass
s = http.server.HTTPServer(("127.0.0.1", int(sys.argv[2])), H)
open(sys.argv[3], "w").write(str(s.server_port)); s.serve_forever()'
	ip netns exec $netns python3 -c "$serve" inside 8123 "$scratch/in-port" &
	at_exit "kill $!"
	python3 -c "$serve" outside 0 "$scratch/out-port" &
	at_exit "kill $!"
	wait_for 10 test -s "$scratch/in-port"
	wait_for 10 test -s "$scratch/out-port"
	get()
	{
		tool "$1" "python3 -c \"
import urllib.request as u
print(u.urlopen('http://127.0.0.1:$2', timeout=5).read().decode())\""
	}
	for rt in bwrap gvisor; do
		if ! works $rt; then
			skip "network sandbox, $rt" "$rt does not work here"
			continue
		fi
		start_host $disk --container-runtime $rt --sandbox-netns /run/netns/$netns \
			--default-network none
		"$sbctl" host create --empty --id net --network sandbox >/dev/null
		"$sbctl" host create --empty --id no >/dev/null
		get net 8123
		check "network sandbox, $rt: what is there is reached" \
			grep -q '^inside' "$scratch/out"
		get net "$(cat "$scratch/out-port")"
		check "the machine's own is not" grep -q 'refused' "$scratch/out"
		get no 8123
		check "and a session without it reaches neither" grep -q 'refused' "$scratch/out"
		"$sbctl" host destroy net
		"$sbctl" host destroy no
		stop_host
	done
fi

# Another root: a few static programs.
if ! command -v busybox >/dev/null || ldd "$(command -v busybox)" >/dev/null 2>&1; then
	skip "a root of its own" "no static busybox"
elif ldd "$build/sb-box" >/dev/null 2>&1; then
	skip "a root of its own" "sb-box of this build needs shared libraries, which are not in it"
else
	root=$scratch/rootfs
	mkdir -p "$root/usr/bin" "$root/etc"
	cp "$(command -v busybox)" "$root/usr/bin/busybox"
	for p in sh cat touch; do ln -s busybox "$root/usr/bin/$p"; done
	printf '#!/bin/sh\nexec sh "$@"\n' >"$root/usr/bin/bash"
	chmod 755 "$root/usr/bin/bash"
	ln -s usr/bin "$root/bin"
	echo marked >"$root/etc/marker"
	for rt in bwrap gvisor; do
		if ! works $rt; then
			skip "a root of its own, $rt" "$rt does not work here"
			continue
		fi
		start_host $disk --container-runtime $rt --rootfs "$root"
		"$sbctl" host create --empty --id root >/dev/null
		tool root 'cat /etc/marker; echo made >file; cat /workspace/file'
		check "a root of its own, $rt" grep -q '^marked' "$scratch/out"
		check "with the workspace in it" grep -q '^made' "$scratch/out"
		tool root 'test -e /usr/bin/python3 || echo none; touch /usr/bin/x || echo fast'
		check "and nothing of the machine's" grep -q '^none' "$scratch/out"
		check "read-only" grep -q '^fast' "$scratch/out"
		"$sbctl" host destroy root
		stop_host
	done
fi

# A host of an ordinary user.
if [ "$(id -u)" != 0 ] || ! command -v setpriv >/dev/null; then
	skip "bwrap without rights" "it takes root to become another user"
elif ! setpriv --reuid=65534 --regid=65534 --clear-groups bwrap --unshare-user \
	--ro-bind / / true 2>"$scratch/err"; then
	skip "bwrap without rights" "users may not make namespaces: $(tail -n 1 "$scratch/err")"
else
	# What it needs must be in reach of that user.
	user=$(mktemp -d "${TMPDIR:-/tmp}/sb-user-XXXXXX")
	at_exit "rm -rf $user"
	cp "$build/sbhostd" "$build/sb-box" "$user"
	chown -R 65534:65534 "$user"
	chmod 755 "$user"
	host_socket=$user/sock
	sessions=$user/sessions
	SANDBOX_HOST=unix:$host_socket
	HOME=$user SB_BOX=$user/sb-box setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$user/sbhostd" \
		--listen "unix:$host_socket" --state-dir "$user/state" \
		--storage-backend local-disk --sessions-root-dir "$user/sessions" \
		--container-runtime bwrap >"$scratch/user.log" 2>&1 </dev/null &
	host_pid=$!
	at_exit "[ -z \"\$host_pid\" ] || { kill $host_pid; wait $host_pid; } 2>/dev/null"
	check "bwrap without rights: the host starts" wait_for 20 "$sbctl" host health
	"$sbctl" host create --empty --id mine >/dev/null
	tool mine 'pwd; echo made >file; cat /proc/1/environ /etc/shadow; kill -9 1
		mount -t tmpfs x /mnt || echo kept'
	check "a tool runs there" grep -qx /workspace "$scratch/out"
	check "and is kept in" grep -q '^kept' "$scratch/out"
	is "what it makes belongs to that user" "$(stat -c %u "$user/sessions/mine/file")" 65534
	echo 'while :; do echo x >>ticks; sleep 0.05; done' >"$user/sessions/mine/tick.sh"
	"$sbctl" host launch mine /bin/sh tick.sh >/dev/null
	check "a process runs there" wait_for 10 test -s "$user/sessions/mine/ticks"
	"$sbctl" host pause mine
	before=$(stat -c %s "$user/sessions/mine/ticks")
	sleep 0.4
	is "a pause freezes it" "$(stat -c %s "$user/sessions/mine/ticks")" "$before"
	"$sbctl" host resume mine
	check "and it goes on" wait_for 10 \
		sh -c "[ \$(stat -c %s $user/sessions/mine/ticks) -gt $before ]"
	"$sbctl" host destroy mine
	stop_host
	# Not by the exit status: a process that ends meanwhile is an error to grep. The brackets
	# keep this shell itself out.
	check "nothing is left of it" wait_for 10 \
		sh -c "[ -z \"\$(grep -lsa '$user/[s]tate' /proc/[0-9]*/cmdline)\" ]"
fi

# Controllers that version 1 has are not to be had in version 2.
if ! grep -qw memory /sys/fs/cgroup/cgroup.controllers 2>/dev/null; then
	skip "limits by cgroup v2" "this machine's controllers are those of version 1"
elif ! works bwrap || [ "$(id -u)" != 0 ]; then
	skip "limits by cgroup v2" "bwrap does not work here, or no root"
else
	start_host $disk --container-runtime bwrap --session-memory 64M --session-pids 40
	"$sbctl" host create --empty --id small >/dev/null
	tool small 'head -c 200000000 /dev/zero | tail -n 1 | wc -c'
	check "memory beyond the limit" grep -qi 'killed\|memory' "$scratch/out"
	tool small 'for i in $(seq 100); do sleep 5 & done; wait'
	check "processes beyond the limit" grep -qi 'resource\|fork' "$scratch/out"
	"$sbctl" host destroy small
	stop_host
fi
finish
