#!/bin/sh
# SPDX-License-Identifier: MIT
# SSH into the sessions of sbhostd, with the programs that people use: ssh, sftp, scp, rsync, git,
# paramiko and sbsync; who may come in, who may not, and what is left when something is killed.
# SB_SSH_RUNTIMES names more runtimes for the first half (make check-ssh).
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"
build=$(cd "$build" && pwd)
need ssh ssh-keygen sftp python3
[ -x "$build/sb-ssh" ] || skip_all "this build has no SSH gateway (libssh-dev)"

key=$scratch/id_ed25519
ssh-keygen -q -t ed25519 -N '' -C me -f "$key"
ssh-keygen -q -t rsa -b 2048 -N '' -C me -f "$scratch/id_rsa"
ssh-keygen -q -t ed25519 -N '' -C one -f "$scratch/one"
ssh-keygen -q -t ed25519 -N '' -C other -f "$scratch/other"
cat "$key.pub" "$scratch/id_rsa.pub" >"$scratch/keys"
chmod 644 "$scratch/keys"
mkdir -p "$scratch/session-keys"
cp "$scratch/one.pub" "$scratch/session-keys/one"

start_gate()
{
	port=$(free_port)
	rpc_port=$(free_port)
	start_host --container-runtime "$1" --storage-backend local-disk \
		--sessions-root-dir "$scratch/sess" \
		--ssh-listen "127.0.0.1:$port" --ssh-authorized-keys "$scratch/keys" \
		--ssh-session-keys "$scratch/session-keys" --ssh-max-connections 40 \
		--listen "127.0.0.1:$rpc_port" --token-file "$scratch/token"
}

end_gate()
{
	for id in one two; do
		"$sbctl" host destroy --force "$id" >/dev/null 2>&1
	done
	stop_host
	is "the host ends ($1)" "$host_status" 0
	rm -rf "$scratch/state" "$scratch/sess" "$scratch/known"
}

cat >"$scratch/config" <<CONFIG
Host *
	UserKnownHostsFile $scratch/known
	StrictHostKeyChecking accept-new
	IdentitiesOnly yes
	IdentityFile $key
	LogLevel ERROR
	BatchMode yes
CONFIG
gate()
{
	timeout 60 ssh -F "$scratch/config" -p "$port" "$@"
}

says()
{
	what=$1 want=$2
	shift 2
	gate "$@" >"$scratch/said" 2>"$scratch/err" </dev/null
	echo "exit $?" >>"$scratch/err"
	[ "$(cat "$scratch/said")" = "$want" ] || diag <"$scratch/err"
	is "$what" "$(cat "$scratch/said")" "$want"
}

ends_with()
{
	what=$1 want=$2
	shift 2
	gate "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
	is "$what" "$?" "$want"
}

# A command, its streams, its end.
commands()
{
	says "a command's output ($1)" "hi $2" one@127.0.0.1 'echo hi $PWD'
	ends_with "its exit code ($1)" 7 one@127.0.0.1 'echo out; echo err >&2; exit 7'
	is "errors by themselves ($1)" "$(cat "$scratch/out") $(cat "$scratch/err")" "out err"
	ends_with "a signal's code ($1)" 137 one@127.0.0.1 'kill -9 $$'
	ends_with "no such program ($1)" 127 one@127.0.0.1 no-such-program
	is "a shell reads its input ($1)" \
		"$(printf 'x=4\necho $((x * 2))\nexit 3\n' | gate one@127.0.0.1; echo $?)" "8
3"
	is "input ends before output does ($1)" \
		"$(printf 'a\nb\n' | gate one@127.0.0.1 'wc -l; echo more')" "2
more"
	head -c 20000000 /dev/urandom >"$scratch/big"
	sum=$(sha256sum <"$scratch/big")
	is "much in ($1)" "$(gate one@127.0.0.1 'tee big | sha256sum' <"$scratch/big")" "$sum"
	is "much out ($1)" "$(gate one@127.0.0.1 'cat big' </dev/null | sha256sum)" "$sum"
	says "locale and terminal come along ($1)" "xx" -o SetEnv='LC_ALL=x LD_PRELOAD=y' \
		one@127.0.0.1 'echo x$LC_ALL$LD_PRELOAD'
	says "what goes on in the background goes on ($1)" yes one@127.0.0.1 \
		'nohup sh -c "echo \$\$ >p; exec sleep 1000" >/dev/null 2>&1 & sleep 0.5; echo yes'
	says "... behind its connection ($1)" there one@127.0.0.1 \
		'kill -0 "$(cat p)" && echo there; kill "$(cat p)"'
}

