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
check "with them below 5.9" test "${root:-99}" -lt 59

# The root unit's limits that can be had without systemd: its capabilities, no new privileges, homes
# and other processes out of sight, a system that cannot be written. A session must still work.
what="a daemon within the root unit's limits runs a session in bwrap"
if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null || ! command -v bwrap >/dev/null ||
	! unshare -m true 2>/dev/null; then
	skip "$what" "needs root, setpriv, bwrap and mount namespaces"
	finish
fi
chmod 711 "$scratch"
mkdir "$scratch/bin" "$scratch/bases" "$scratch/bases/base" "$scratch/none"
for program in sbhostd sbctl sb-box sb-files sb-egress; do
	"$build/libtool" --quiet --mode=install cp "$build/$program" "$scratch/bin" \
		>/dev/null 2>&1 || cp "$build/$program" "$scratch/bin"
done
chmod -R a+rX "$scratch/bin"
unset SB_BOX
caps=$(sed -n 's/^CapabilityBoundingSet=//p' "$build/bin/sbhostd/sbhostd.service" |
	tr 'A-Z ' 'a-z\n' | sed -n 's/^cap_/,+/p' | tr -d '\n')
cat >"$scratch/inside" <<'END'
set -e
scratch=$1 caps=$2
cd /
mount -t proc -o hidepid=invisible proc /proc
for dir in /usr /etc /boot; do
	[ ! -d $dir ] || { mount --bind $dir $dir && mount -o remount,bind,ro $dir; }
done
for dir in /root /home; do
	[ ! -d $dir ] || mount --bind "$scratch/none" $dir
done
export SANDBOX_HOST="unix:$scratch/sock"
setpriv --no-new-privs --bounding-set="-all$caps" "$scratch/bin/sbhostd" \
	--listen "$SANDBOX_HOST" --state-dir "$scratch/state" --storage-backend local-disk \
	--sessions-root-dir "$scratch/sessions" --bases-dir "$scratch/bases" \
	--container-runtime bwrap --default-network none >"$scratch/log" 2>&1 &
pid=$!
trap 'kill $pid; wait $pid' EXIT
n=0
until "$scratch/bin/sbctl" host health >/dev/null 2>&1; do
	n=$((n + 1))
	[ $n -lt 400 ] && kill -0 $pid || { cat "$scratch/log"; exit 1; }
	sleep 0.05
done
"$scratch/bin/sbctl" host create --id one --base base
"$scratch/bin/sbctl" host exec one 'echo made >file && cat file && id -u'
"$scratch/bin/sbctl" host tool one read_file --params '{"path":"file"}'
"$scratch/bin/sbctl" host destroy one
END
check "$what" unshare -m --propagation private sh "$scratch/inside" "$scratch" "$caps"
finish
