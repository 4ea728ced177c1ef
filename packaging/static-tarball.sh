#!/bin/sh
# SPDX-License-Identifier: MIT
# static-tarball.sh SRC BUILD VERSION STATIC-LIBS: sbsync without shared libraries and its agent as
# BUILD/sbsync-VERSION-linux-MACHINE.tar.xz, the same bytes for the same programs.
set -e
src=$1 build=$2 version=$3 libs=$4
name=sbsync-$version-linux-$(uname -m)
work=$(mktemp -d "${TMPDIR:-/tmp}/sbtar.XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/$name
mkdir -p "$root/bin" "$root/share/man/man1" "$root/share/completion"
install -m 755 "$build/sbsync-static" "$root/bin/sbsync"
# The program looks for its agent beside itself.
install -m 755 "$build/sbsync-agent" "$root/bin/sbsync-agent"
install -m 644 "$src/doc/sbsync.1" "$root/share/man/man1/"
for shell in bash zsh fish; do
	"$root/bin/sbsync" completion $shell >"$root/share/completion/sbsync.$shell"
done
install -m 644 "$src/LICENSE" "$src/NEWS" "$root/"
cat >"$root/README" <<TEXT
sbsync $version for any Linux of this machine's kind. Put bin/ somewhere and call bin/sbsync; both
files in it belong together. The manual: man -l share/man/man1/sbsync.1
TEXT
python3 "$src/packaging/sbom.py" --version "$version" --static "$libs" \
	"$root/bin/sbsync" "$root/bin/sbsync-agent" >"$root/sbom.cdx.json"
chmod -R u=rwX,go=rX "$root"
tar -C "$work" --sort=name --mtime="@${SOURCE_DATE_EPOCH:-0}" --owner=0 --group=0 \
	--numeric-owner --format=ustar -cf - "$name" | xz -T1 -6 >"$build/$name.tar.xz.new"
mv "$build/$name.tar.xz.new" "$build/$name.tar.xz"
echo "$build/$name.tar.xz"
