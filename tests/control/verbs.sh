#!/bin/sh
# SPDX-License-Identifier: MIT
# sbctl control: controls in the profile file, every verb, what goes wrong.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"

XDG_CONFIG_HOME=$scratch/config XDG_STATE_HOME=$scratch/state-home HOME=$scratch
export XDG_CONFIG_HOME XDG_STATE_HOME HOME
mkdir -p "$XDG_CONFIG_HOME/sandbox" "$scratch/state-home"
file=$XDG_CONFIG_HOME/sandbox/config.yaml
ctl() { timeout 60 "$sbctl" control "$@"; }

# The file.
must_fail "without a control there is nothing to do" 2 ctl ls
is "and where to write one is said" "$(echo "$output" | grep -c "$file, see CONTROLS")" 1
cat >"$file" <<'END'
controls:
  a b: {kind: node}
  two:
    kind: nod
  three:
    kind: node
    url: ftp://x
    tokenfile: /x
    ask_timeout: soon
  four:
    url: unix:/x
defaults: {control: five}
END
must_fail "a file with mistakes is refused" 1 ctl ls
for mistake in '2: "a b" is not a control' '5: *control two: there is no kind "nod"' \
	'7: control three: url is "ftp://x"' '8: control three: node has no option "tokenfile"' \
	'9: control three: ask_timeout is "soon"' '10: control four has no kind' \
	'12: there is no control "five"'; do
	check "with its line: $mistake" sh -c 'echo "$1" | grep -q -- "$2"' sh "$output" \
		"${mistake#5: \*}"
done
must_fail "sbctl profile check tells them, too" 1 "$sbctl" profile check --no-project
mkdir "$scratch/project"
echo 'controls: {x: {kind: node}}' >"$scratch/project/.sandbox.yaml"
: >"$file"
must_fail "a project's file has no controls" 1 "$sbctl" profile check -C "$scratch/project"

cat >"$file" <<END
controls:
  box: {kind: node, url: "unix:$host_socket"}
  gone: {kind: node, url: "unix:$scratch/gone.sock"}
END
must_fail "of two controls one has to be named" 2 ctl ls
must_fail "a name that is not there" 1 ctl ls --control bix
is "names those there are" "$(echo "$output" | grep -c 'there are box, gone')" 1
must_fail "a place that is not there" 1 ctl ls --control gone
echo 'defaults: {control: box}' >>"$file"

# The verbs.
set -- --storage-backend local-disk --sessions-root-dir "$scratch/sessions"
[ "$(id -u)" = 0 ] && set -- --storage-backend overlay --sessions-root-dir "$scratch/sessions"
start_host "$@"
id=$(ctl create --key job-17 --label job=17)
check "create prints the id" test -n "$id"
is "the same key gives the same sandbox" "$(ctl create --key job-17 --label job=17)" "$id"
must_fail "but not for another request" 1 ctl create --key job-17
is "ls has it" "$(ctl ls -L job=17 --json | json 'o[0]["id"], o[0]["state"]')" \
	"('$id', 'running')"
is "ls with another label does not" "$(ctl ls -L job=18 --json | json 'len(o)')" 0
is "show has its address" "$(ctl show "$id" --json | json 'o["address"]')" "unix:$host_socket"
must_fail "what the host cannot limit is refused" 1 ctl create --cpus 1
is "and the way out is said" "$(echo "$output" | grep -c -e --session-cpus)" 1

mkdir "$scratch/work"
echo one >"$scratch/work/file"
rsh=$(ctl show "$id" --json | json 'o["rsh"]')
endpoint=$(ctl show "$id" --json | json 'o["endpoint"]')
check "its workspace is synced with by what show tells" timeout 60 "$build/sbsync" start \
	--rsh "$rsh" --exclude /.cache --exclude /.local "$scratch/work" "$endpoint"
# shellcheck disable=SC2016
must_fail "launch -w gives the exit code" 9 ctl launch -w "$id" sh -c \
	'test one = "$(cat file)" && echo two >made && exit 9'
check "what it made comes back" sh -c 'cd "$1" && "$2" sync && test two = "$(cat made)"' sh \
	"$scratch/work" "$(cd "$build" && pwd)/sbsync"
export SECRET_OF_TEST=hunter2
# shellcheck disable=SC2016
check "a secret comes from the environment" ctl launch -w --pass-env SECRET_OF_TEST "$id" sh -c \
	'test "$SECRET_OF_TEST" = hunter2'
must_fail "one that is not set is a mistake" 2 ctl launch --pass-env NO_SUCH_SECRET "$id" true
process=$(ctl launch --json "$id" sleep 1000 | json 'o["id"]')
is "status tells that it runs" "$(ctl status "$id" "$process")" "$process running"
check "kill" ctl kill -s 9 "$id" "$process"
is "its exit code is kept" "$(ctl status -w "$id" "$process")" "$process exited 137"
check "pause" ctl pause "$id"
is "ls tells" "$(ctl ls --json | json 'o[0]["state"]')" paused
must_fail "nothing starts now" 1 ctl launch "$id" true
must_fail "deep pause is none of its" 1 ctl pause --deep "$id"
check "resume" ctl resume "$id"
if [ "$(ctl capabilities --json | json 'o["rollback"]')" = True ]; then
	check "snapshot" ctl snapshot "$id" before
	check "then a change" ctl launch -w "$id" rm file
	check "rollback" ctl rollback "$id" before
	check "it is as it was" ctl launch -w "$id" test -e file
	fork=$(ctl fork "$id" --snapshot before)
	check "fork has it, too" ctl launch -w "$fork" test -e file
	check "destroy of the fork" ctl destroy "$fork"
else
	skip "snapshot, rollback, fork" "overlays need root"
fi
check "recover finds nothing to do" ctl recover
check "a higher fencing token" ctl launch --fence 5 -w "$id" true
must_fail "shuts a lower one out" 1 ctl destroy --fence 4 "$id"
check "destroy" ctl destroy "$id" --fence 5
must_fail "it is gone" 1 ctl show "$id"
must_fail "wrong words" 2 ctl creat
stop_host
finish
