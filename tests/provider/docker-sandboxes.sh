#!/bin/sh
# SPDX-License-Identifier: MIT
# The docker provider over sbx and docker sandbox, for which a stub stands: their commands run on
# this machine, in a directory of each sandbox. What a profile becomes there, word by word, and
# parts of the conformance suite over it.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need git

build=$(cd "${SB_TOP_BUILDDIR:-.}" && pwd)
stub=$build/tests/lib/dockerstub
[ -x "$stub" ] || skip_all "the stub is not built"
SBSYNC_AGENT=$build/sbsync-agent
XDG_STATE_HOME=$scratch/state
STUB_STATE=$scratch/stub
TMPDIR=$scratch
export SBSYNC_AGENT XDG_STATE_HOME STUB_STATE TMPDIR
mkdir "$scratch/sbx" "$scratch/docker" "$STUB_STATE" "$scratch/w"
ln -s "$stub" "$scratch/sbx/sbx"
ln -s "$stub" "$scratch/docker/docker"
echo one >"$scratch/w/a"

# fresh: no sandboxes, no record of calls, no switches.
fresh()
{
	rm -rf "$STUB_STATE"
	mkdir "$STUB_STATE"
}

# Calls whose first words are these, one line each, with '|' between the words.
calls()
{
	for f in "$STUB_STATE"/calls/*.argv; do
		tr '\0\n' '|?' <"$f" | sed 's/^[^|]*|//; s/|$//'
		echo
	done | grep "^$1" | sort -u
}

run()
{
	(cd "$scratch/w" && timeout 60 "$build/sbctl" run -b docker "$@") >"$scratch/out" 2>&1
}

suite()
{
	timeout 250 "$build/sbprovider-check" -b docker "$@" >"$scratch/out" 2>&1 && return
	grep -v '^ok' "$scratch/out"
	return 1
}

some="-c prepare-again -c prepare-copies -c state -c destroy -c find -c reattach"
some="$some -c sync-deletions -c launch-exit -c tools"
old_path=$PATH

PATH=$scratch/sbx:$old_path
# shellcheck disable=SC2086
check "sbx without a mount passes" suite -o kind=sbx $some
is "and nothing is left" "$(ls "$STUB_STATE/boxes")" ""
fresh
check "sbx is taken when it is there" run -- sh -c 'echo two >b; cat a'
is "its output is the command's" "$(grep -v '^sbctl' "$scratch/out")" one
is "it says so, and why" "$(grep -c 'using sbx (the first choice)' "$scratch/out")" 1
is "the work is here" "$(cat "$scratch/w/b")" two
is "made without a mount, by name" \
	"$(calls 'create|--name' | sed 's/sbsync-sb-[0-9a-f]*/NAME/')" 'create|--name|NAME|shell'
is "removed by force" "$(calls rm | sed 's/sbsync-sb-[0-9a-f]*/NAME/')" 'rm|--force|NAME'
fresh
touch "$STUB_STATE/mounts"
check "an older sbx gets an empty directory" run --id a_b -s cpus=2 -s memory=1g \
	-s kind=sbx -s image=img:1 -s agent=claude -- true
is "word by word" "$(calls 'create|--name')" "create|--name|sbsync-a+b|-t|img:1|--cpus|2|-m|1g\
|claude|$XDG_STATE_HOME/sbsync/docker/a_b/empty"
must_fail "options of containers are refused" 1 run -s kind=sbx -s pids=5 -- true
check "by name" grep -q 'option pids is one of containers' "$scratch/out"
fresh
check "no network: denied for this sandbox" run --network off --id n1 -- true
is "by one rule" "$(calls 'policy|deny')" 'policy|deny|network|--sandbox|sbsync-n1|**'
must_fail "a required allow list is refused" 1 run --network example.com -- true
check "with the way out" grep -q 'use kind: container' "$scratch/out"
fresh
echo b >"$STUB_STATE/era"
must_fail "an sbx that cannot deny is not used for no network" 1 run --network off -- true
is "and its sandbox is gone" "$(ls "$STUB_STATE/boxes")" ""
fresh
touch "$STUB_STATE/merged"
must_fail "an exec that mixes the streams is refused" 1 run -- true
check "with the way out" grep -q 'via: ssh' "$scratch/out"
fresh
check "archive saves a template and stops" run --persistence archive --id arch -- true
is "in this order" "$(calls 'template|stop')$(calls template)|$(calls stop)" \
	'template|save|sbsync-arch|localhost/sbsync-archive:arch|stop|sbsync-arch'
check "mounted: the directory itself" run --id m1 -s sync=mounted -- sh -c "cd '$scratch/w' &&
	echo three >c && rm b"
is "is what it gets" "$(calls 'create|--name|sbsync-m1')" "create|--name|sbsync-m1|shell|$scratch/w"
is "and what changed is told" "$(sed -n 's/^sbctl: m1: \(.*deleted\).*/\1/p' "$scratch/out")" \
	"1 file (0 B) synced, 1 deleted"

PATH=$scratch/docker:$old_path
fresh
touch "$STUB_STATE/mounts"
# shellcheck disable=SC2086
check "docker sandbox passes" suite -o kind=docker-sandbox -c prepare-again \
	-c destroy -c sync-deletions
fresh
touch "$STUB_STATE/mounts"
check "docker sandbox is taken without sbx" run --id d1 -- true
check "it says why" grep -q 'using docker sandbox (sbx is not installed)' "$scratch/out"
check "an allow list is enforced" run --id d2 --network example.com,x.example:443 -- true
is "by two commands" "$(calls 'sandbox|network|proxy|sbsync-d2')" \
	"sandbox|network|proxy|sbsync-d2|--allow-host|example.com|--allow-host|x.example:443
sandbox|network|proxy|sbsync-d2|--policy|deny"
must_fail "it cannot archive" 1 run --persistence archive -- true

mkdir "$scratch/empty"
for program in sh timeout; do
	ln -s "$(command -v $program)" "$scratch/empty/$program"
done
PATH=$old_path
run_bare()
{
	(PATH=$scratch/empty && run "$@")
}
must_fail "without any of them" 1 run_bare -- true
check "each is named" grep -q 'sbx is not installed.*docker is not.*podman is not' "$scratch/out"
finish
