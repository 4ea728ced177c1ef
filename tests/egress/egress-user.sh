#!/bin/sh
# SPDX-License-Identifier: MIT
# The same as egress.sh and the tests of network outbound in bwrap, by an ordinary user when root
# runs the tests: who has no rights must be as well confined, and still get out.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3 ip unshare openssl setpriv

[ "$(id -u)" -eq 0 ] || skip_all "egress.sh runs as an ordinary user already"
src=${SB_TOP_SRCDIR:-.}
build=${SB_TOP_BUILDDIR:-.}
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
as_user="setpriv --reuid=65534 --regid=65534 --clear-groups"
# Nobody need not reach the build: copies.
chmod 711 "$scratch"
mkdir "$scratch/bin" "$scratch/tmp"
cp "$build/sb-egress" "$build/sb-box" "$src/tests/egress/lab.py" "$src/tests/egress/hostile.py" \
	"$scratch/bin"
"$build/libtool" --quiet --mode=install cp "$build/tests/unit/test-network-bwrap" \
	"$scratch/bin" >/dev/null 2>&1 || cp "$build/tests/unit/test-network-bwrap" "$scratch/bin"
chmod -R a+rX "$scratch/bin"
chown 65534:65534 "$scratch/tmp"
why=$($as_user "$scratch/bin/sb-egress" probe 2>&1 >/dev/null) || skip_all "${why:-no gate}"
$as_user unshare -Urn true 2>/dev/null || skip_all "no user namespaces for ordinary users"

check "every attempt of a session is refused" $as_user unshare -Urn \
	python3 "$scratch/bin/hostile.py" "$scratch/bin/sb-egress" "$scratch/tmp"
if command -v bwrap >/dev/null; then
	check "a box of bwrap has lists" $as_user env TMPDIR="$scratch/tmp" \
		SB_BOX="$scratch/bin/sb-box" "$scratch/bin/test-network-bwrap"
else
	skip "a box of bwrap has lists" "bwrap is not installed"
fi
finish
