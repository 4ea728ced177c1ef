# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Makes the root of a small image for containers: busybox, git, make, some programs of GNU.
# Source it, then
#     image_root DIR

# Programs of this machine with the libraries they need, into the root $1.
image_copy()
{
	image_to=$1
	shift
	for file in "$@"; do
		[ ! -e "$image_to$file" ] || continue
		mkdir -p "$image_to${file%/*}"
		cp -L "$file" "$image_to$file"
	done
}

image_root()
{
	mkdir -p "$1/bin" "$1/tmp" "$1/root" "$1/etc"
	chmod 1777 "$1/tmp"
	busybox=$(command -v busybox)
	cp "$busybox" "$1/bin/busybox"
	for applet in $("$busybox" --list | grep -vxE "sh|find|touch|tr|cksum"); do
		[ -e "$1/bin/$applet" ] || ln -s busybox "$1/bin/$applet"
	done
	echo 'root:x:0:0:root:/root:/bin/sh' >"$1/etc/passwd"
	# What busybox lacks: git, make, programs with the options of GNU, a shell that uses them,
	# and one that looks up names.
	image_copy "$1" "$(command -v dash)"
	ln -s "$(command -v dash)" "$1/bin/sh"
	for program in dash git make find touch tr cksum bash; do
		program=$(command -v $program) || continue
		# shellcheck disable=SC2046
		image_copy "$1" "$program" $(ldd "$program" | grep -o '/[^ ]*')
	done
	# Our agent needs libraries where it is not linked statically: in builds with sanitizers.
	# shellcheck disable=SC2046
	image_copy "$1" $(ldd "${SB_TOP_BUILDDIR:-.}/sbsync-agent" 2>/dev/null | grep -o '/[^ ]*')
}
