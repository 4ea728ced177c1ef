# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Programs of tests/unit that run on a storage that a script made. Source after tap.sh; what they
# have to know of the storage is in the environment (tests/lib/hostfix.c).

# relay PROGRAM: hands each result of a TAP program on under its own name.
relay()
{
	relay_status=0
	CMOCKA_MESSAGE_OUTPUT=TAP "${SB_TOP_BUILDDIR:-.}/tests/unit/$1" \
		>"$scratch/out" 2>&1 </dev/null || relay_status=$?
	relay_name="$1${SB_TEST_RUNTIME:+ $SB_TEST_RUNTIME}"
	relay_why="no reason given"
	while IFS= read -r relay_line; do
		case $relay_line in
		"# skip: "*) relay_why=${relay_line#"# skip: "} ;;
		"not ok "*" # SKIP "*) skip "$relay_name: ${relay_line#*# SKIP }" "$relay_why" ;;
		"ok "*) ok "$relay_name: ${relay_line#*- }" ;;
		"not ok "*) not_ok "$relay_name: ${relay_line#*- }" ;;
		*) printf '# %s\n' "$relay_line" ;;
		esac
	done <"$scratch/out"
	is "$1 ends" "$relay_status" 0
}
