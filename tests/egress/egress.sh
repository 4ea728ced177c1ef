#!/bin/sh
# SPDX-License-Identifier: MIT
# A session against its network policy, in network namespaces of the test's own, as root or as an
# ordinary user in a user namespace.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3 ip unshare openssl

src=${SB_TOP_SRCDIR:-.}
build=${SB_TOP_BUILDDIR:-.}
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
why=$("$build/sb-egress" probe 2>&1 >/dev/null) || skip_all "${why:-sb-egress probe failed}"
user=-n
[ "$(id -u)" -eq 0 ] || user=-Urn
unshare $user true 2>/dev/null || skip_all "no network namespaces for this user"
mkdir "$scratch/lab"
unshare $user python3 "$src/tests/egress/hostile.py" "$build/sb-egress" "$scratch/lab"
