#!/bin/sh
# SPDX-License-Identifier: MIT
# sbhostd and sbctl as an operator meets them: configuration from file, environment and flags,
# tokens and TLS, signals, and sessions that outlive the daemon.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"
need python3

hostd=$build/sbhostd
local_disk="--storage-backend local-disk --sessions-root-dir $scratch/sessions"
local_disk="$local_disk --bases-dir $scratch/bases"
mkdir -p "$scratch/bases/img"
echo hello >"$scratch/bases/img/hello"

# --- what cannot work is said in one line ---------------------------------------------------------
says()
{
	what=$1 status=$2 want=$3
	shift 3
	must_fail "$what" "$status" "$@"
	found=$(printf '%s\n' "$output" | grep -c -F -e "$want")
	is "$what: one line that says why" "$found/$(printf '%s\n' "$output" | wc -l)" 1/1
}
says "an unknown option" 2 'did you mean --max-sessions?' "$hostd" --max-session 3
says "an argument too much" 2 'unexpected argument "x"' "$hostd" x
says "no state directory" 2 '--state-dir is required' "$hostd"
says "a bad number in the environment" 2 'SANDBOX_MAX_SESSIONS: --max-sessions "many"' \
	env SANDBOX_MAX_SESSIONS=many "$hostd" --state-dir "$scratch/s"
says "a bad flag in the environment" 1 'must be true or false' env SANDBOX_SUDO=perhaps \
	"$hostd" --state-dir "$scratch/s"
says "a bad mode" 2 '--socket-mode "99"' "$hostd" --check --state-dir "$scratch/s" --socket-mode 99
printf 'pool: tank\nno-such-option: 1\n' >"$scratch/bad.yaml"
says "an unknown key in the file" 1 "bad.yaml:2: there is no option no-such-option" \
	"$hostd" -c "$scratch/bad.yaml"
printf 'pool: [\n' >"$scratch/bad.yaml"
says "a file that is not YAML" 1 'bad.yaml:2: not YAML' "$hostd" -c "$scratch/bad.yaml"
printf 'tokens:\n  - name: x\n    role: king\n    token: 0123456789abcdef\n' >"$scratch/bad.yaml"
chmod 600 "$scratch/bad.yaml"
says "an unknown role" 1 'role "king" must be admin, session or monitor' \
	"$hostd" --check -c "$scratch/bad.yaml" --state-dir "$scratch/s"
echo 0123456789abcdef >"$scratch/open-token"
chmod 644 "$scratch/open-token"
says "a token file that others can read" 1 'is open to others' \
	"$hostd" --check --state-dir "$scratch/s" --token-file "$scratch/open-token"
# shellcheck disable=SC2086
says "TCP without a token" 1 'needs a token' \
	"$hostd" --state-dir "$scratch/s" $local_disk --listen 127.0.0.1:0
says "a missing TLS file" 1 'TLS file' env SANDBOX_AUTH_TOKEN=0123456789abcdef \
	"$hostd" --state-dir "$scratch/s" $local_disk --listen 127.0.0.1:0 \
	--tls-cert "$scratch/none" --tls-key "$scratch/none"
(umask 077; echo admin-token-0123456789 >"$scratch/admin")
for where in 0.0.0.0:0 :0 '[::]:0'; do
	# shellcheck disable=SC2086
	says "plain TCP on $where" 1 'shows tokens to the network' "$hostd" \
		--state-dir "$scratch/s" $local_disk --listen "$where" --token-file "$scratch/admin"
done
printf 'pool: tank\nlog-level: info\npool: other\n' >"$scratch/bad.yaml"
says "an option twice" 1 'bad.yaml:3: this option is given twice' "$hostd" -c "$scratch/bad.yaml"
printf 'tokens:\n  - {name: x, role: admin, role: monitor, token: 0123456789abcdef}\n' \
	>"$scratch/bad.yaml"
says "a field of a token twice" 1 'given twice' "$hostd" -c "$scratch/bad.yaml"
printf 'tokens:\n  - {name: x, role: admin, token: 0123456789abcdef}\n' >"$scratch/bad.yaml"
chmod 644 "$scratch/bad.yaml"
says "a token in a file that others can read" 1 'has a token in it and is open to others' \
	"$hostd" -c "$scratch/bad.yaml" --check --state-dir "$scratch/s"

# --- --check finds every mistake, and makes nothing -----------------------------------------------
head -c 32 /dev/urandom >"$scratch/open-key"
chmod 644 "$scratch/open-key"
says "a key that others can read" 1 'is open to others' "$hostd" --check \
	--state-dir "$scratch/s" --token-key-file "$scratch/open-key"
