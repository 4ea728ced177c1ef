#!/bin/sh
# SPDX-License-Identifier: MIT
# What sandboxes of backend e2b do when the service fails, in every way it can: before our own host
# stands a proxy that plays the errors and checks each request against the vendor's descriptions.
# Then: no secret is in a request that makes a sandbox, in a command line, a log, a state, an event.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3
. "${SB_TOP_SRCDIR:-.}/tests/lib/e2bhost.sh"

SBSYNC_AGENT=$build/sbsync-agent
SBSYNC_STATE_DIR=$scratch/mine
XDG_CONFIG_HOME=$scratch/config
XDG_CACHE_HOME=$scratch/cache
export SBSYNC_AGENT SBSYNC_STATE_DIR XDG_CONFIG_HOME XDG_CACHE_HOME
start_e2b_host "$(e2b_runtime)"

spec=$src/../shared/specs/e2b
[ -e "$spec/openapi.yml" ] && python3 -c 'import yaml' 2>/dev/null || spec=
echo '[]' >"$scratch/faults"
python3 "$src/tests/provider/e2bproxy.py" "$scratch/port" "$e2b_url" "$scratch/record" \
	"$scratch/faults" $spec >"$scratch/proxy.log" 2>&1 &
proxy=$!
at_exit "kill $proxy 2>/dev/null; wait $proxy 2>/dev/null"
wait_for 20 test -s "$scratch/port" || skip_all "the proxy does not start"
url=http://127.0.0.1:$(cat "$scratch/port")
mkdir -p "$XDG_CONFIG_HOME/sandbox"
cat >"$XDG_CONFIG_HOME/sandbox/config.yaml" <<END
profiles:
  cloud:
    backend: e2b
    e2b: {api_url: "$url", sandbox_url: "$url"}
    secret_env: {MY_TOKEN: "env:SB_E2E_SECRET"}
  patient: {backend: e2b, timeouts: {prepare: 2s}, e2b: {api_url: "$url", sandbox_url: "$url"}}
END
secret=s3cr3t-canary-1f2e3d
SB_E2E_SECRET=$secret
export SB_E2E_SECRET

# play RULE...: from now on these errors are played, none without one; forgets what was recorded.
play()
{
	printf '[%s]\n' "$*" >"$scratch/faults.new"
	mv "$scratch/faults.new" "$scratch/faults"
	[ ! -e "$scratch/record" ] || cat "$scratch/record" >>"$scratch/all"
	: >"$scratch/record"
}

# How many requests of that METHOD and target there were since.
asked()
{
	python3 - "$scratch/record" "$1" <<'PY'
import json, re, sys
print(sum(bool(re.match(sys.argv[2], r["method"] + " " + r["target"]))
          for r in map(json.loads, open(sys.argv[1]))))
PY
}

n=0
# ws: a new workspace in $ws
ws()
{
	n=$((n + 1))
	ws=$scratch/ws$n
	mkdir "$ws"
	echo here >"$ws/here"
}

# run COMMAND: in a sandbox on $ws
run()
{
	timeout 120 "$sbctl" run -P "${profile:-cloud}" -q -T -C "$ws" -- sh -c "$1"
}

works()
{
	ws
	run 'cat here >there' && [ "$(cat "$ws/there")" = here ]
}

none_left()
{
	is "nothing is left ($1)" "$(e2b_left)" ""
}

# A look at the account changes nothing, and says what is wrong.
doctor()
{
	"$sbctl" doctor -b e2b -s "api_url=$url" -s "sandbox_url=$url" "$@"
}
play
check "doctor: all is right" doctor
is "doctor: it only looks" "$(asked '(POST|DELETE|PUT)')" 0
for case in "template=nosuch:template nosuch is not there" \
	"timeout=5:use seconds from 15 to 86400" \
	"key=env:NOT_SET:the variable is not set" \
	"colour=red:use key, template, timeout, domain" \
	"api_url=http\\:127.0.0.1\\:1:use http"; do
	value=$(printf %s "${case%:*}" | tr -d '\\')
	must_fail "doctor: $value" 1 doctor -s "$value"
	case $output in
	*"${case##*:}"*) ok "doctor: $value: says the way out" ;;
	*) not_ok "doctor: $value: says the way out" "$output" ;;
	esac
