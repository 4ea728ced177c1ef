#!/bin/sh
# SPDX-License-Identifier: MIT
# Limits of a sandbox: by control group, or by what an ordinary user has; what is said of them; and
# that they outlast the host. Every loop here is bounded, and looks first whether its limit holds.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"
need python3
need bwrap
bwrap --unshare-user --ro-bind / / true 2>/dev/null || skip_all "bwrap does not work here"
sessions=$scratch/sessions
disk="--storage-backend local-disk --sessions-root-dir $sessions --container-runtime bwrap"
small="--session-memory 64M --session-pids 40"

tool()
{
	python3 -c 'import json, sys; print(json.dumps({"cmd": sys.argv[1]}))' "$2" >"$scratch/p"
	"$sbctl" host tool --params "$(cat "$scratch/p")" "$1" bash >"$scratch/out" 2>&1
}

limits()
{
	"$sbctl" host capabilities --json | json 'o["ServerCapabilities"]["Limits"]'
}

# The code of a call that asks for one processor.
one_cpu()
{
	python3 - "$host_socket" "$1" <<'P'
import http.client, json, socket, sys
c = http.client.HTTPConnection("localhost")
c.sock = socket.socket(socket.AF_UNIX)
c.sock.connect(sys.argv[1])
call = {"SessionID": sys.argv[2], "ToolName": "bash", "ToolCallID": "x",
        "Params": {"cmd": "true"}, "Resources": {"CPUs": 1}}
c.request("POST", "/rpc.v1.SandboxService/ExecuteTool", json.dumps(call),
          {"Content-Type": "application/json"})
print(json.loads(c.getresponse().read()).get("code", "fine"))
P
}

# 80 processes where 40 are allowed; 64 MiB where 200 are taken.
bombs()
{
	tool "$1" 'for i in $(seq 80); do sleep 3 & done 2>/dev/null; ls -d /proc/[0-9]* | wc -l'
	check "$2: processes beyond the limit are refused" \
		sh -c "! [ \"\$(head -n 1 '$scratch/out')\" -gt 45 ] 2>/dev/null"
	tool "$1" 'echo fine'
	check "and later ones are not" grep -q '^fine' "$scratch/out"
	tool "$1" 'head -c 200000000 /dev/zero | tail -n 1 | wc -c
		[ ${PIPESTATUS[1]} != 0 ] || echo escaped'
	check "memory beyond the limit is refused" sh -c "! grep -q escaped '$scratch/out'"
	tool "$1" 'echo fine'
	check "and the sandbox goes on" grep -q '^fine' "$scratch/out"
}

# The limit of processes in the group that the sandbox of a session is in.
pids_max()
{
	python3 - "$scratch/state/box-bwrap/$1/record" <<'P'
import os, sys
pid = open(sys.argv[1]).read().split()[0]
for l in open("/proc/%s/cgroup" % pid):
    n, names, path = l.strip().split(":", 2)
    for top in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup"):
        f = top + path + "/pids.max"
        if "sb-bwrap-" in path and "pids" in (names or "pids") and os.path.exists(f):
            print(open(f).read().strip())
            sys.exit()
P
}

if [ "$(id -u)" = 0 ]; then
	start_host $disk $small
	how=$(limits)
	case $how in
	cgroup?)
		check "the start says what holds them" wait_for 5 grep -q "limits: $how" "$host_log"
		"$sbctl" host create --empty --id a >/dev/null
		tool a true
		is "the limit is there ($how)" "$(pids_max a)" 40
		[ "$(pids_max a)" != 40 ] || bombs a "$how"
		is "CPUs of one call cannot be had, and are refused" "$(one_cpu a)" \
			failed_precondition
		"$sbctl" host destroy a
		;;
	*) skip "limits by control groups" "this machine's are not ours: $how" ;;
	esac
	stop_host
else
	skip "limits by control groups" "not root"
fi

# Groups of version 1 in which a host is: it comes back in others.
groups=
for c in memory pids cpu freezer; do
	top=/sys/fs/cgroup/$c
	own=$(sed -n "s/^[0-9]*:\(.*,\)\?$c\(,.*\)\?:\(.*\)/\3/p" /proc/self/cgroup)
	[ "$(id -u)" = 0 ] && [ -n "$own" ] && mkdir -p "$top${own%/}/sbt$$" 2>/dev/null || continue
	at_exit "rmdir $top${own%/}/sbt$$ 2>/dev/null"
	groups="$groups $top${own%/}/sbt$$"
