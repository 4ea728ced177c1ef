#!/bin/sh
# SPDX-License-Identifier: MIT
# What round trips cost: the same steps over a link of 0 and of 200 ms, and their difference in
# round trips. Numbers, no verdicts. `make bench-roundtrips` runs it.
set -u
src=${SB_TOP_SRCDIR:-.}
build=${SB_TOP_BUILDDIR:-.}
rtt=${1:-200}
dir=$(mktemp -d "${TMPDIR:-/tmp}/sbrt.XXXXXX") || exit 1
trap 'sh "$src/tests/lib/sshd.sh" stop "$dir/srv"; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
SBSYNC_AGENT=$build/sbsync-agent
export SBSYNC_AGENT
sh "$src/tests/lib/sshd.sh" start "$dir/srv" \
	'SetEnv XDG_CACHE_HOME=@DIR@/cache SBSYNC_STATE_DIR=@DIR@/state TMPDIR=@DIR@/tmp' || exit 77
direct=$(cat "$dir/srv/port")
user=$(cat "$dir/srv/user")

# over RTT OUT: one run through a link of that length.
over()
{
	mkfifo "$dir/in$1"
	"$build/tests/bench/slowlink" "$direct" "$1" 0 <"$dir/in$1" >"$dir/port$1" &
	exec 9>"$dir/in$1"
	while [ ! -s "$dir/port$1" ]; do sleep 0.05; done
	port=$(head -n 1 "$dir/port$1")
	sed "s/\]:$direct /]:$port /" "$dir/srv/known_hosts" >"$dir/known$1"
	mkdir "$dir/tree$1"
	echo a >"$dir/tree$1/a"
	at="ssh://$user@127.0.0.1:$port$dir/srv/far$1"
	if [ "$1" = 0 ]; then
		# The agent is brought there first.
		"$build/sbsync" mirror -q -F /dev/null -i "$dir/srv/id_ed25519" \
			--known-hosts "$dir/known$1" "$dir/tree$1" "$at-warm" || exit 1
	fi
	begin=$(date +%s%3N)
	ssh -F /dev/null -o BatchMode=yes -i "$dir/srv/id_ed25519" \
		-o UserKnownHostsFile="$dir/known$1" -p "$port" "$user@127.0.0.1" true
	echo "ssh-true $(($(date +%s%3N) - begin)) 0" >"$2"
	"$build/tests/bench/bench-roundtrips" "$at" "$dir/srv/id_ed25519" "$dir/known$1" \
		"$dir/tree$1" "$dir/state$1" >>"$2" || exit 1
	exec 9>&-
	wait
}

over 0 "$dir/near"
over "$rtt" "$dir/far"
printf '%-20s %8s %8s %12s %10s\n' step "0 ms" "$rtt ms" "round trips" "answers"
paste -d ' ' "$dir/near" "$dir/far" | while read -r name a _ _ b answers; do
	printf '%-20s %8s %8s %12s %10s\n' "$name" "$a" "$b" \
		"$(echo "scale=1; ($b - $a) / $rtt" | bc)" "$answers"
done
