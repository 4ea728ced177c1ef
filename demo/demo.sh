#!/bin/sh
# SPDX-License-Identifier: MIT
# A short tour of what is built, on throw-away folders. Usage: demo.sh [BUILD]. Called by ./quickstart; each part is
# a function that says what it does, does it, and shows the outcome. Add new parts at the end of the list below.
set -eu

build=$(cd "${1:-build}" && pwd)
PATH=$build:$build/bin:$PATH
place=$(mktemp -d "${TMPDIR:-/tmp}/sbsync-demo.XXXXXX")
trap 'chmod -R u+rwX "$place"; rm -rf "$place"' EXIT
trap 'exit 130' INT TERM
export SBSYNC_STATE_DIR="$place/state"
cd "$place"

step()
{
	printf '\n%s\n' "$*"
}

# What and why, indented text.
tell()
{
	printf '  %s\n' "$@"
}

# A command as the user would type it, and what it prints.
show()
{
	printf '  $ %s\n' "$*"
	"$@" 2>&1 | sed 's/^/    /'
}

part_built()
{
	step "What was built"
	for name in sbsync sbctl sbhostd; do
		if command -v "$name" >/dev/null; then
			tell "$name: $("$name" --version 2>&1 | head -n 1)"
		fi
	done
	tell "libsbsync, libsandbox: shared and static libraries, with pkg-config files"
}

part_built
printf '\nThat is all there is so far. Next: ./quickstart test, and doc/ARCHITECTURE.md.\n'
