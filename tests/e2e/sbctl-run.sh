#!/bin/sh
# SPDX-License-Identifier: MIT
# sbctl: a command in a sandbox and back, its verbs, its profiles. On this machine and over SSH.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/json.sh"
need python3 ssh ssh-keygen

src=${SB_TOP_SRCDIR:-.}
build=${SB_TOP_BUILDDIR:-.}
sbctl=$build/sbctl
export SBSYNC_STATE_DIR="$scratch/state" XDG_CONFIG_HOME="$scratch/config"
cd "$scratch" || exit 1
mkdir -p ws config/sandbox

# On this machine: the same directory, so only launching and the record count.
cd ws || exit 1
out=$(echo in |
	"$sbctl" run -q -b local -e A=b -- sh -c 'cat; echo "$A"; echo err >&2; exit 7' 2>../err)
is "the command's status is passed on" $? 7
is "its input and output are ours" "$out" "in
b"
is "its stderr is ours" "$(cat ../err)" "err"
is "it got its own words only" \
	"$("$sbctl" run -q -b local -- sh -c 'echo $# "$@"' x 1 '2 3')" "2 1 2 3"
"$sbctl" run -q -b local -- sh -c 'kill -9 $$' 2>/dev/null
is "a signal is 128 + n" $? 137
"$sbctl" run -q -b local -- /no/such/program 2>/dev/null
is "a command that is not there" $? 127
"$sbctl" run -q -b local -- /etc/passwd 2>/dev/null
is "one that may not be run" $? 126
must_fail "the whole machine is not copied unasked" 2 sh -c 'cd / && "$1" run -b host -- true' \
	- "$sbctl"
must_fail "nor a home directory" 2 sh -c 'cd "$2" && HOME=$2 "$1" run -b host -- true' \
	- "$sbctl" "$scratch/ws"
must_fail "an unknown backend names the others" 2 "$sbctl" run -b lokal -- true
check "... all of them" \
	sh -c 'case "$1" in *"use local, ssh, host"*) ;; *) exit 1 ;; esac' - "$output"
must_fail "profile and backend exclude each other" 2 "$sbctl" run -b local -P x -- true
must_fail "an option that the backend lacks" 1 "$sbctl" run -b local -s colour=red -- true
must_fail "no command" 2 "$sbctl" run -b local
is "nothing is left to look after" "$("$sbctl" ls)" "no sandboxes"
is "what is gone is on record" \
	"$("$sbctl" ls -a --json | json '{x["state"] for x in o}')" "{'destroyed'}"
check "events tell what happened" \
	sh -c '"$1" events --json | grep -q "sandbox.transport.disconnect.*\"exit_code\":7"' \
	- "$sbctl"
must_fail "a sandbox that is not there" 1 "$sbctl" show none-such

# Profiles.
cat >"$scratch/config/sandbox/config.yaml" <<'END'
profiles:
  here: {backend: local, env: {HELLO: there}, secret_env: {KEY: "env:SB_E2E_SECRET"}}
END
echo 'sandbox: here' >.sandbox.yaml
"$sbctl" trust -q --yes
is "the project's profile is taken" \
	"$(SB_E2E_SECRET=s3cr3t-x "$sbctl" run -q -- sh -c 'echo $HELLO $KEY')" "there s3cr3t-x"
check "no secret is on disk" sh -c 'grep -rq s3cr3t-x "$1"; [ $? -eq 1 ]' - "$scratch/state"
must_fail "a secret that is not there stops it" 1 "$sbctl" run -- true
check "a right file has no mistakes" "$sbctl" profile check
cat >>"$scratch/config/sandbox/config.yaml" <<'END'
  bad: {backend: docker, persistence: always, colour: red}
END
must_fail "mistakes are told" 1 "$sbctl" profile check
is "... each with its line and the words allowed" \
	"$(echo "$output" | sed "s|^$scratch/config/sandbox/||; s/: use .*/: use .../")" \
	'config.yaml:3: persistence: persistence "always" is not known: use ...
config.yaml:3: a profile has no "colour": use ...'
must_fail "no run with mistakes" 1 "$sbctl" run -- true
rm "$scratch/config/sandbox/config.yaml" .sandbox.yaml
cd "$scratch" || exit 1

# Over SSH.
if ! "$sbctl" providers | grep -q '^ssh '; then
	skip "runs over SSH" "the ssh backend is not built in"
	finish
	exit
fi
dir=$scratch/server
env_line='SetEnv XDG_CACHE_HOME=@DIR@/cache SBSYNC_STATE_DIR=@DIR@/state'
env_line="$env_line XDG_STATE_HOME=@DIR@/state TMPDIR=@DIR@/tmp HOME=@DIR@/home"
if ! why=$(sh "$src/tests/lib/sshd.sh" start "$dir" "$env_line"); then
	skip "runs over SSH" "$why"
	finish
	exit
fi
at_exit "sh $src/tests/lib/sshd.sh stop $dir"
mkdir -p "$dir/tmp" "$dir/home"
cat >"$scratch/config/sandbox/config.yaml" <<END
profiles:
  box:
    backend: ssh
    ssh: {host: 127.0.0.1, user: $(cat "$dir/user"), port: $(cat "$dir/port"), config: /dev/null,
      identity: $dir/id_ed25519, known_hosts: $dir/known_hosts}
    exclude: ["*.o", build]
    include: [keep.o]
    secret_env: {KEY: "env:SB_E2E_SECRET"}
END
export SB_E2E_SECRET=s3cr3t-y
cd ws || exit 1
echo one >one && echo two >two && echo x >skip.o && echo y >keep.o && mkdir -p sub ../also &&
	echo z >../also/z