if command -v openssl >/dev/null; then
	for n in 1 2; do
		openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
			-subj /CN=localhost -keyout "$scratch/key$n.pem" \
			-out "$scratch/cert$n.pem" 2>/dev/null
	done
	chmod 600 "$scratch"/key?.pem
	with_tls()
	{
		# shellcheck disable=SC2086
		"$hostd" --check --state-dir "$scratch/none" $local_disk --default-base img \
			--listen 0.0.0.0:0 --token-file "$scratch/admin" \
			--tls-cert "$1" --tls-key "$2"
	}
	check "good TLS files" with_tls "$scratch/cert1.pem" "$scratch/key1.pem"
	is "and nothing is made" "$(find "$scratch" -path "$scratch/none*")" ""
	says "the key of another certificate" 1 'is not the one of the certificate' \
		with_tls "$scratch/cert1.pem" "$scratch/key2.pem"
	says "a certificate that is none" 1 'holds no certificate' \
		with_tls "$scratch/bad.yaml" "$scratch/key1.pem"
	says "a TLS file that is not there" 1 'TLS file' \
		with_tls "$scratch/cert1.pem" "$scratch/nokey.pem"
	chmod 644 "$scratch/key2.pem"
	says "a TLS key that others can read" 1 'is open to others' \
		with_tls "$scratch/cert2.pem" "$scratch/key2.pem"
fi
# shellcheck disable=SC2086
must_fail "two mistakes" 1 "$hostd" --check --state-dir "$scratch/s" $local_disk \
	--listen 0.0.0.0:0 --token-file "$scratch/admin" --default-base nothing
is "are two lines" "$(printf '%s\n' "$output" |
	grep -c -e 'shows tokens' -e 'default base nothing: ')" 2
says "a host that is not there" 1 'connect to unix:' "$sbctl" host -H "unix:$scratch/none" health
must_fail "a verb that is not there" 2 "$sbctl" host nonsense
must_fail "too few arguments" 2 "$sbctl" host get
is "no secret in a message" "$(grep -r -c 0123456789abcdef "$scratch/.tap")" 0

# --- configuration: file, then environment, then flags --------------------------------------------
agent=agent-token-0123456789
monitor=monitor-token-0123456789
cat >"$scratch/host.yaml" <<YAML
# Both spellings of names are taken.
storage-backend: zfs
sessions_root_dir: $scratch/sessions
bases-dir: $scratch/bases
default-base: img
max-sessions: 100
log-level: debug
listen: [ "unix:$scratch/other.sock" ]
tokens:
  - { name: ops, role: admin, token-file: $scratch/admin }
  - name: agent
    role: session
    session: one
    token: $agent
  - name: prometheus
    role: monitor
    sha256: $(printf %s $monitor | sha256sum | cut -d ' ' -f 1)
YAML
chmod 600 "$scratch/host.yaml"
port=$(free_port)
SANDBOX_STORAGE_BACKEND=local-disk SANDBOX_MAX_SESSIONS=3 start_host --config "$scratch/host.yaml" \
	--max-sessions 2 --listen "127.0.0.1:$port" --socket-mode 0660
is "flags replace the file's addresses" "$(find "$scratch" -name other.sock)" ""
is "the socket's mode" "$(stat -c %a "$host_socket")" 660
is "the state directory is private" \
	"$(stat -c %a "$scratch/state" "$scratch/state/session-token.key" | tr '\n' ' ')" "700 600 "
check "a session from the default base" "$sbctl" host create --id one -L team=a
is "the base is in it" "$(cat "$scratch/sessions/one/hello")" hello
check "a second one" "$sbctl" host create --id two
must_fail "the flag's limit of sessions holds" 1 "$sbctl" host create --id three
is "and is called by its name" "$output" "sbctl: sandbox: max sessions reached"
is "ls shows both" \
	"$("$sbctl" host ls | awk 'NR > 1 { print $1, $2 }' | tr '\n' ' ')" "one active two active "
is "ls by label" \
	"$("$sbctl" host ls --json --label team=a | json '[s["ID"] for s in o["Sessions"]]')" \
	"['one']"
others=$(python3 - "$host_log" <<'PY'
import json, sys
keys = {"time", "level", "component", "msg"}
print(sum(set(json.loads(line)) != keys for line in open(sys.argv[1])))
PY
)
is "every log line is JSON" "$others" 0

is "what was made is in the log" \
	"$(grep -c 'session one: created' "$host_log") $(grep -c 'level":"info' "$host_log" |
		awk '{ print ($1 > 0) }')" "1 1"