done
cat >"$scratch/bad.yaml" <<'END'
profiles:
  bad:
    backend: e2b
    e2b:
      timeout: 5
      key: e2b_itself
END
must_fail "a profile with mistakes" 1 "$sbctl" profile check --config "$scratch/bad.yaml"
case $output in
*'bad.yaml:5: timeout is "5": use seconds from 15 to 86400'*'bad.yaml:6: key is '*"use env:NAME"*)
	ok "a profile with mistakes: file, line and what is allowed" ;;
*) not_ok "a profile with mistakes: file, line and what is allowed" "$output" ;;
esac
"$sbctl" providers >"$scratch/providers"
check "providers: tells the profiles" grep -qx '  *profiles: cloud, patient' "$scratch/providers"

# With errors that pass.
play '{"match": "POST /sandboxes$", "times": 2, "status": 429, "headers": {"Retry-After": "0"}}'
check "429 with Retry-After: the create is tried again" works
is "so often as it takes" "$(asked 'POST /sandboxes$')" 3
play '{"match": "POST /sandboxes$", "times": 1, "status": 429},
	{"match": "GET /v2/sandboxes", "times": 2, "status": 503},
	{"match": "POST /sandboxes/.*/connect", "times": 1, "status": 502},
	{"match": "DELETE", "times": 1, "status": 500}'
check "429 without it, 503 of a list, 502 of a connect, 500 of a kill: tried again" works
play '{"match": "GET /v2/sandboxes", "times": 1, "half": 1},
	{"match": "DELETE", "times": 1, "after": true}'
check "an answer that breaks off, one that is lost: tried again" works
none_left "errors that pass"

# With errors that stay.
refused()
{
	ws
	must_fail "$1" 1 run 'echo no >there'
	case $output in
	*$2*) ok "$1: says why" ;;
	*) not_ok "$1: says why" "$output" ;;
	esac
}
said='{\"code\": 401, \"message\": \"'$E2B_API_KEY'\"}'
play '{"match": ".", "status": 401, "body": "'"$said"'"}'
refused "a wrong key" "HTTP 401: \*\*\*\*"
must_fail "doctor: a wrong key" 1 doctor
play '{"match": "POST /sandboxes$", "status": 400, "body": "{\"message\": \"no such size\"}"}'
refused "a refused create" "no such size"
is "a refused create is asked for once" "$(asked 'POST /sandboxes$')" 1
play '{"match": "POST /sandboxes$", "status": 404, "body": "{\"message\": \"x\"}"}'
refused "no such template" "template base is not there"
play '{"match": "POST /sandboxes$", "status": 422, "body": "{\"message\": \"odd\"}"}'
refused "a create that cannot be" "odd"
play '{"match": "POST /sandboxes$", "status": 503}'
refused "a create that may have happened" "HTTP 503"
is "a create that may have happened is asked for once" "$(asked 'POST /sandboxes$')" 1
play '{"match": "GET /v2/sandboxes", "stall": true}'
profile=patient
refused "a service that does not answer" "deadline passed"
profile=
play
check "what was refused is cleared up" "$sbctl" recover -q
none_left "errors that stay"

# What was made without our hearing of it is found by its metadata.
play '{"match": "POST /sandboxes$", "times": 1, "after": true}'
ws
must_fail "a create whose answer is lost" 1 run 'echo no >there'
play
check "recover clears it up" "$sbctl" recover -q
none_left "a lost answer"

# Cut in the middle: nothing is lost, and what is not back keeps its sandbox.
comes_back()
{
	ws
	mkfifo "$scratch/in$n"
	run 'echo made >made; echo more >>here; read x' <"$scratch/in$n" >"$scratch/out" 2>&1 &
	pid=$!
	exec 7>"$scratch/in$n"
	wait_for 60 made_there && kill -0 $pid 2>/dev/null || return 1
	play "$1"
	exec 7>&-
	wait $pid
	[ $? -ne 0 ] || [ "$(cat "$ws/made" 2>/dev/null)" = made ] || return 1
	play
	timeout 100 "$sbctl" recover -q 2>>"$scratch/out"
	[ "$(cat "$ws/made")" = made ] && [ "$(tail -n 1 "$ws/here")" = more ]
}
# What the command makes is there, or the command is gone.
made_there()
{
	kill -0 $pid 2>/dev/null || return 0
	[ -n "$(find "$scratch/sess" -name made -size +0c)" ]
}
check "the stream of the program breaks off" comes_back \
	'{"match": "process.Process/Start", "half": 300},
	{"match": "SendInput", "times": 1, "cut": true}'