done
left()
{
	for g in $groups; do find "$g" -mindepth 1 -name 'sb-*' -type d; done
}
start_within()
{
	sh -c 'for g in $1; do echo $$ >$g/cgroup.procs; done; shift; exec "$@"' - "$groups" \
		"$build/sbhostd" --listen "unix:$host_socket" --state-dir "$scratch/state" "$@" \
		>>"$host_log" 2>&1 </dev/null &
	host_pid=$!
	at_exit "[ -z \"\$host_pid\" ] || { kill $host_pid; wait $host_pid; } 2>/dev/null"
	wait_for 20 host_is_up
}
if [ -z "$groups" ]; then
	skip "limits outlast the host" "no control groups of version 1 of our own"
else
	start_within $disk $small
	"$sbctl" host create --empty --id kept >/dev/null
	"$sbctl" host create --empty --id dead >/dev/null
	tool kept true
	tool dead true
	check "groups are where the host is" test -n "$(left)"
	stop_host
	# One sandbox dies while nobody looks.
	kill -9 "$(python3 -c 'import sys; print(open(sys.argv[1]).read().split()[0])' \
		"$scratch/state/box-bwrap/dead/record")"
	start_host $disk $small
	"$sbctl" host resume kept >/dev/null 2>&1
	tool kept true
	is "a host in another group finds the limits" "$(pids_max kept)" 40
	[ "$(pids_max kept)" != 40 ] || bombs kept "after that"
	"$sbctl" host destroy kept
	"$sbctl" host destroy dead
	stop_host
	is "and no old group is left" "$(left)" ""
fi

# An ordinary user.
if [ "$(id -u)" != 0 ]; then
	start_host $disk $small
	me=
elif ! command -v setpriv >/dev/null || ! setpriv --reuid=65534 --regid=65534 --clear-groups \
	bwrap --unshare-user --ro-bind / / true 2>/dev/null; then
	skip "limits of an ordinary user" "users may not make namespaces"
	finish
else
	me=$(mktemp -d "${TMPDIR:-/tmp}/sb-user-XXXXXX")
	at_exit "rm -rf $me"
	open=$me
	while [ "$open" != / ]; do chmod o+x "$open"; open=$(dirname "$open"); done
	cp "$build/sbhostd" "$build/sb-box" "$build/sb-files" "$me"
	chown -R 65534:65534 "$me"
	host_socket=$me/sock
	SANDBOX_HOST=unix:$host_socket
	HOME=$me setpriv --reuid=65534 --regid=65534 --clear-groups "$me/sbhostd" \
		--listen "unix:$host_socket" --state-dir "$me/state" --storage-backend local-disk \
		--sessions-root-dir "$me/sessions" --container-runtime bwrap $small \
		>"$scratch/user.log" 2>&1 </dev/null &
	host_pid=$!
	at_exit "[ -z \"\$host_pid\" ] || { kill $host_pid; wait $host_pid; } 2>/dev/null"
	wait_for 20 host_is_up
fi
how=$(limits)
"$sbctl" host create --empty --id mine >/dev/null
tool mine 'ulimit -u'
case $how in
rlimit)
	is "the limit is there (rlimit)" "$(head -n 1 "$scratch/out")" 40
	[ "$(head -n 1 "$scratch/out")" != 40 ] || bombs mine "an ordinary user"
	must_fail "a limit that nothing holds is refused" 1 ${me:+setpriv --reuid=65534 \
		--regid=65534 --clear-groups} "${me:-$build}/sbhostd" --state-dir \
		"${me:-$scratch}/other" --storage-backend local-disk --sessions-root-dir \
		"${me:-$scratch}/others" --container-runtime bwrap --session-cpus 50
	;;
cgroup?) bombs mine "an ordinary user ($how)" ;;
*) skip "limits of an ordinary user" "this kernel counts no processes of a namespace: $how" ;;
esac
"$sbctl" host destroy mine
stop_host
finish
