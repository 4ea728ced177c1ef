#!/bin/sh
# SPDX-License-Identifier: MIT
# The Debian packages: built of the tarball, twice, the same; clean for lintian; installed in a
# fresh Debian, where the README's commands are typed; purged without a rest. By make check-deb.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need dpkg-buildpackage dh lintian debootstrap

build=${SB_TOP_BUILDDIR:-.}
[ "$(id -u)" -eq 0 ] || skip_all "debootstrap needs root"
version=$(sed -n 's/^PACKAGE_VERSION = //p' "$build/Makefile")
log=$scratch/log
# Built in two places, the second time with another zone and locale.
one_build()
{
	mkdir -p "$scratch/$1" && cd "$scratch/$1" && tar -xf "$build/sbsync-$version.tar.xz" &&
		cd "sbsync-$version" && dpkg-buildpackage -us -uc -b >"$log.$1" 2>&1
}

build_twice()
{
	check "the tarball" make -s -C "$build" dist

	DEB_BUILD_OPTIONS="parallel=$(nproc)" one_build a || {
		tail -n 30 "$log.a" | diag
		not_ok "dpkg-buildpackage builds it"
		finish
	}
	ok "dpkg-buildpackage builds it"
	if (export LC_ALL=C.UTF-8 TZ=Asia/Tokyo DEB_BUILD_OPTIONS="parallel=$(nproc)"
		one_build another-place); then
		for deb in "$scratch"/a/*.deb; do
			cmp "$deb" "$scratch/another-place/${deb##*/}" || echo "differs: ${deb##*/}"
		done >"$scratch/differ" 2>&1
		is "a second build elsewhere gives the same bytes" "$(cat "$scratch/differ")" ""
	else
		not_ok "the second build" "$(tail -n 20 "$log.another-place")"
	fi
}

# With SB_DEBS, packages that are there already.
if [ -n "${SB_DEBS-}" ]; then
	mkdir "$scratch/a" && cp "$SB_DEBS"/*.deb "$SB_DEBS"/*.changes "$SB_DEBS"/*.buildinfo \
		"$scratch/a/"
else
	build_twice
fi
is "lintian has nothing to say" "$(lintian --fail-on none --allow-root \
	"$scratch"/a/*.changes 2>&1 | grep -v '^N:')" ""

# A fresh Debian, by the sources of packages that this machine uses.
root=$scratch/root
. /etc/os-release
mirror=$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)*\([^ ]*\) .*/\2/p' \
	/etc/apt/sources.list /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -n 1)
at_exit "! mountpoint -q $root || umount -R -l $root"
check "a fresh Debian" timeout 900 debootstrap --variant=minbase "$VERSION_CODENAME" "$root" \
	"${mirror:-http://deb.debian.org/debian}"
cp /etc/apt/sources.list.d/debian.sources "$root/etc/apt/sources.list.d/" 2>/dev/null &&
	: >"$root/etc/apt/sources.list"
cp /etc/apt/apt.conf.d/*prox* "$root/etc/apt/apt.conf.d/" 2>/dev/null
cp /etc/resolv.conf "$root/etc/resolv.conf"
# bubblewrap needs a root that is a mount of its own.
mount --bind "$root" "$root" && mount -t proc proc "$root/proc"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"

# there COMMAND...: typed in it, in a home of its own.
there()
{
	chroot "$root" env -i HOME=/root/home PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive timeout 600 sh -c "cd && $*"
}
mkdir -p "$root/root/home" "$root/root/debs"
cp "$scratch"/a/*.deb "$root/root/debs/" && rm -f "$root"/root/debs/*dbgsym*
check "apt-get update" there apt-get -q update
check "apt-get install of the packages" there apt-get -q -y install --no-install-recommends \
	/root/debs/sbsync_*.deb /root/debs/sbctl_*.deb /root/debs/sbhostd_*.deb bubblewrap

# The README's tour, with a local directory for the box.
check "sbsync start" there 'mkdir proj && echo 1 >proj/a && sbsync start ./proj box'
check "sbsync diff" there 'echo 2 >box/NOTES && cd proj && sbsync diff'
check "sbsync sync" there 'cd proj && sbsync sync'
is "both ways" "$(there 'cat proj/NOTES')" 2
check "sbsync undo" there 'cd proj && sbsync undo'
check "sbsync stop" there 'cd proj && sbsync stop'
out=$(there 'cd proj && sbctl run -- sh -c "echo made >new"' 2>&1)
is "sbctl run brings its work back" "$(there cat proj/new 2>&1)" made
[ -e "$root/root/home/proj/new" ] || printf '%s\n' "$out" | diag
check "the installed configuration has no mistakes" there \
	'install -d -m 700 /var/lib/sbhostd && install -d /var/lib/sbhostd/bases /run/sbhostd &&
	STATE_DIRECTORY=/var/lib/sbhostd sbhostd --check --config /etc/sbhostd.yaml'
check "completion is where bash looks for it" there \
	'bash -n /usr/share/bash-completion/completions/sbsync'
is "the units are there, and not enabled" "$(there 'ls /lib/systemd/system /etc/systemd/system/* |
	grep "^sbhostd" | paste -sd" "')" "sbhostd-user.service sbhostd.service"

# The libraries, as a C program uses them.
check "apt-get install of the development files" there apt-get -q -y install \
	--no-install-recommends /root/debs/lib*.deb gcc libc6-dev pkg-config
check "an installed example builds" there 'cc -o example \
	/usr/share/doc/libsandbox-dev/examples/example.c $(pkg-config --cflags --libs libsandbox)'
is "and runs" "$(there 'mkdir ws && cd ws && ../example local' 2>&1)" \
	"exit 0, 0 files back, destroyed"
check "purge" there 'apt-get -q -y purge sbsync sbctl sbhostd libsandbox0 libsbsync0 libsandbox-dev
	apt-get -q -y purge --autoremove gcc pkg-config bubblewrap'
is "leaves nothing of ours" "$(there 'find / -xdev -not -path "/root/*" \( -name "*sbsync*" -o \
	-name "*sbctl*" -o -name "*sbhostd*" -o -name "libsandbox*" \) \
	-not -path "/var/lib/sbhostd*" -not -path "/var/cache/*" -not -path "/run/*"')" ""
finish
