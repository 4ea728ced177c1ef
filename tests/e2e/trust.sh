#!/bin/sh
# SPDX-License-Identifier: MIT
# Nothing that a sandbox writes into the workspace weakens the next one: project files count only
# with the user's consent to exactly their content, and changes of a sandbox to them come beside.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3

src=${SB_TOP_SRCDIR:-.}
build=${SB_TOP_BUILDDIR:-.}
sbctl=$build/sbctl
sbsync=$build/sbsync
export SBSYNC_STATE_DIR="$scratch/state" XDG_CONFIG_HOME="$scratch/config"
mkdir -p "$scratch/ws" "$scratch/config/sandbox"
cd "$scratch/ws" || exit 1
echo work >file

# What an agent may have left in place: no run obeys it, whatever it says.
refused()
{
	printf '%b' "$2" >.sandbox.yaml
	rm -f ../ran
	must_fail "without consent: $1" 1 "$sbctl" run -- touch "$scratch/ran"
	check "... names the file and the way out" sh -c 'case "$1" in
		*.sandbox.yaml*"sbctl trust"*--no-project*) ;; *) exit 1 ;; esac' - "$output"
	check "... and nothing ran" test ! -e ../ran
}
refused "disabled" 'disabled: true\n'
refused "a profile of backend local" 'sandbox: x\nprofiles: {x: {backend: local}}\n'
refused "another host" 'sandbox: x\nprofiles: {x: {backend: ssh, ssh: {host: evil.example}}}\n'
refused "an open network" \
	'sandbox: x\nprofiles: {x: {backend: host, network: {allow_outbound: true}}}\n'
refused "files hidden from the sync back" 'exclude: ["*"]\n'
echo 'disabled: true' >.sandbox.yaml
must_fail "nor when the user names a profile" 1 "$sbctl" run -P local -- touch ../ran
is "a backend on the command line needs no project file" \
	"$("$sbctl" run -q -b local -- echo yes)" yes
is "and it can be left out" "$("$sbctl" run -q --no-project -P local -- echo yes)" yes

# On a terminal the user is asked, and sees what the file does.
ask()
{
	python3 "$src/tests/lib/onterm.py" "$@" >../said 2>&1
}
ask n "$sbctl" run -q -- touch ../ran
is "the answer no is a refusal" $? 1
check "the question says what would happen" grep -q 'disables the sandbox' ../said
check "nothing ran" test ! -e ../ran
ask INT "$sbctl" run -q -- touch ../ran
is "an interrupt is a refusal" $? 1
printf 'y\n' | "$sbctl" run -q -- touch ../ran >../said 2>&1
is "an answer that is piped in is none" $? 1
check "nothing ran" test ! -e ../ran
ask y "$sbctl" run -q -- touch ../ran
is "the answer yes is consent" $? 0
check "it ran" test -e ../ran
is "to this content, for later runs" "$("$sbctl" run -q -- echo yes </dev/null)" yes
ask y "$sbctl" run -q -- true
is "nobody is asked twice" $? 97
echo '# changed' >>.sandbox.yaml
must_fail "one more byte and it does not count" 1 "$sbctl" run -- true
check "the message says that it changed" \
	sh -c 'case "$1" in *"changed since"*) ;; *) exit 1 ;; esac' - "$output"

# sbctl trust.
must_fail "trust does not consent without a terminal" 1 "$sbctl" trust
check "show says what it does" sh -c '"$1" trust --show | grep -q "changed.*" &&
	"$1" trust --show | grep -q "disables the sandbox"' - "$sbctl"
check "profile check warns" sh -c '"$1" profile check 2>&1 | grep -q "did not consent"' - "$sbctl"
check "but with --yes it does" "$sbctl" trust --yes
check "and the run goes" "$sbctl" run -q -- true
is "both contents are on record" "$("$sbctl" trust --list | wc -l)" 2
check "the record is the user's alone" \
	sh -c 'test "$(stat -c %a "$1")" = 700' - "$SBSYNC_STATE_DIR/trust"
