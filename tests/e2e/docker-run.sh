#!/bin/sh
# SPDX-License-Identifier: MIT
# What tests/e2e/sbctl-run.sh shows of backend ssh, with containers of a real Podman.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/json.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/podman.sh"
need python3

src=$(cd "${SB_TOP_SRCDIR:-.}" && pwd)
build=$(cd "${SB_TOP_BUILDDIR:-.}" && pwd)
podman_start || skip_all "$podman_why"
sbctl=$build/sbctl
SBSYNC_AGENT=$build/sbsync-agent
SBSYNC_STATE_DIR=$scratch/state
XDG_CONFIG_HOME=$scratch/config
export SBSYNC_AGENT SBSYNC_STATE_DIR XDG_CONFIG_HOME
mkdir -p "$scratch/config/sandbox" "$scratch/ws"
cat >"$scratch/config/sandbox/config.yaml" <<END
profiles:
  box:
    backend: docker
    docker: {kind: container, engine: podman, image: "$podman_image"}
    exclude: ["*.o", build]
    include: [keep.o]
    secret_env: {KEY: "env:SB_E2E_SECRET"}
END
cd "$scratch" || exit 1
backend=docker
# Where its containers and volumes are.
there=$podman_dir
elsewhere=engine=docker
. "$src/tests/lib/runlife.sh"

# A stop that was killed leaves a container that Podman calls stopping, and does not start.
cd "$scratch/ws" || exit 1
check "a sandbox that is kept" "$sbctl" run -q -P box -k --id halted -- sh -c 'echo a >a'
box=$(podman ps --format '{{.Names}}' | head -n 1)
kill -STOP "$(podman inspect --format '{{.State.Pid}}' "$box")"
podman stop -t 60 "$box" >/dev/null 2>&1 &
stopper=$!
check "its stop takes long" wait_for 20 \
	sh -c "podman ps --all --format '{{.State}}' | grep -qi stopping"
kill -9 $stopper
wait $stopper 2>/dev/null
is "is used although its stop was killed" "$("$sbctl" exec -q halted cat a)" a
check "and goes" "$sbctl" destroy -q halted
is "no container, volume or image is left" "$(podman_left)" ""
finish
