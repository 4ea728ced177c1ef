#!/bin/sh
# SPDX-License-Identifier: MIT
# ./quickstart: what it asks of apt-get, what it says when it cannot, and how it counts
# results. The package tools and make are stand-ins that write down how they were
# called, so nothing is installed.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need bash awk fmt

src=${SB_TOP_SRCDIR:-.}
tree=$scratch/tree
bin=$scratch/bin
calls=$scratch/calls
mkdir -p "$tree/demo" "$tree/build-aux" "$bin"
cp "$src/quickstart" "$tree/"
printf '#!/bin/sh\necho "this is the demo"\n' >"$tree/demo/demo.sh"

stub()
{
	printf '#!/bin/sh\n%s\n' "$2" >"$bin/$1"
	chmod +x "$bin/$1"
}

# Everything but the packages in $ABSENT is installed; apt knows all but those in $UNKNOWN.
stub dpkg-query 'for a; do
	case $a in
	-* | *[\$]*) ;;
	*) case " $ABSENT " in *" $a "*) ;; *) echo "$a installed" ;; esac ;;
	esac
done'
stub apt-cache 'case " $UNKNOWN " in
*" $2 "*) echo "  Candidate: (none)" ;;
*) echo "  Candidate: 1.0" ;;
esac'
stub apt-get 'echo "apt-get $*" >>'"$calls"
stub systemctl 'echo "systemctl $*" >>'"$calls"
stub id 'echo "${FAKE_UID:-1000}"'
stub sudo '[ "$1" != -n ] || exit ${NO_SUDO:-0}; case $1 in sh | rm) ;; *) exec "$@" ;; esac'
stub bootstrap 'exit 0'
stub make 'echo "make $*" >>'"$calls"'; case "$*" in *check*) eval "$ON_CHECK" ;; esac'
cp "$bin/bootstrap" "$tree/bootstrap"
cp "$bin/bootstrap" "$tree/configure"
chmod +x "$tree/demo/demo.sh"
touch "$tree/Makefile.in" "$tree/build-aux/ltmain.sh"

# quick ARGS...: runs the copy with the stand-ins; its output is in $output, its status in $status.
quick()
{
	: >"$calls"
	status=0
	output=$(cd "$tree" && PATH="$bin:$PATH" bash ./quickstart "$@" 2>&1 </dev/null) ||
		status=$?
}

says()
{
	case $output in
	*"$2"*) ok "$1" ;;
	*) not_ok "$1" "does not say: $2
$output" ;;
	esac
}

export ABSENT='' UNKNOWN='' ON_CHECK=''
quick
is "with everything there it ends well" "$status" 0
says "and shows the demo" "this is the demo"
is "without calling apt-get" "$(grep -c apt-get "$calls")" 0

ABSENT=bubblewrap
quick
is "what the demo shows is installed" "$(sed -n 's/^apt-get .*--force-confold //p' "$calls")" \
	"install --no-install-recommends bubblewrap"
NO_SUDO=1 quick
is "without root the demo goes on" "$status" 0
says "and says what it lacks" "without: bubblewrap"

ABSENT="libzstd-dev librsync-dev"
quick
is "missing packages: ends well through sudo" "$status" 0
is "installs exactly those, lists not refreshed" \
	"$(sed -n 's/^apt-get .*--force-confold //p' "$calls")" \
	"install --no-install-recommends librsync-dev libzstd-dev"

NO_SUDO=1 quick
is "neither root nor sudo: fails" "$status" 1
says "and names the packages" "apt-get install --no-install-recommends librsync-dev libzstd-dev"
is "without calling apt-get" "$(grep -c apt-get "$calls")" 0

quick --no-install
is "--no-install with something missing: fails" "$status" 1
says "and names the packages" "not installed: librsync-dev libzstd-dev"

ABSENT=libzstd-dev UNKNOWN=libzstd-dev
quick
is "a package the lists do not know: fails" "$status" 1
is "after refreshing the lists" "$(grep -c 'force-confold update' "$calls")" 1
says "and names it" "libzstd-dev"

# result NAME LOG: shell that leaves the .log and .trs of one test program, as the TAP driver would.
result()
{
	printf "mkdir -p build/tests; printf '%%b' '%s' >build/tests/%s.log;" "$2" "$1"
	printf "sed -n 's/^\([A-Z]*\): .*/:test-result: \\\\1/p' "
	printf '<build/tests/%s.log >build/tests/%s.trs;' "$1" "$1"
}
ABSENT='openssh-server zfs-fuse runsc' UNKNOWN=runsc
ON_CHECK=$(
	result a 'PASS: t/a 1 - x\nPASS: t/a 2 - y\n'
	result b 'SKIP: t/b 1 - z # SKIP no zfs here\n'
)
quick test
is "test: ends well when all pass" "$status" 0
says "test packages that do not exist are named" "runsc"
is "the others are installed" "$(grep -c 'recommends openssh-server' "$calls")" 1
is "and their services stay off" \
	"$(grep -c -E 'systemctl disable (ssh|zfs-fuse).service' "$calls")" 2
says "each skip with its reason" "skipped: t/b 1 - z because: no zfs here"
is "the counts are the last line" \
	"$(printf '%s\n' "$output" | tail -n 1)" "2 passed, 0 failed, 1 skipped"

ABSENT='' UNKNOWN=''
failed='PASS: t/a 1 - x\nFAIL: t/a 2 - y\n# y was 7\nERROR: t/a - exited with status 1\n'
ON_CHECK="$(result a "$failed") exit 2"
quick test
is "test: fails when one fails" "$status" 1
says "shows its log" "# y was 7"
is "counts it once" "$(printf '%s\n' "$output" | tail -n 1)" "1 passed, 1 failed"

ON_CHECK="$(result a 'PASS: t/a 1 - x\nERROR: t/a - missing test plan\n') exit 2"
quick test
is "a test that dies counts as failed" "$(printf '%s\n' "$output" | tail -n 1)" "1 passed, 1 failed"
ON_CHECK='echo "x.c:1: error: no"; exit 2'
quick test
is "a build error counts as failed" \
	"$status $(printf '%s\n' "$output" | tail -n 1)" "1 0 passed, 1 failed"
says "and is shown" "x.c:1: error: no"
ON_CHECK=''
quick test
is "no test at all is no success" \
	"$status $(printf '%s\n' "$output" | tail -n 1)" "1 0 passed, 0 failed"

quick bogus
is "an unknown argument is exit 2" "$status" 2
says "and named" '"bogus"'
finish