# What has nobody any more hears of it.
hang_up()
{
	ssh -F "$scratch/config" -p "$port" one@127.0.0.1 'exec 2>/dev/null
		trap "echo hup >got; exit" HUP; echo $$ >pid; while :; do sleep 0.1; done' \
		</dev/null >/dev/null 2>&1 &
	client=$!
	wait_for 20 [ -s "$scratch/sess/one/pid" ] || diag <"$host_log"
	kill -9 $client
	wait $client 2>/dev/null
	check "a command whose client is gone hangs up ($1)" wait_for 20 \
		[ -s "$scratch/sess/one/got" ]
	rm -f "$scratch/sess/one/pid" "$scratch/sess/one/got"
}

terminals()
{
	if [ "$1" = gvisor ]; then
		SB_NO_SIGNALS=1
		export SB_NO_SIGNALS
		skip "Ctrl-C ($1)" "terminals of this gVisor raise no signals"
	fi
	check "a terminal: its size, its change, its end ($1)" \
		timeout 60 python3 "$src/tests/compat/ssh-term.py" ssh -F "$scratch/config" \
		-p "$port" one@127.0.0.1
	unset SB_NO_SIGNALS
}

# As somebody else: with this key only.
as()
{
	own=$1
	shift
	sed "s|^.IdentityFile .*|	IdentityFile $own|" "$scratch/config" >"$scratch/config-as"
	timeout 60 ssh -F "$scratch/config-as" -p "$port" "$@" </dev/null >"$scratch/out" \
		2>"$scratch/err"
	echo $?
}

strangers()
{
	is "a key that nobody knows" "$(as "$scratch/other" one@127.0.0.1 true)" 255
	is "a session that is not there" "$(as "$key" nosuch@127.0.0.1 true)" 255
	for user in .. ../one one/ "one two" -oX '$(id)' "$(printf 'o\001ne')" \
		"$(head -c 600 /dev/zero | tr '\0' a)" sbs2.one.00.9999999999.00; do
		is "nobody is called '$(printf %.20s "$user" | tr '\001' '?')'" \
			"$(as "$key" -o "User=$user" 127.0.0.1 true)" 255
	done
	is "RSA keys do, too" "$(as "$scratch/id_rsa" one@127.0.0.1 true)" 0
	is "a key of one session enters it" "$(as "$scratch/one" one@127.0.0.1 true)" 0
	is "... and no other" "$(as "$scratch/one" two@127.0.0.1 true)" 255
	rm "$scratch/session-keys/one"
	is "... and not any more without it" "$(as "$scratch/one" one@127.0.0.1 true)" 255
}

tokens()
{
	token=$("$sbctl" host token one)
	is "a session's token is a name" "$(as /dev/null "$token@127.0.0.1" 'exit 9')" 9
	is "an altered one is none" "$(as /dev/null "${token%?}x@127.0.0.1" true)" 255
	is "an admin's token names no session" \
		"$(as /dev/null "$(cat "$scratch/token")@127.0.0.1" true)" 255
	access=$("$sbctl" host ssh-access one create)
	is "a token for SSH is a name" "$(as /dev/null "$access@127.0.0.1" 'exit 8')" 8
	check "... and no token for anything else" sh -c \
		"! printf %s '$access' >$scratch/a || ! $sbctl host -H http://127.0.0.1:$rpc_port \
			--token-file $scratch/a get one"
	check "... and is not on record" sh -c "! grep -r '$access' $scratch/state $host_log"
	as /dev/null -N "$access@127.0.0.1" >"$scratch/status" &
	client=$!
	wait_for 20 grep -q 'session one by token' "$host_log"
	id=$("$sbctl" host ssh-access one list | awk 'NR == 2 { print $1 }')
	check "it is withdrawn" "$sbctl" host ssh-access one revoke "$id"
	wait $client
	is "... which ends its connections" "$(cat "$scratch/status")" 255
	is "... and lets nobody in" "$(as /dev/null "$access@127.0.0.1" true)" 255
	short=$("$sbctl" host ssh-access --ttl 5s one create)
	gate "$short@127.0.0.1" 'echo in; sleep 50' </dev/null >"$scratch/short" 2>&1 &
	client=$!
	short=$("$sbctl" host token one --ttl 5s)
	is "a connection ends with its session's token" \
		"$(as /dev/null "$short@127.0.0.1" 'echo in; sleep 50')" 255
	is "... which let it in" "$(cat "$scratch/out")" in
	wait $client
	is "a connection ends with its token for SSH" "$?" 255
	is "... which let it in, too" "$(head -c 2 "$scratch/short")" in
	"$sbctl" host create --id three >/dev/null
	gate -N three@127.0.0.1 >"$scratch/three" 2>&1 </dev/null &
	client=$!
	wait_for 20 grep -q 'session three by key' "$host_log"
	"$sbctl" host destroy --force three >/dev/null
	wait $client
	is "a connection ends with its session" "$?" 255
}

