#!/bin/sh
# SPDX-License-Identifier: MIT
# kill -9 of sbctl, of the command, of sshd and of the agent while `sbctl run` works over SSH:
# nothing is lost after recover. SB_KILL_ROUNDS is the number of rounds, SB_KILL_SEED the seed;
# `make check-kill` runs 200.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3 ssh ssh-keygen

src=${SB_TOP_SRCDIR:-.}
build=${SB_TOP_BUILDDIR:-.}
"$build/sbctl" providers | grep -q '^ssh ' || skip_all "the ssh backend is not built in"
dir=$scratch/server
env_line='SetEnv XDG_CACHE_HOME=@DIR@/cache SBSYNC_STATE_DIR=@DIR@/state'
env_line="$env_line XDG_STATE_HOME=@DIR@/state TMPDIR=@DIR@/tmp HOME=@DIR@/home"
why=$(sh "$src/tests/lib/sshd.sh" start "$dir" "$env_line") || skip_all "$why"
at_exit "sh $src/tests/lib/sshd.sh stop $dir"
mkdir -p "$dir/tmp" "$dir/home"
rounds=${SB_KILL_ROUNDS:-10}
seed=${SB_KILL_SEED:-1}
echo "# seed $seed"
check "killed $rounds times, nothing is lost" python3 "$src/tests/fault/runkill.py" "$build/sbctl" \
	"$dir" "$scratch/rounds" "$rounds" "$seed"
tail -n 1 "$scratch/.tap" | diag
finish
