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
backend=ssh
there=$dir
elsewhere=user=nobody
. "$src/tests/lib/runlife.sh"
must_fail "to be put away, where that cannot be" 1 \
	"$sbctl" run -P box --persistence archive -- touch ran
check "... tells what can be" \
	sh -c 'printf %s "$0" | grep -q "ssh cannot put a sandbox away; use reuse"' "$output"
check "the command did not run" test ! -e ran
is "and nothing was made" "$("$sbctl" ls)" "no sandboxes"
finish
