#!/bin/sh
# SPDX-License-Identifier: MIT
# The versions that all packages say, the RPM spec; with SB_PACKAGES_FULL (make check-packages) also
# the static tarball and its bill of materials.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3

src=${SB_TOP_SRCDIR:-.}
build=${SB_TOP_BUILDDIR:-.}
version=$(sed -n 's/^PACKAGE_VERSION = //p' "$build/Makefile")
is "every package says the version" "$({
	sed -n '1s/.*(\(.*\)).*/\1/p' "$src/debian/changelog"
	sed -n 's/^Version: *//p' "$src/packaging/sbsync.spec"
	sed -n 's/.*"version": "\(.*\)",/\1/p' "$src/bindings/ts/package.json"
	sed -n 's/^version = "\(.*\)"/\1/p' "$src/bindings/python/pyproject.toml"
	sed -n 's/^__version__ = "\(.*\)"/\1/p' "$src/bindings/python/sbsync/__init__.py"
} | sort | uniq -c | sed 's/^ *//')" "5 $version"

# What one package misses and another has would be forgotten.
sed -n 's|^usr/\([^ *]*\)$|\1|p; s|^usr/\([^ *]*\) .*|\1|p' "$src"/debian/sb*.install |
	sed 's|.*/||' | sort -u >"$scratch/deb"
sed -n 's|^%{_.*/\([^/]*\)$|\1|p' "$src/packaging/sbsync.spec" | sed 's/\*$//' |
	sort -u >"$scratch/rpm"
is "what the Debian packages have, the RPMs have" "$(while read -r f; do
	case $f in
	NEWS | README.md) continue ;;
	esac
	grep -qxF -e "$f" -e "${f%.service}." -e "${f%.timer}." "$scratch/rpm" || echo "$f"
done <"$scratch/deb")" ""
if command -v rpmspec >/dev/null; then
	check "rpmspec reads the spec" rpmspec --define "_topdir $scratch/rpm-top" \
		--define 'systemd_requires Requires: systemd' \
		--define '_unitdir /usr/lib/systemd/system' \
		--define '_userunitdir /usr/lib/systemd/user' \
		--define '_sysusersdir /usr/lib/sysusers.d' \
		--define '_tmpfilesdir /usr/lib/tmpfiles.d' -P "$src/packaging/sbsync.spec"
else
	skip "rpmspec reads the spec" "rpm is not installed"
fi
if command -v rpmlint >/dev/null; then
	# mklibname is Mandriva's.
	is "rpmlint finds no error in it" "$(rpmlint "$src/packaging/sbsync.spec" 2>&1 |
		grep ' E: ' | grep -v mklibname)" ""
else
	skip "rpmlint finds no error in it" "rpmlint is not installed"
fi

[ -n "${SB_PACKAGES_FULL-}" ] || finish
if ! grep -q '^sbsync-static' "$build/Makefile"; then
	skip "the static tarball" "this build has no static agent"
	finish
fi
for lib in libssh2 libssl libjansson; do
	[ -e "$(${CC:-cc} -print-file-name=$lib.a)" ] || {
		skip "the static tarball" "there is no $lib.a here"
		finish
	}
done
check "make static-tarball" make -s -C "$build" static-tarball
tarball=$build/sbsync-$version-linux-$(uname -m).tar.xz
cp "$tarball" "$scratch/first.tar.xz" || finish
check "and again" make -s -C "$build" static-tarball
check "the same bytes" cmp "$tarball" "$scratch/first.tar.xz"
rm -f "$tarball"
tar -C "$scratch" -xf "$scratch/first.tar.xz"
root=$scratch/sbsync-$version-linux-$(uname -m)
is "its programs need no library" \
	"$(readelf -d "$root"/bin/* 2>&1 | grep -c 'NEEDED')" 0
# In a root with nothing but it, where that can be had.
mkdir -p "$scratch/ws" "$scratch/far" && echo work >"$scratch/ws/f"
mkdir -p "$root/work" "$root/tmp" "$root/proc" && cp -r "$scratch/ws" "$root/work/ws"
if unshare -Urpf --mount-proc true 2>/dev/null; then
	check "it syncs in an empty root" unshare -Urpf --mount-proc="$root/proc" chroot "$root" \
		/bin/sbsync mirror /work/ws /work/copy
	is "what was there" "$(cat "$root/work/copy/f")" work
else
	skip "it syncs in an empty root" "no user namespaces here"
fi

# The bill names each library that is really linked, by the package it came from.
check "the bill of materials is CycloneDX with sound references" python3 - "$root" <<'PY'
import hashlib, json, sys
root = sys.argv[1]
bom = json.load(open(root + "/sbom.cdx.json"))
assert bom["bomFormat"] == "CycloneDX" and bom["specVersion"] == "1.5"
refs = {c["bom-ref"]: c for c in bom["components"]}
assert len(refs) == len(bom["components"])
for d in bom["dependencies"]:
    assert d["ref"] in refs and d["dependsOn"]
    assert all(x in refs for x in d["dependsOn"]), d
for name in ("sbsync", "sbsync-agent"):
    digest = hashlib.sha256(open(root + "/bin/" + name, "rb").read()).hexdigest()
    assert refs[name]["hashes"][0]["content"] == digest
names = {c["name"] for c in bom["components"]}
assert {"libzstd-dev", "libarchive-dev", "libssh2-1-dev", "libc6-dev"} <= names, names
assert all(c["version"] and c["purl"].startswith("pkg:deb/") for c in bom["components"]
           if c["type"] == "library")
PY
make -s -C "$build" sbom >"$scratch/all.json" 2>"$scratch/sbom.log"
is "the bill of all programs names what sbhostd loads" \
	"$(python3 -c 'import json, sys
d = {x["ref"]: x["dependsOn"] for x in json.load(open(sys.argv[1]))["dependencies"]}
print(len(d), any("sqlite" in x for x in d["sbhostd"]), any("sqlite" in x for x in d["sbsync"]))
' "$scratch/all.json" 2>&1)" "9 True False"
finish