no_doors()
{
	! pgrep -P "$host_pid" -x sb-ssh
}

# Bytes of somebody who does not speak SSH.
garbage()
{
	check "garbage before and after the greeting" \
		timeout 60 python3 "$src/tests/compat/ssh-garbage.py" "$port"
	check "... leaves nobody waiting" wait_for 20 no_doors
	says "... is over" still one@127.0.0.1 'echo still'
}

forwards()
{
	gate one@127.0.0.1 'cat >serve.py; nohup python3 serve.py >/dev/null 2>&1 & \
		until [ -s port ]; do sleep 0.1; done' <<'PY'
import http.server
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
open("port.new", "w").write(str(s.server_port))
__import__("os").rename("port.new", "port")
s.serve_forever()
PY
	inner=$(gate one@127.0.0.1 'cat port' </dev/null)
	here=$(free_port)
	ssh -F "$scratch/config" -p "$port" -N -L "127.0.0.1:$here:localhost:$inner" \
		one@127.0.0.1 </dev/null >"$scratch/fw" 2>&1 &
	client=$!
	at_exit "kill $client 2>/dev/null"
	if [ "$1" = none ]; then
		is "no port is forwarded where a session has no network of its own" \
			"$(wait_for 20 nc_open "$here" && curl -s "http://127.0.0.1:$here/" |
				wc -c)" 0
	else
		check "a port of the session ($1)" wait_for 20 curl -sf -o /dev/null \
			"http://127.0.0.1:$here/port"
		is "much through it ($1)" \
			"$(curl -s "http://127.0.0.1:$here/big" | sha256sum)" "$sum"
	fi
	kill $client 2>/dev/null
	wait $client 2>/dev/null
	ends_with "no port of this machine is served ($1)" 255 -o ExitOnForwardFailure=yes \
		-R 0:localhost:22 one@127.0.0.1 true
	ends_with "nothing beyond the session is reached ($1)" 255 \
		-W 127.0.0.2:22 one@127.0.0.1
	gate one@127.0.0.1 'pid=$(pgrep -f serve.py | head -1); [ -z "$pid" ] || kill $pid' \
		</dev/null
}

nc_open()
{
	python3 -c 'import socket, sys; socket.create_connection(("127.0.0.1", int(sys.argv[1])))' \
		"$1"
}

# The host is killed, or the door: nothing is left, everything can be had again.
killed()
{
	gate one@127.0.0.1 'echo in; sleep 50' >"$scratch/k" 2>&1 </dev/null &
	client=$!
	wait_for 20 grep -q in "$scratch/k"
	door=$(pgrep -P "$host_pid" -x sb-ssh | head -n 1)
	user=$(id -un)
	[ "$(id -u)" != 0 ] || user=nobody
	is "a door runs as nobody" "$(ps -o user= -p "$door")" "$user"
	is "... with a filter" "$(awk '/^Seccomp:/ { print $2 }' "/proc/$door/status")" 2
	kill -9 "$door"
	wait $client
	is "a door that is killed ends its connection" "$?" 255
	says "... alone" here one@127.0.0.1 'echo here'
	gate one@127.0.0.1 'echo in; sleep 50' >"$scratch/k2" 2>&1 </dev/null &
	client=$!
	wait_for 20 grep -q in "$scratch/k2"
	door=$(pgrep -P "$host_pid" -x sb-ssh | head -n 1)
	kill -9 "$host_pid"
	wait "$host_pid" 2>/dev/null
	wait $client
	is "a host that is killed ends its connections" "$?" 255
	check "... and leaves no door" wait_for 20 sh -c "! kill -0 $door"
	start_gate bwrap
	says "its sessions can be entered again, with the same host key" again \
		-p "$port" one@127.0.0.1 'echo again'
}

everything()
{
	start_gate "$1"
	"$sbctl" host create --id one >/dev/null
	"$sbctl" host create --id two >/dev/null
	commands "$1" "$2"
	hang_up "$1"
	terminals "$1"
	forwards "$1"
	files "$1"
	agent "$1"
	[ "$1" = none ] || editor "$1"
}

