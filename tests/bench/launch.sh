#!/bin/sh
# SPDX-License-Identifier: MIT
# 1 KiB there and back through the launchers, and through the ssh program, against one sshd.
src=${SB_TOP_SRCDIR:-.}
build=${SB_TOP_BUILDDIR:-.}
dir=$(mktemp -d "${TMPDIR:-/tmp}/sbbench.XXXXXX") || exit 1
trap 'sh "$src/tests/lib/sshd.sh" stop "$dir"; rm -rf "$dir"' EXIT
env_line='SetEnv XDG_CACHE_HOME=@DIR@/cache SBSYNC_STATE_DIR=@DIR@/state XDG_STATE_HOME=@DIR@/state'
sh "$src/tests/lib/sshd.sh" start "$dir" "$env_line" || exit
SBSYNC_AGENT=${SBSYNC_AGENT:-$build/sbsync-agent}
export SBSYNC_AGENT
mkdir "$dir/work"
"$build/tests/bench/bench-launch" "$dir/work" "$dir" "$(cat "$dir/user")" "$(cat "$dir/port")"
