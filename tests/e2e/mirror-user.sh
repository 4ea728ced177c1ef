#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/e2e/mirror.sh for a user who is not root: no right to read, write or own everything.
src=${SB_TOP_SRCDIR:-.}
MIRROR_PART=user
export MIRROR_PART
[ "$(id -u)" = 0 ] || exec "$src/tests/e2e/mirror.sh"

no()
{
	echo "1..0 # SKIP $1"
	exit 0
}
command -v setpriv >/dev/null || no "setpriv is not installed"
user="setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all"
$user true 2>/dev/null || no "setpriv cannot become another user here"
$user test -x "$src/tests/e2e/mirror.sh" -a -x "${SB_TOP_BUILDDIR:-.}/sbsync" ||
	no "another user cannot read the build directory"
HOME=${TMPDIR:-/tmp}
export HOME
exec $user "$src/tests/e2e/mirror.sh"