check "input that may have arrived is not sent twice" comes_back \
	'{"match": "SendInput", "times": 1, "skip": 1, "after": true}'
check "sandboxes answer 502 for a while" comes_back \
	'{"match": "process.Process", "times": 4, "status": 502}'
none_left "cuts"

# One that dies in the middle of the sync back is not taken for one whose work was deleted.
dies()
{
	ws
	mkfifo "$scratch/in$n"
	run 'echo made >made; rm here; read x' <"$scratch/in$n" >"$scratch/out" 2>&1 &
	pid=$!
	exec 7>"$scratch/in$n"
	wait_for 60 made_there && kill -0 $pid 2>/dev/null || return 1
	play '{"match": "SendInput", "times": 1, "skip": 1, "kill": true}'
	exec 7>&-
	wait $pid
	status=$?
	play
	[ $status -eq 1 ] && [ "$(cat "$ws/here")" = here ] && [ ! -e "$ws/made" ] &&
		"$sbctl" ls | grep -q unsynced
}
check "a sandbox that dies in the middle of the sync back" dies
check "it is given up only when asked" "$sbctl" destroy --discard "$("$sbctl" ls |
	awk '/unsynced/ { print $1 }')"
none_left "a dead sandbox"

# Secrets. The command shows that it has its secret, and holds still while we look.
play
ws
mkfifo "$scratch/in$n"
timeout 120 "$sbctl" run -P cloud -vv -T -C "$ws" -- \
	sh -c 'printf %s "$MY_TOKEN" | wc -c >made; read x' <"$scratch/in$n" >"$scratch/log" 2>&1 &
pid=$!
exec 7>"$scratch/in$n"
wait_for 60 made_there
cat /proc/[0-9]*/cmdline >"$scratch/cmdlines" 2>/dev/null
cp -r "$SBSYNC_STATE_DIR" "$scratch/during"
"$sbctl" ls --json >"$scratch/ls" 2>&1
exec 7>&-
wait $pid
"$sbctl" events >"$scratch/events" 2>&1
is "the command had its secret" "$(cat "$ws/made")" ${#secret}
check "the log is one" grep -q "api.*sandboxes\|/sandboxes" "$scratch/log"
cat "$scratch/record" >>"$scratch/all"
for what in "$secret" "$E2B_API_KEY"; do
	is "not on a command line, in a log, a state, an event (${what%%-*})" \
		"$(grep -rl -e "$what" "$scratch/cmdlines" "$scratch/log" "$scratch/during" \
			"$SBSYNC_STATE_DIR" "$scratch/ls" "$scratch/events" "$host_log")" ""
done
python3 - "$scratch/all" "$secret" "$E2B_API_KEY" >"$scratch/told" <<'PY'
import base64, json, sys
for r in map(json.loads, open(sys.argv[1])):
    where = "%s %s" % (r["method"], r["target"])
    for text in (sys.argv[2], sys.argv[3]):
        if text in r["target"] or text in r["body"]:
            print("secret:", where)
        if any(text in v for k, v in r["headers"].items() if k != "x-api-key"):
            print("secret in a header:", where)
    for wrong in r["wrong"]:
        print("wrong: %s: %s" % (where, wrong))
PY
is "no request has a secret in its target or body" "$(grep secret "$scratch/told")" ""
if [ -n "$spec" ]; then
	is "every request is as the vendor describes it" \
		"$(grep wrong "$scratch/told" | sort | uniq -c | head -n 5)" ""
else
	skip "every request is as the vendor describes it" "its descriptions are not here"
fi
is "and all of them were seen" "$([ "$(wc -l <"$scratch/all")" -gt 100 ] && echo many)" many
none_left "the end"
finish
