#!/bin/sh
# SPDX-License-Identifier: MIT
# The docker provider over sbx and docker sandbox, for which a stub stands: their commands run on
# this machine, in a directory of each sandbox. What a profile becomes there, word by word, and
# parts of the conformance suite over it.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need git

src=$(cd "${SB_TOP_SRCDIR:-.}" && pwd)
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
	in_order "$1" | sort -u
}

# The same in the order of the calls.
in_order()
{
	for f in "$STUB_STATE"/calls/*.argv; do
		tr '\0\n' '|?' <"$f" | sed 's/^[^|]*|//; s/|$//'
		echo
	done | grep "^\($1\)"
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
# The way out: by a real SSH server, as "sbx setup ssh" writes it into the user's configuration.
server=$scratch/server
if why=$(sh "$src/tests/lib/sshd.sh" start "$server" "SetEnv XDG_STATE_HOME=@DIR@/state \
SBSYNC_STATE_DIR=@DIR@/state XDG_CACHE_HOME=@DIR@/cache HOME=@DIR@/home TMPDIR=@DIR@"); then
	at_exit "sh $src/tests/lib/sshd.sh stop $server"
	mkdir -p "$server/home"
	cat >"$scratch/sbx.conf" <<END
Host *.sbx
	HostName 127.0.0.1
	Port $(cat "$server/port")
	User $(cat "$server/user")
	IdentityFile $server/id_ed25519
	UserKnownHostsFile $server/known_hosts
END
	fresh
	touch "$STUB_STATE/merged"
	check "it is reached by ssh" run -s kind=sbx -s via=ssh \
		-s "ssh_config=$scratch/sbx.conf" --id v_1 -- sh -c 'cat a; echo over >s'
	is "its work is here" "$(cat "$scratch/w/s")" over
	is "nothing went by exec" "$(calls exec)" ""
	is "and it is removed" "$(calls rm)" 'rm|--force|sbsync-v+1'
	fresh
	must_fail "one that cannot be reached" 1 run -s kind=sbx -s via=ssh \
		-s ssh_config=/dev/null -- true
	is "is not left behind" "$(ls "$STUB_STATE/boxes")" ""
else
	skip "it is reached by ssh" "$why"
fi
fresh
check "archive saves a template and stops" run --persistence archive --id arch -- true
is "in this order" "$(in_order 'template\|stop')" \
	'template|save|sbsync-arch|localhost/sbsync-archive:arch
stop|sbsync-arch'
rm -r "$STUB_STATE/boxes/sbsync-arch"
check "one that somebody removed" run --persistence archive --id arch -- true
is "is made of its template" "$(in_order create | tail -n 1)" \
	'create|--name|sbsync-arch|-t|localhost/sbsync-archive:arch|shell'
check "destroyed for good" "$build/sbctl" destroy --discard arch
is "with its template" "$(in_order 'rm\|template' | tail -n 2)" \
	'rm|--force|sbsync-arch
template|rm|localhost/sbsync-archive:arch'
check "mounted: the directory itself" run --id m1 -s sync=mounted -- sh -c "cd '$scratch/w' &&
	echo three >c && rm b"
is "is what it gets" "$(calls 'create|--name|sbsync-m1')" "create|--name|sbsync-m1|shell|$scratch/w"
is "and what changed is told" "$(sed -n 's/^sbctl: m1: \(.*deleted\).*/\1/p' "$scratch/out")" \
	"1 file (0 B) synced, 1 deleted"

# An agent of Docker: its file is outside, its variable not in the words, the token goes with it.
fresh
mkdir -p "$scratch/agents" "$scratch/me/.config/cagent"
echo 'agents: {root: {model: "azure/x,openai/y"}}' >"$scratch/agents/a b.yaml"
echo "aliases: {mine: {path: $scratch/agents/a b.yaml}}" >"$scratch/me/.config/cagent/config.yaml"
cat >"$scratch/sbx/docker-agent" <<'END'
#!/bin/sh
printf '%s|' "$@" "${AZURE_API_KEY:-none}" "${OPENAI_API_KEY:-none}" "$PWD"
cat "$AGENT_TOKENS"
exit 9
END
chmod +x "$scratch/sbx/docker-agent"
agent()
{
	(cd "$scratch/w" && HOME=$scratch/me AZURE_API_KEY="s3cret, key" OPENAI_API_KEY= \
		CAGENT_MODELS_GATEWAY=https://gateway.example DOCKER_TOKEN=tok \
		AGENT_TOKENS=$scratch/me/.config/cagent/sandbox-tokens.json \
		timeout 60 "$build/sbctl" docker "$@") >"$scratch/out" 2>"$scratch/err"
}
must_fail "an agent's exit status is ours" 9 agent \
	--network "x.example:443,y.example" agent mine -v ""
is "its words, variables and token reach it" "$(cat "$scratch/out")" \
	"run|mine|-v||s3cret, key|none|$scratch/w|{\"docker_token\":\"tok\"}"
name=$(ls "$STUB_STATE/boxes")
is "its sandbox is made once" "$(in_order create)" \
	"create|docker-agent|$scratch/w|$scratch/agents:ro|$scratch/me/.config/cagent:ro"
is "its hosts are allowed" "$(in_order 'policy|allow|network|--sandbox')" \
	"policy|allow|network|--sandbox|$name|x.example:443,y.example"
is "it is run with names alone" "$(in_order exec)" "exec|-i|-w|$scratch/w|-e|AZURE_API_KEY|-e\
|CAGENT_MODELS_GATEWAY|-e|TERM=xterm-256color|-e|COLORTERM=truecolor|-e|LANG=C.UTF-8|$name\
|docker-agent|run|mine|-v|"
check "the token is gone" test ! -e "$scratch/me/.config/cagent/sandbox-tokens.json"
must_fail "the next run" 9 agent agent mine
is "takes the sandbox again" "$(in_order create | wc -l)" 1
must_fail "a host that is two is refused" 1 agent --network "a b" agent mine
must_fail "no agent is a wrong usage" 2 agent agent
must_fail "as is an option behind the word" 2 agent agent --network x mine

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

fresh
echo c >"$STUB_STATE/era"
check "a newer docker sandbox" run --id d3 -- true
is "is removed by force" "$(calls 'sandbox|rm')" 'sandbox|rm|--force|sbsync-d3'
fresh
echo vms >"$STUB_STATE/shape"
check "one of the first versions" run --id d4 -- true
check "is told to be old" grep -q 'one of the first versions' "$scratch/out"

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