# --- tokens ---------------------------------------------------------------------------------------
url=http://127.0.0.1:$port
must_fail "TCP wants a token" 1 "$sbctl" host -H "$url" ls
is "who failed to log in is in the log" \
	"$(grep -c 'failed login from 127.0.0.1 port' "$host_log")" 1
page()
{
	python3 -c 'import sys, urllib.request as u
print(u.urlopen(sys.argv[1]).read().decode().strip())' "$url$1" 2>&1
}
is "it lives, and it is ready" "$(page /health)/$(page '/health?ready')" ok/ok
check "the admin's, from a file" "$sbctl" host -H "$url" --token-file "$scratch/admin" ls
check "the session's, for its session" env SANDBOX_AUTH_TOKEN=$agent "$sbctl" host -H "$url" get one
must_fail "the session's, for another" 1 env SANDBOX_AUTH_TOKEN=$agent \
	"$sbctl" host -H "$url" get two
must_fail "the session's, to list" 1 env SANDBOX_AUTH_TOKEN=$agent "$sbctl" host -H "$url" ls
check "the monitor's, for health" env SANDBOX_AUTH_TOKEN=$monitor "$sbctl" host -H "$url" health
must_fail "the monitor's, for a session" 1 env SANDBOX_AUTH_TOKEN=$monitor \
	"$sbctl" host -H "$url" get one
issued=$("$sbctl" host token --ttl 1h two)
check "an issued one, for its session" env SANDBOX_AUTH_TOKEN="$issued" \
	"$sbctl" host -H "$url" get two
must_fail "an issued one, for another" 1 env SANDBOX_AUTH_TOKEN="$issued" \
	"$sbctl" host -H "$url" get one
"$sbctl" host destroy two
is "what went is in the log" "$(grep -c 'session two: destroyed' "$host_log")" 1
is "tokens stay out of the log" "$(grep -c -e "$agent" -e "$issued" -e admin-token "$host_log")" 0

# --- commands and processes -----------------------------------------------------------------------
out=$("$sbctl" host exec one 'echo out; echo err >&2' 2>"$scratch/err")
is "exec prints what the command prints" "$out/$(cat "$scratch/err")" out/err
must_fail "exec ends as the command ends" 7 "$sbctl" host exec one 'exit 7'
is "exec hands words on as they are" \
	"$("$sbctl" host exec one printf '%s|' 'a b' "it's" '$HOME' -x)" "a b|it's|\$HOME|-x|"
"$sbctl" host exec --call-id c1 one 'echo x >>n; wc -l <n' >/dev/null
is "a repeated call is known" \
	"$("$sbctl" host exec --call-id c1 --json one 'echo x >>n; wc -l <n' |
		json 'o["Response"]["Replayed"]')" True
is "and runs once" "$("$sbctl" host exec one 'wc -l <n')" 1
is "tool prints the answer" \
	"$("$sbctl" host tool --params '{"cmd":"echo tool"}' one bash | grep -c tool)" 1
