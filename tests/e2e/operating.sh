#!/bin/sh
# SPDX-License-Identifier: MIT
# What an operator of a host begins with: the sample configuration, the manual's example on a fresh
# home, defaults, monitoring, and a backup that comes back. Nothing here knows the source.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3 curl tar

src=${SB_TOP_SRCDIR:-.}
build=${SB_TOP_BUILDDIR:-.}
PATH=$build:$PATH
export SBSYNC_STATE_DIR="$scratch/sbsync"
unset SANDBOX_HOST XDG_STATE_HOME STATE_DIRECTORY RUNTIME_DIRECTORY
hosts=

# host COMMAND...: starts one in the background, as process $pid.
host()
{
	"$@" >"$scratch/hostd.log" 2>&1 &
	pid=$!
	hosts="$hosts $pid"
}
# shellcheck disable=SC2016
at_exit 'for p in $hosts; do kill "$p" 2>/dev/null && wait "$p"; done'
stop()
{
	kill "$pid" && wait "$pid"
}

# The sample as it is, but for where it keeps things.
mkdir -p "$scratch/lib/bases" "$scratch/run"
sed "s|/var/lib/sbhostd|$scratch/lib|; s|/run/sbhostd/|$scratch/run/|" "$src/etc/sbhostd.yaml" \
	>"$scratch/sbhostd.yaml"
export STATE_DIRECTORY="$scratch/lib" RUNTIME_DIRECTORY="$scratch/run"
if sbctl providers | grep -q '^host '; then
	check "the sample configuration has no mistakes" \
		sbhostd --check --config "$scratch/sbhostd.yaml"
else
	skip "the sample configuration has no mistakes" "no host works on this machine"
fi
is "it says what it says" "$(sbhostd --show-config --config "$scratch/sbhostd.yaml" |
	sed -n 's/^max-sessions: //p; s/^session-cpus: //p; s/^container-runtime: //p' |
	paste -sd' ')" "auto 200 50"
# Each line that shows another choice is an option with a value that is taken.
grep -E '^#( *-|[a-z0-9-]+:)' "$scratch/sbhostd.yaml" | sed 's/^#//' |
	grep -vE '^ *- +0|^tokens|^ *- name|token-file' >"$scratch/other.yaml"
check "what it comments out is taken, too" sbhostd --show-config --config "$scratch/other.yaml"
unset STATE_DIRECTORY RUNTIME_DIRECTORY
# What --show-config prints is a configuration, of the same values.
sbhostd --show-config --config "$scratch/sbhostd.yaml" >"$scratch/shown.yaml"
sbhostd --show-config --config "$scratch/shown.yaml" >"$scratch/again.yaml"
is "what counts can be used as a file" "$(diff "$scratch/shown.yaml" "$scratch/again.yaml")" ""

# The defaults of the manual.
sed -n '/^\.Sh DEFAULTS/,/^\.El/s/^\.It \([^ ]*\) Ta \(.*\)/\1: \2/p' "$src/doc/sbhostd.8" |
	tr -d '\\' >"$scratch/page"
sbhostd --show-config | grep -v '^#' | tr -d '"' >"$scratch/real"
is "the manual's defaults are the program's" "$(diff "$scratch/page" "$scratch/real")" ""
sbhostd --help | tr '\n' ' ' | sed 's/  */ /g' >"$scratch/help"
is "and those in parentheses of --help" "$(sed -n 's/"//g
	s/^\([a-z0-9-]*\): \(.*\)/\1 \2/p' "$scratch/real" | while read -r name value; do
	text=$(sed "s/.* --$name [A-Z]* //; s/ --[a-z].*//" "$scratch/help")
	told=$(echo "$text" | sed -n 's/.*(\([0-9][0-9]*[A-Za-z]*\)).*/\1/p')
	[ -z "$told" ] || [ "$told" = "$value" ] || echo "$name: $told, but $value"
done)" ""

# The examples of the manual, typed as they stand there in a home that has nothing yet.
sed -n '/^\.Sh EXAMPLES/,/^\.Sh THE/s/^\$ //p' "$src/doc/sbhostd.8" >"$scratch/typed"
is "the manual's example has three commands" "$(wc -l <"$scratch/typed" | tr -d ' ')" 3
if [ -e /run/sbhostd/sbhostd.sock ]; then
	skip "the manual's example works" "this machine has a host of its own"
