#!/bin/sh
# SPDX-License-Identifier: MIT
# What `make install` puts down is complete: a program outside the tree finds the headers and both
# libraries through pkg-config and runs, linked shared and static.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"

build=${SB_TOP_BUILDDIR:-.}
cc=${CC:-cc}
need make pkg-config
# With the sanitizers of the build, a plain program cannot load the library first.
grep -q '^SB_SAN_FLAGS = *$' "$build/Makefile" ||
	skip_all "the build is instrumented (sanitizers or coverage)"
prefix=$(sed -n 's/^prefix = *//p' "$build/Makefile")
dest=$scratch/dest

check "make install DESTDIR" make -C "$build" --no-print-directory install DESTDIR="$dest"
pc_dir=$(find "$dest" -name pkgconfig -type d | head -n 1)
libdir=${pc_dir%/pkgconfig}

# pkg-config over the installed files, with the prefix moved to where DESTDIR put it.
pc()
{
	PKG_CONFIG_PATH=$pc_dir pkg-config --define-variable=prefix="$dest$prefix" "$@"
}

# What the archive of $1 needs besides itself, from the private fields of its .pc file.
private()
{
	for dep in $(pc --print-requires-private "$1" | awk '{ print $1 }'); do
		case $dep in
		libsbsync) echo "-l:libsbsync.a"; private libsbsync ;;
		*) pkg-config --libs "$dep" ;;
		esac
	done
	sed -n 's/^Libs.private: *//p' "$pc_dir/$1.pc"
}

try()
{
	name=$1 header=$2 call=$3 lib=$4
	printf '#include <%s>\n#include <stdio.h>\nint main(void) { puts(%s); return 0; }\n' \
		"$header" "$call" >"$scratch/$name.c"
	check "$lib: compile and link, shared" sh -c \
		"$cc -Wall -Werror -o $scratch/$name $scratch/$name.c $(pc --cflags --libs "$lib")"
	is "$lib: runs, shared" \
		"$(LD_LIBRARY_PATH=$libdir "$scratch/$name" 2>&1)" "$(pc --modversion "$lib")"
	# Our archives; the system's libraries as they come, as Debian has
	# no static set of libcurl's.
	flags="$(pc --cflags "$lib") -L$libdir -l:$lib.a $(private "$lib" | tr '\n' ' ')"
	check "$lib: compile and link, static" \
		sh -c "$cc -Wall -Werror -o $scratch/$name-static $scratch/$name.c $flags"
	is "$lib: runs, static" "$("$scratch/$name-static" 2>&1)" "$(pc --modversion "$lib")"
}

if [ ! -e "$libdir/libsbsync.so" ] || [ ! -e "$libdir/libsbsync.a" ]; then
	skip "link against the installed libraries" \
		"configured without shared or without static libraries"
	finish
fi
try sync sbsync/version.h 'sb_sync_version()' libsbsync
try sandbox sb/version.h 'sb_version()' libsandbox
if command -v g++ >/dev/null; then
	cp "$scratch/sync.c" "$scratch/sync.cc"
	check "libsbsync from C++" sh -c \
		"g++ -Wall -Werror -o $scratch/sync-cc $scratch/sync.cc \
			$(pc --cflags --libs libsbsync)"
else
	skip "libsbsync from C++" "g++ is not installed"
fi

for p in sbsync sbctl sbhostd; do
	share=$dest$prefix/share
	check "completion of $p is installed for bash" \
		bash -n "$share/bash-completion/completions/$p"
	is "and for zsh" "$(head -n 1 "$share/zsh/site-functions/_$p")" "#compdef $p"
	check "and for fish" grep -q "^complete -c $p " \
		"$share/fish/vendor_completions.d/$p.fish"
done

# The examples are installed as a user would build them.
for name in example agent; do
	file=$(find "$dest" -path "*/examples/$name.c")
	check "example $name: builds from what is installed" sh -c \
		"$cc -Wall -Werror -o $scratch/$name-ex $file $(pc --cflags --libs libsandbox)"
done

# Pages of section 3 are there for all that the libraries export, and well-formed.
man3=$dest$prefix/share/man/man3
if [ -d "$man3" ]; then
	for name in $(nm -D --defined-only "$libdir"/libsbsync.so "$libdir"/libsandbox.so |
		awk '$3 ~ /^sb_/ { print $3 }'); do
		[ -e "$man3/$name.3" ] || echo "$name"
	done | sort -u >"$scratch/without"
	is "each exported function has a manual page" "$(cat "$scratch/without")" ""
	if command -v mandoc >/dev/null; then
		is "mandoc has nothing to say about them" \
			"$(grep -L '^\.so ' "$man3"/*.3 |
				xargs mandoc -Tlint -Wwarning 2>&1)" ""
		check "a function's page is its header's" sh -c "cd '${man3%/man3}' &&
			mandoc man3/sb_env_create.3 | grep -q 'session with an id of the caller'"
	else
		skip "the pages are well-formed" "mandoc is not installed"
	fi
else
	skip "manual pages of the libraries" "python3 was not there to make them"
fi

# Only what an export macro names leaves the libraries, and all of it carries the prefix.
for so in sbsync sandbox; do
	is "lib$so.so exports only sb_ names" \
		"$(nm -D --defined-only "$libdir/lib$so.so" | awk '$3 !~ /^sb_/ { print $3 }')" ""
done
for header in $(cd "$dest$prefix/include" && find sb sbsync -name '*.h'); do
	printf '#include <%s>\n' "$header"
done >"$scratch/all.c"
check "the installed headers stand alone" \
	sh -c "$cc -Wall -Wextra -Werror -fsyntax-only $(pc --cflags libsandbox) $scratch/all.c"
finish
