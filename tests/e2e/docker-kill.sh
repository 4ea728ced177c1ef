#!/bin/sh
# SPDX-License-Identifier: MIT
# kill -9 of sbctl, of the command, of podman, of the agent and of the container while `sbctl run`
# works in a container: nothing is lost after recover, no container is left. SB_KILL_ROUNDS is the
# number of rounds, SB_KILL_SEED the seed; `make check-kill-docker` runs 200.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/podman.sh"
need python3

src=${SB_TOP_SRCDIR:-.}
build=${SB_TOP_BUILDDIR:-.}
podman_start || skip_all "$podman_why"
mkdir -p "$scratch/rounds/acks"
touch "$scratch/rounds/acks/here"
echo "volumes = [\"$scratch/rounds/acks:/acks\"]" >>"$CONTAINERS_CONF"
SBSYNC_AGENT=$build/sbsync-agent
export SBSYNC_AGENT
rounds=${SB_KILL_ROUNDS:-6}
seed=${SB_KILL_SEED:-1}
echo "# seed $seed"
check "killed $rounds times, nothing is lost" python3 "$src/tests/fault/runkill.py" \
	"$build/sbctl" "podman:$podman_image" "$scratch/rounds" "$rounds" "$seed"
tail -n 1 "$scratch/.tap" | diag
finish