elif ! sbctl providers | grep -q '^host '; then
	skip "the manual's example works" "no host works on this machine"
else
	mkdir "$scratch/home"
	printf 'exec %s\n' "$(head -n 1 "$scratch/typed")" >"$scratch/first"
	HOME=$scratch/home host sh "$scratch/first"
	HOME=$scratch/home check "the manual's host is up, and sbctl finds it" \
		wait_for 30 sbctl host health
	sed 1d "$scratch/typed" >"$scratch/rest"
	out=$(HOME=$scratch/home sh -e "$scratch/rest" 2>&1)
	is "the manual's session has a greeting" \
		"$(echo "$out" | sed -n 's/.* \(greeting\)$/\1/p')" "greeting"

	# Everything that rules, dashboard and guide ask for is among the metrics.
	curl -s --unix-socket "$scratch/home/.local/state/sbhostd/sbhostd.sock" \
		http://localhost/metrics | sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' |
		sort -u >"$scratch/metrics"
	grep -oh 'sbhostd_[a-z_]*' "$src"/etc/monitoring/*.yaml "$src"/etc/monitoring/*.json |
		sed 's/_bucket$//' | sort -u >"$scratch/asked"
	is "rules and dashboard ask for metrics that are there" \
		"$(comm -23 "$scratch/asked" "$scratch/metrics")" ""
	is "and for most of what there is" \
		"$(awk 'END { print (NR > 15) }' "$scratch/asked")" 1

	HOME=$scratch/home check "the session can be destroyed" sbctl host destroy first
	stop

	# A backup as the guide makes it. The session has no base, a snapshot where there are some;
	# runtime none, as no box of before is on the machine that a backup comes back to.
	export SANDBOX_CONTAINER_RUNTIME=none
	HOME=$scratch/home host sh "$scratch/first"
	HOME=$scratch/home check "a host to back up" wait_for 30 sbctl host health
	HOME=$scratch/home sh -e "$scratch/rest" >/dev/null 2>&1
	if HOME=$scratch/home sbctl host turn first >/dev/null 2>&1; then
		HOME=$scratch/home sbctl host exec first 'echo later >greeting' >/dev/null
	fi
	stop
	state=$scratch/home/.local/state
	check "a backup" tar -C "$state" --one-file-system --xattrs --xattrs-include='*' \
		--numeric-owner -cf "$scratch/host.tar" sbhostd
	# Nor is anything mounted there.
	awk -v at="$state/sbhostd/" 'index($2, at) == 1 { print $2 }' /proc/mounts |
		xargs -r umount -l
	rm -rf "$state/sbhostd"
	check "a restore" tar -C "$state" --xattrs --xattrs-include='*' --numeric-owner \
		-xf "$scratch/host.tar"
	HOME=$scratch/home host sh "$scratch/first"
	HOME=$scratch/home check "the restored host is up" wait_for 30 sbctl host health
	snapshot=$(HOME=$scratch/home sbctl host snapshots first --json 2>/dev/null |
		sed -n 's/.*"Name":"\([^"]*\)".*/\1/p')
	if [ -n "$snapshot" ]; then
		is "its session has the last work" \
			"$(HOME=$scratch/home sbctl host exec first 'cat greeting' 2>&1)" later
		check "and goes back to its snapshot" env HOME="$scratch/home" \
			sbctl host rollback first "$snapshot"
	fi
	is "its session has its file" \
		"$(HOME=$scratch/home sbctl host exec first 'cat greeting' 2>&1)" hello
	HOME=$scratch/home check "it can be destroyed" sbctl host destroy first
	stop
fi

# The rules as YAML, the dashboard as JSON; every alert of the guide is a rule and the other way.
check "the dashboard is JSON" python3 -c "import json, sys; json.load(open(sys.argv[1]))" \
	"$src/etc/monitoring/grafana.json"
sed -n 's/^ *- alert: //p' "$src/etc/monitoring/alerts.yaml" | sort >"$scratch/rules"
sed -n 's/^| \(Sandbox[A-Za-z]*\) |.*/\1/p' "$src/doc/OPERATING.md" | sort >"$scratch/guide"
is "the guide explains every alert" "$(diff "$scratch/rules" "$scratch/guide")" ""
if command -v promtool >/dev/null; then
	check "Prometheus takes the rules" promtool check rules "$src/etc/monitoring/alerts.yaml"
else
	skip "Prometheus takes the rules" "promtool is not installed"
fi
finish