# The client's agent, for who is in the session.
agent()
{
	ssh-agent -a "$scratch/agent" >"$scratch/agent.env"
	agent_pid=$(sed -n 's/.*SSH_AGENT_PID=\([0-9]*\).*/\1/p' "$scratch/agent.env")
	at_exit "kill $agent_pid 2>/dev/null"
	SSH_AUTH_SOCK=$scratch/agent ssh-add -q "$key"
	sums=$(SSH_AUTH_SOCK=$scratch/agent gate -A -i "$key" one@127.0.0.1 \
		'for i in 1 2 3 4; do ssh-add -L | cksum & done; wait' </dev/null | sort -u)
	is "the agent answers who asks, four at once ($1)" "$sums" \
		"$(SSH_AUTH_SOCK=$scratch/agent ssh-add -L | cksum)"
	says "... only where it is forwarded ($1)" "none" one@127.0.0.1 \
		'echo ${SSH_AUTH_SOCK-none}'
	kill "$agent_pid"
}

# As an editor works: a server that stays, asked through a proxy of the client, several at once.
# shellcheck disable=SC2086
editor()
{
	all=
	printf '%s\n' \
		'nohup python3 -m http.server --bind 127.0.0.1 7070 >/dev/null 2>&1 &' \
		'until : 2>/dev/null >/dev/tcp/127.0.0.1/7070; do sleep 0.1; done; echo $!' |
		gate -T one@127.0.0.1 bash >"$scratch/server"
	here=$(free_port)
	ssh -F "$scratch/config" -p "$port" -N -D "127.0.0.1:$here" one@127.0.0.1 </dev/null \
		>"$scratch/fw" 2>&1 &
	client=$!
	at_exit "kill $client 2>/dev/null"
	through="curl -sf --socks5 127.0.0.1:$here"
	check "a server that was left behind is reached by -D ($1)" wait_for 20 \
		$through -o /dev/null http://127.0.0.1:7070/big
	for i in 1 2 3 4 5 6; do
		$through http://127.0.0.1:7070/big | sha256sum >"$scratch/s$i" &
		all="$all $!"
	done
	wait $all
	is "... six times at once ($1)" "$(sort -u "$scratch"/s[1-6])" "$sum"
	kill $client
	wait $client 2>/dev/null
	gate one@127.0.0.1 "kill $(cat "$scratch/server")" </dev/null
}

# Very many who say nothing.
idle()
{
	python3 - "$port" "$1" "$scratch/idle" <<'PY' &
import resource, socket, sys, time
n = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (n + 100, n + 100))
v = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(n)]
open(sys.argv[3], "w").close()
time.sleep(600)
PY
	client=$!
	at_exit "kill $client 2>/dev/null"
	check "$1 silent connections" wait_for 100 [ -e "$scratch/idle" ]
	says "... lock nobody out" in one@127.0.0.1 'echo in'
	is "... and none of them is turned away for want of room" \
		"$(grep -c 'refused, too many connections' "$host_log")" 0
	check "... are few doors" few_doors
	kill $client
	wait $client 2>/dev/null
	rm "$scratch/idle"
}

few_doors()
{
	[ "$(pgrep -c -P "$host_pid" -x sb-ssh)" -le 40 ]
}

# Files, by all who move them.
files()
{
	tree=$scratch/tree
	rm -rf "$tree" "$scratch/back"
	mkdir -p "$tree/a/b"
	echo one >"$tree/a/one"
	head -c 3000000 /dev/urandom >"$tree/a/b/two"
	ln -s one "$tree/a/link"
	printf 'put -r %s\nrename tree/a/one tree/a/x\nchmod 600 tree/a/x\nget -r tree %s\n' \
		"$tree" "$scratch/back" >"$scratch/batch"
	rm "$tree/a/link"
	check "sftp ($1)" timeout 60 sftp -F "$scratch/config" -P "$port" -b "$scratch/batch" \
		one@127.0.0.1
	mv "$scratch/back/a/x" "$scratch/back/a/one"
	check "... there and back is the same ($1)" diff -r "$tree" "$scratch/back"
	ln -s one "$tree/a/link"
	for how in -s -O; do
		rm -rf "$scratch/back"
		check "scp $how there ($1)" timeout 60 scp -q $how -r -F "$scratch/config" \
			-P "$port" "$tree" "one@127.0.0.1:scp$how"
		check "scp $how back ($1)" timeout 60 scp -q $how -r -F "$scratch/config" \
			-P "$port" "one@127.0.0.1:scp$how" "$scratch/back"
		check "... is the same ($1)" diff -r "$tree" "$scratch/back"
	done
	if command -v rsync >/dev/null; then
		rm -rf "$scratch/back"
		check "rsync there ($1)" timeout 60 rsync -a --delete \
			-e "ssh -F $scratch/config -p $port" "$tree/" one@127.0.0.1:rs/
		check "rsync back ($1)" timeout 60 rsync -a -e "ssh -F $scratch/config -p $port" \
			one@127.0.0.1:rs/ "$scratch/back"
		check "... is the same ($1)" diff -r --no-dereference "$tree" "$scratch/back"
	fi
}