must_fail "an unknown tool" 1 "$sbctl" host tool one nonsense
must_fail "a command that takes too long" 1 "$sbctl" host exec -t 300ms one 'sleep 100'
process=$("$sbctl" host launch --env GREETING=hi one /bin/sh -c '
	echo "$GREETING"
	echo bad >&2
	until [ -e end ]; do sleep 0.02; done
	exit 3')
is "ps shows the process" \
	"$("$sbctl" host ps one | awk 'NR > 1 { print $1, $2 }')" "$process running"
"$sbctl" host exec one 'touch end'
is "logs --follow until the end" \
	"$("$sbctl" host logs --follow one "$process" 2>"$scratch/err")/$(cat "$scratch/err")" \
	hi/bad
is "logs of one stream" "$("$sbctl" host logs --stream stderr one "$process" 2>&1)" bad
# Waits until the process has ended, and tells how.
end_of()
{
	wait_for 10 sh -c "$sbctl host status one $1 | grep -q exited"
	"$sbctl" host status --json one "$1" | json '[o["Status"], o["ExitCode"]]'
}
is "status tells how it ended" "$(end_of "$process")" "['exited', 3]"
process=$("$sbctl" host launch one /bin/sleep 1000)
check "kill" "$sbctl" host kill --signal 9 one "$process"
is "and it is dead" "$(end_of "$process")" "['exited', 137]"
check "label" "$sbctl" host label one team=b x=y
is "get shows the labels" \
	"$("$sbctl" host get --json one | json 'o["Session"]["Labels"]')" "{'team': 'b', 'x': 'y'}"
"$sbctl" host label one team=a >/dev/null
check "pause" "$sbctl" host pause one
must_fail "no command in a paused session" 1 "$sbctl" host exec one true
check "resume" "$sbctl" host resume one
check "capabilities" "$sbctl" host capabilities
is "bases" "$("$sbctl" host bases)" img

# --- signals: nothing is lost ---------------------------------------------------------------------
"$sbctl" host events >"$scratch/events" 2>&1 &
events=$!
wait_for 10 grep -q stream.started "$scratch/events"
"$sbctl" host exec one 'touch running; until [ -e finish ]; do sleep 0.02; done; echo finished' \
	>"$scratch/late" 2>&1 &
late=$!
wait_for 10 test -e "$scratch/sessions/one/running"
kill "$host_pid"
wait_for 10 sh -c "! $sbctl host health"
touch "$scratch/sessions/one/finish"
wait "$host_pid"
host_status=$?
host_pid=
wait "$late"
is "what runs may finish, and its answer arrives" "$?/$(cat "$scratch/late")" 0/finished
is "TERM ends it with 0" "$host_status" 0
wait "$events"
is "and ends streams in order" "$(tail -n 1 "$scratch/events")" "sbctl: sandbox: shutting down"
is "the socket is gone" "$(find "$scratch" -name host.sock)" ""
# shellcheck disable=SC2086
start_host $local_disk
is "the session is back" \
	"$("$sbctl" host get one --json | json '[o["Session"][k] for k in ("State", "Labels")]')" \
	"['active', {'team': 'a'}]"
echo mine >"$scratch/sessions/one/mine"
kill -9 "$host_pid"
wait "$host_pid" 2>/dev/null
# shellcheck disable=SC2086
start_host $local_disk
is "after kill -9, too" "$("$sbctl" host get one --json | json 'o["Session"]["State"]')" active
is "with its content" "$(cat "$scratch/sessions/one/mine")" mine
must_fail "a second daemon does not start on the same state" 1 \
	"$hostd" --state-dir "$scratch/state" $local_disk --listen "unix:$scratch/second.sock"
says "nor with another state on the same sessions" 1 'another host has the sessions' \
	"$hostd" --state-dir "$scratch/state2" $local_disk --orphans destroy \
	--listen "unix:$scratch/second.sock"
is "which are still there" "$(cat "$scratch/sessions/one/mine")" mine
"$sbctl" host destroy one
stop_host

# --- a second signal ends it, whatever it waits for -----------------------------------------------
# shellcheck disable=SC2086
start_host $local_disk --shutdown-timeout 10m --drain-timeout 10m
"$sbctl" host create --id busy >/dev/null
"$sbctl" host exec busy 'touch here; trap "" TERM; sleep 100' >/dev/null 2>&1 &
waiting=$!
wait_for 20 test -e "$scratch/sessions/busy/here"
kill "$host_pid"
wait_for 20 grep -q 'draining, every session is kept' "$host_log"
kill "$host_pid"
ended()
{
	case $(cut -d ' ' -f 3 "/proc/$host_pid/stat" 2>/dev/null) in
	Z | '') true ;;
	*) false ;;
	esac
}
check "the second TERM ends the daemon" wait_for 60 ended
wait "$host_pid" "$waiting"
# shellcheck disable=SC2086
start_host $local_disk
check "and the session is still there" "$sbctl" host destroy busy
stop_host

# --- TLS ------------------------------------------------------------------------------------------
if command -v openssl >/dev/null; then
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
		-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 \
		-keyout "$scratch/key.pem" -out "$scratch/cert.pem" 2>/dev/null
	chmod 600 "$scratch/key.pem"
	# shellcheck disable=SC2086
	start_host $local_disk --listen "127.0.0.1:$port" --token-file "$scratch/admin" \
		--tls-cert "$scratch/cert.pem" --tls-key "$scratch/key.pem"
	check "over TLS" "$sbctl" host -H "https://127.0.0.1:$port" --ca-file "$scratch/cert.pem" \
		--token-file "$scratch/admin" health
	must_fail "a certificate nobody vouches for" 1 \
		"$sbctl" host -H "https://127.0.0.1:$port" --token-file "$scratch/admin" health
	must_fail "no TLS where it is wanted" 1 \
		"$sbctl" host -H "http://127.0.0.1:$port" --token-file "$scratch/admin" -t 5s health
	tls()
	{
		timeout 20 openssl s_client -connect "127.0.0.1:$port" "$1" \
			-cipher ALL:@SECLEVEL=0 </dev/null >/dev/null 2>&1
		echo $?
	}
	is "TLS 1.0 to 1.3" "$(tls -tls1) $(tls -tls1_1) $(tls -tls1_2) $(tls -tls1_3)" "1 1 0 0"
	stop_host
else
	skip "TLS" "openssl is not installed"
fi
finish