out=$("$sbctl" run -P box -d ../also -- sh -c '
	pwd
	cat one
	ls
	echo changed >>one
	rm two
	echo new >sub/new
	echo "$KEY" | tr a-z A-Z
	exit 5' 2>../err)
is "over SSH the status is passed on" $? 5
is "it runs in the copy, without what is excluded" "$(echo "$out" | tail -n +2)" "one
keep.o
one
sub
two
S3CR3T-Y"
check "not in the original" test "$(echo "$out" | head -n 1)" != "$(pwd)"
is "changes come back" "$(cat one)" "one
changed"
check "deletions come back" test ! -e two
check "new files come back" test -e sub/new
check "what is excluded stays" test -e skip.o
check "the summary tells" grep -q "2 files .* synced, 1 deleted" ../err
check "no secret is on disk, here or there" \
	sh -c 'grep -rq s3cr3t-y "$1" "$2"; [ $? -eq 1 ]' - "$scratch/state" "$dir"
is "nothing is left to look after" "$("$sbctl" ls)" "no sandboxes"
must_fail "to be put away, where that cannot be" 1 \
	"$sbctl" run -P box --persistence archive -- touch ran
check "... tells what can be" \
	sh -c 'printf %s "$0" | grep -q "ssh cannot put a sandbox away; use reuse"' "$output"
must_fail "a snapshot, where there are none" 1 "$sbctl" run -P box --snapshot -- touch ran
check "... tells so" sh -c 'printf %s "$0" | grep -q "backend ssh has no snapshots"' "$output"
check "neither command ran" test ! -e ran
is "and nothing was made" "$("$sbctl" ls)" "no sandboxes"

# Kept, used again, stopped from elsewhere.
check "a kept sandbox" "$sbctl" run -q -P box -k --id kept -- sh -c 'echo first >first'
is "is stopped" "$("$sbctl" ls --json | json '[(x["sandbox_id"], x["state"]) for x in o]')" \
	"[('kept', 'stopped')]"
echo here >here
is "exec syncs in first" "$("$sbctl" exec -q kept sh -c 'cat here; echo second >second')" "here"
is "... and back afterwards" "$(cat second)" second
echo more >here
check "dry run" "$sbctl" sync -n kept
is "... moves nothing: sync on demand does" \
	"$("$sbctl" sync --json kept | json 'o["files_synced"]')" 1
is "... once" "$("$sbctl" sync --json kept | json 'o["files_synced"]')" 0
# What it does last, it does after the last sync that anybody asks for.
"$sbctl" run -q -P box -k --id long -- sh -c 'trap "echo late >late; exit 143" TERM
	echo work >work; touch started; while :; do sleep 0.1; done' &
pid=$!
at_exit 'kill $pid 2>/dev/null'
running()
{
	"$sbctl" sync -q long && test -e started
}
wait_for 20 running
must_fail "one that is used is not destroyed" 4 "$sbctl" destroy long
check "stop from elsewhere" "$sbctl" stop -q long
wait "$pid"
is "brings the work, the last too" "$(cat work late)" "work
late"
for sig in INT:130 HUP:129 TERM:143; do
	code=${sig#*:} sig=${sig%:*}
	rm -f started work both* late
	echo base >both
	"$sbctl" run -q -P box --id "by-$sig" -- \
		sh -c "trap 'echo there >both; echo late >late; exit $code' $sig
		echo work >work; touch started; while :; do sleep 0.1; done" &
	pid=$!
	running_sig()
	{
		"$sbctl" sync -q "by-$sig" && test -e started
	}
	wait_for 20 running_sig
	rm -f work
	echo here >both
	kill -s "$sig" "$pid"
	wait "$pid"
	is "$sig ends the command" $? "$code"
	is "... its last work is back" "$(cat late)" late
	check "... a deletion here stays" test ! -e work
	is "... of what both edited, both are kept" "$(cat both "both.runtime-conflict-by-$sig")" \
		"here
there"
done
check "destroy" "$sbctl" destroy -q long
check "destroy twice" "$sbctl" destroy -q long
check "destroy the other" "$sbctl" destroy -q kept

# Both sides change.
"$sbctl" run -q -P box -k --id both -- sh -c 'echo runtime >one'
echo local >one
out=$("$sbctl" exec both sh -c 'echo runtime2 >one' 2>&1)
echo "$out" | diag
"$sbctl" run -q -P box --id clash -- \
	sh -c 'echo theirs >one; touch ready; while [ -e ready ]; do sleep 0.1; done' &
pid=$!
clash_ready()
{
	"$sbctl" sync -q clash && test -e ready
}
wait_for 20 clash_ready
echo ours-again >sub/new
rm ready
running_on()
{
	"$sbctl" sync -q clash
}
wait_for 20 running_on
wait "$pid"
is "an edit here goes on living" "$(cat sub/new)" "ours-again"
"$sbctl" destroy -q both

# A lost server: the sandbox is kept and comes back with recover.
"$sbctl" run -q -P box --id lost -- \
	sh -c 'echo precious >precious; touch up; exec sleep 1000' 2>../err &
pid=$!
lost_up()
{
	"$sbctl" sync -q lost && test -e up
}
wait_for 20 lost_up
"$sbctl" exec -q lost sh -c 'echo later >later'
kill -9 $pid
wait "$pid" 2>/dev/null
is "after kill -9 it is still on record" "$("$sbctl" show --json lost | json 'o["state"]')" active
check "sbsync recover finds it too" \
	sh -c '"$1" recover --all --json | grep -q "\"lost\""' - "$build/sbsync"
check "its work is here" test -e later
check "sbctl recover ends it" "$sbctl" recover
is "nothing is left" "$("$sbctl" ls)" "no sandboxes"
finish