# git pushes to and clones from the session.
git_too()
{
	command -v git >/dev/null || { skip "git" "it is not installed" && return; }
	gate one@127.0.0.1 'git init -q --bare repo.git' </dev/null
	rm -rf "$scratch/g" "$scratch/g2"
	git init -q "$scratch/g"
	echo hello >"$scratch/g/f"
	git -C "$scratch/g" add f
	git -C "$scratch/g" -c user.name=x -c user.email=x@x commit -qm x
	GIT_SSH_COMMAND="ssh -F $scratch/config"
	export GIT_SSH_COMMAND
	check "git push" timeout 60 git -C "$scratch/g" push -q \
		"ssh://one@127.0.0.1:$port/~/repo.git" HEAD:main
	check "git clone" timeout 60 git clone -q -b main \
		"ssh://one@127.0.0.1:$port/~/repo.git" "$scratch/g2"
	is "... has what was pushed" "$(cat "$scratch/g2/f")" hello
}

# Our own client, which is libssh2.
sbsync_too()
{
	mkdir -p "$scratch/ws"
	echo here >"$scratch/ws/f"
	sed "s/^Host .*/Host gate\n	HostName 127.0.0.1\n	Port $port\n	User one/" \
		"$scratch/config" >"$scratch/config-sync"
	HOME=$scratch/home XDG_STATE_HOME=$scratch/home/state
	mkdir -p "$HOME"
	export HOME XDG_STATE_HOME
	check "sbsync start" timeout 100 "$build/sbsync" start -F "$scratch/config-sync" \
		"$scratch/ws" gate:ws
	gate one@127.0.0.1 'cat ws/f; echo there >ws/g' </dev/null >"$scratch/out"
	is "... brings files there" "$(cat "$scratch/out")" here
	check "sbsync sync" sh -c "cd $scratch/ws && timeout 100 $build/sbsync sync"
	is "... brings files back" "$(cat "$scratch/ws/g")" there
	check "sbsync stop" sh -c "cd $scratch/ws && timeout 100 $build/sbsync stop"
}

paramiko_too()
{
	py=
	for p in python3 /usr/bin/python3; do
		[ -n "$py" ] || ! "$p" -c 'import paramiko' 2>/dev/null || py=$p
	done
	[ -n "$py" ] || { skip "paramiko" "python3-paramiko is not installed" && return; }
	relay_tap "paramiko" timeout 120 "$py" -W ignore "$src/tests/compat/ssh-paramiko.py" \
		"$port" one "$key" "$("$sbctl" host token one)"
}

(umask 077 && echo admin-token-0123456789 >"$scratch/token")
if "$build/sbhostd" --check --listen "unix:$scratch/x" --state-dir "$scratch/probe" \
	--container-runtime bwrap --storage-backend local-disk \
	--sessions-root-dir "$scratch/sess" >"$scratch/why" 2>&1; then
	everything bwrap /workspace
	git_too
	sbsync_too
	paramiko_too
	strangers
	tokens
	garbage
	idle "${SB_SSH_IDLE:-100}"
	killed
	end_gate bwrap
else
	skip "SSH into bwrap" "$(tail -n 1 "$scratch/why")"
fi
for runtime in ${SB_SSH_RUNTIMES-}; do
	if "$build/sbhostd" --check --listen "unix:$scratch/x" --state-dir "$scratch/probe" \
		--container-runtime "$runtime" --storage-backend local-disk \
		--sessions-root-dir "$scratch/sess" >"$scratch/why" 2>&1; then
		home=/workspace
		[ "$runtime" != none ] || home=$scratch/sess/one
		everything "$runtime" "$home"
		end_gate "$runtime"
	else
		skip "SSH into $runtime" "$(tail -n 1 "$scratch/why")"
	fi
done
finish
