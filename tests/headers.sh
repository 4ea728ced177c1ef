#!/bin/sh
# SPDX-License-Identifier: MIT
# Every header compiles alone; the installed ones also as C++ and without the tree's own headers.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"

src=${SB_TOP_SRCDIR:-.}
cc=${CC:-cc}
cxx=${CXX:-g++}
flags=${SB_CPPFLAGS:--I$src/lib -I$src/sync -I$src}
warn='-Wall -Wextra -Werror -Wno-unused-parameter'

one()
{
	printf '#include <%s>\n' "$2" >"$scratch/one.c"
	check "$1" sh -c "$cc -std=gnu17 $flags $warn -fsyntax-only $scratch/one.c"
}

for header in $(cd "$src" && find lib sync bin tests -name '*.h' | LC_ALL=C sort); do
	case $header in
	lib/*) one "$header" "${header#lib/}" ;;
	*) one "$header" "$header" ;;
	esac
done

if command -v "$cxx" >/dev/null; then
	for header in $(cd "$src/lib" && find sb -name '*.h' | LC_ALL=C sort); do
		echo "#include <$header>" >"$scratch/one.cc"
		check "$header as C++" "$cxx" -std=c++17 -Wall -Wextra -Werror -I"$src/lib" \
			-I"$src/sync" -fsyntax-only "$scratch/one.cc"
	done
	for header in $(cd "$src/sync" && find sbsync -name '*.h' | LC_ALL=C sort); do
		echo "#include <$header>" >"$scratch/one.cc"
		check "$header as C++" "$cxx" -std=c++17 -Wall -Wextra -Werror -I"$src/lib" \
			-I"$src/sync" -fsyntax-only "$scratch/one.cc"
	done
else
	skip "public headers as C++" "$cxx is not installed"
fi
finish