mkdir ../other && cp .sandbox.yaml ../other
must_fail "not in another directory" 1 "$sbctl" run -C ../other -- true
check "trust DIR" "$sbctl" trust -y ../other
check "taken back" "$sbctl" trust --revoke
must_fail "it does not count any more" 1 "$sbctl" run -- true
is "the other one is left" "$("$sbctl" trust --list | wc -l)" 1
chmod 777 "$SBSYNC_STATE_DIR/trust"
must_fail "a record that others can write is none" 1 "$sbctl" run -C ../other -- true
chmod 700 "$SBSYNC_STATE_DIR/trust"
must_fail "nor one in the workspace" 1 \
	env SBSYNC_STATE_DIR="$scratch/ws/.state" "$sbctl" trust --yes
rm -rf .sandbox.yaml .state

# Changes of a sandbox come beside: new, changed and deleted files.
mkdir sub && echo 'exclude: [a]' >.sandbox.yaml && echo '*.o' >.sbsyncignore
"$sbsync" start -q --name t . "$scratch/box" || exit 1
echo 'disabled: true' >../box/.sandbox.yaml
echo '*' >../box/sub/.sbsyncignore
echo 'x' >../box/sub/.sandbox.yaml
rm ../box/.sbsyncignore
echo new >../box/sub/new
"$sbsync" sync -q t >/dev/null 2>&1
is "what later runs obey is a conflict" $? 3
is "the project's file is as it was" "$(cat .sandbox.yaml)" 'exclude: [a]'
is "the sandbox's version is beside it" \
	"$(cat .sandbox.yaml.runtime-conflict-t)" 'disabled: true'
check "nothing new in place" test ! -e sub/.sbsyncignore -a ! -e sub/.sandbox.yaml
check "but beside" test -e sub/.sbsyncignore.runtime-conflict-t \
	-a -e sub/.sandbox.yaml.runtime-conflict-t
check "deletions are not taken" test -e .sbsyncignore
check "other work came" test -e sub/new
check "and rules of a sandbox hide nothing" sh -c 'echo later >../box/sub/later &&
	{ "$1" sync -q t >/dev/null 2>&1; test -e sub/later; }' - "$sbsync"
"$sbsync" sync -q --trust-project-files t >/dev/null 2>&1
is "but the user may" "$(cat .sandbox.yaml)" 'disabled: true'
"$sbsync" stop -q t >/dev/null 2>&1
echo 'exclude: [b]' >.sandbox.yaml
"$sbsync" start -q --name r --conflict runtime . "$scratch/box2" || exit 1
echo 'disabled: true' >../box2/.sandbox.yaml
"$sbsync" stop -q r >/dev/null 2>&1
is "no rule about conflicts takes them" $?/"$(cat .sandbox.yaml)" '3/exclude: [b]'

# One way: a mirror of what a sandbox has.
cd "$scratch" || exit 1
mkdir far && echo 'disabled: true' >far/.sandbox.yaml && echo ok >far/ok
printf '#!/bin/sh\nshift\nexec sh -c "$*"\n' >rsh && chmod +x rsh
export PATH="$build:$PATH"
"$sbsync" mirror -q --rsh "$scratch/rsh" "box:$scratch/far" near >/dev/null 2>&1
is "a mirror of a sandbox tells" $? 3
check "and leaves them out" test ! -e near/.sandbox.yaml -a -e near/ok
"$sbsync" mirror -q --rsh "$scratch/rsh" --trust-project-files "box:$scratch/far" near
check "unless the user trusts it" test -e near/.sandbox.yaml

# The record of a user whose workspace is the home directory stays out of the sandbox.
mkdir -p home/.local/state && echo x >home/x
HOME=$scratch/home XDG_STATE_HOME='' SBSYNC_STATE_DIR='' \
	"$sbsync" start -q --yes --name h "$scratch/home" "$scratch/homebox" || exit 1
check "our own state is not synced" test -e homebox/x -a ! -e homebox/.local/state/sbsync
mkdir -p homebox/.local/state/sbsync/trust && echo forged >homebox/.local/state/sbsync/trust/f
HOME=$scratch/home XDG_STATE_HOME='' SBSYNC_STATE_DIR='' "$sbsync" sync -q h
check "nor does a sandbox write it" test ! -e home/.local/state/sbsync/trust/f
finish
