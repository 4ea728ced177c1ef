#!/bin/sh
# SPDX-License-Identifier: MIT
# What systemd thinks of the daemon's units: how much is open to whoever takes the daemon over.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
build=${SB_TOP_BUILDDIR:-.}
need systemd-analyze
systemd-analyze --help 2>/dev/null | grep -q -- --offline || skip_all "systemd is too old (250)"

# exposure UNIT: ten times what it prints, as a whole number.
exposure()
{
	sed 's|^ExecStart=[^ ]*|ExecStart=/bin/true|' "$build/bin/sbhostd/$1" >"$scratch/$1"
	systemd-analyze security --offline=yes "$scratch/$1" 2>&1 |
		sed -n 's/.*exposure level for.*: \([0-9]*\)\.\([0-9]\).*/\1\2/p'
}

check "both units are whole" sh -c "! systemd-analyze security --offline=yes \
	'$build/bin/sbhostd/sbhostd.service' '$build/bin/sbhostd/sbhostd-user.service' 2>&1 |
	grep -i 'unknown\|ignoring'"
user=$(exposure sbhostd-user.service)
root=$(exposure sbhostd.service)
echo "# exposure, in tenths: user ${user:-?}, root ${root:-?}"
check "without root's rights it is below 4" test "${user:-99}" -lt 40
# It makes namespaces, mounts and users, each of which counts.
check "with them below 6.2" test "${root:-99}" -lt 62
finish
