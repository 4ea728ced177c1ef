#!/bin/sh
# SPDX-License-Identifier: MIT
# `sbctl run` with a tree that is not there yet: backend e2b (our own host with that API, runtime
# none) against backend ssh on the same machine. The best of BENCH_ROUNDS, in milliseconds.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3 ssh-keygen
. "${SB_TOP_SRCDIR:-.}/tests/lib/e2bhost.sh"

TMPDIR=$scratch
SBSYNC_AGENT=$build/sbsync-agent
SBSYNC_STATE_DIR=$scratch/mine
export TMPDIR SBSYNC_AGENT SBSYNC_STATE_DIR
start_e2b_host none
dir=$scratch/server
why=$(sh "$src/tests/lib/sshd.sh" start "$dir" \
	"SetEnv XDG_CACHE_HOME=@DIR@/cache XDG_STATE_HOME=@DIR@/state") || skip_all "$why"
at_exit "sh $src/tests/lib/sshd.sh stop $dir"
python3 - "$scratch/tree" "${BENCH_FILES:-5000}" <<'PY'
import os, random, sys
rng = random.Random(1)
for i in range(int(sys.argv[2])):
    where = "%s/d%d/e%d" % (sys.argv[1], i % 50, i % 7)
    os.makedirs(where, exist_ok=True)
    with open("%s/f%d" % (where, i), "wb") as f:
        f.write(rng.randbytes(rng.choice([200, 2000, 8000, 30000])))
PY

# best BACKEND OPTION...: milliseconds of the fastest round into $best
best()
{
	best=
	i=0
	while [ $i -lt "${BENCH_ROUNDS:-5}" ]; do
		i=$((i + 1))
		start=$(date +%s%N)
		"$sbctl" run -b "$@" -q -T -C "$scratch/tree" -- true || exit 1
		took=$((($(date +%s%N) - start) / 1000000))
		[ -n "$best" ] && [ "$best" -le $took ] || best=$took
	done
	echo "# $1: $best ms"
}
best ssh -s host=127.0.0.1 -s "port=$(cat "$dir/port")" -s "user=$(cat "$dir/user")" \
	-s "identity=$dir/id_ed25519" -s "known_hosts=$dir/known_hosts" -s config=/dev/null
ssh=$best
best e2b -s "api_url=$e2b_url" -s "sandbox_url=$e2b_url"
echo "# e2b / ssh: $(python3 -c "print('%.2f' % ($best / $ssh))")"
check "a run with e2b takes at most three times as long" [ "$best" -le $((3 * ssh)) ]
finish
