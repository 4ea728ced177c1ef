#!/bin/sh
# SPDX-License-Identifier: MIT
# Every source is free of warnings with clang too, whichever compiler the build uses.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"

src=${SB_TOP_SRCDIR:-.}
clang=
for name in clang-14 clang; do
	! command -v $name >/dev/null || { clang=$name && break; }
done
[ -n "$clang" ] || skip_all "clang is not installed"
flags="${SB_CPPFLAGS:--I$src/lib -I$src/sync -I$src}"
flags="$flags ${SB_CFLAGS:--std=gnu17 -Wall -Wextra -Wvla -Wno-unused-parameter}"

echo "$clang -fsyntax-only $flags -Werror \"\$@\"" >"$scratch/clang.sh"

# What is built only where its library is.
without=
echo '#include <libssh/libssh.h>' >"$scratch/libssh.c"
sh "$scratch/clang.sh" "$scratch/libssh.c" 2>/dev/null || without='-not -path */sb-ssh/*'

# clean FOLDER: nothing to say about the sources in it. Paths with blanks are
# not expected in the tree.
clean()
{
	# shellcheck disable=SC2086
	find "$src/$1" -name '*.c' -not -path '*/_build/*' $without | LC_ALL=C sort |
		xargs -r -P 2 -n 4 sh "$scratch/clang.sh"
}

echo 'int f(int x) { if (x = 1) return 0; return 1; }' >"$scratch/bad.c"
must_fail "clang finds what is wrong" 1 sh "$scratch/clang.sh" "$scratch/bad.c"
for folder in lib sync bin tests; do
	check "$folder" clean $folder
done
finish
