#!/bin/sh
# SPDX-License-Identifier: MIT
# attacks.sh: every test in which something hostile tries to get out, in or through (the lists of
# doc/HACKING.md), as the user who calls and, when that is root, once more as an ordinary user. Says
# for each how many passed, failed and were skipped, lists the reasons of skips, and fails when one
# failed. Called by `make check-attacks`, which builds what is needed; ATTACKS names other tests.
set -u
src=${SB_TOP_SRCDIR:?} build=${SB_TOP_BUILDDIR:?}
ATTACKS=${ATTACKS:-"
tests/hostile/hostile.sh tests/hostile/flood.sh tests/hostile/canary.sh
tests/egress/egress.sh tests/egress/egress-user.sh tests/e2e/network.sh
tests/unit/test-escape-bwrap tests/unit/test-escape-gvisor
tests/unit/test-network-none tests/unit/test-network-bwrap tests/unit/test-network-gvisor
tests/unit/test-runtime-none tests/unit/test-runtime-bwrap tests/unit/test-runtime-gvisor
tests/unit/test-runtime-quota tests/unit/test-box-swap tests/unit/test-proctree
tests/unit/test-netpolicy tests/unit/test-egress-read
tests/unit/test-files tests/unit/test-filepool tests/unit/test-tool tests/e2e/tool-bombs.sh
tests/unit/test-guard tests/e2e/guard.sh tests/unit/test-trust tests/e2e/trust.sh
tests/e2e/session-guards.sh tests/e2e/state-owner.sh
tests/unit/test-path tests/unit/test-path-remove tests/unit/test-scan-hard
tests/unit/test-pack-hostile tests/unit/test-delta-child tests/unit/test-ssh-bad
tests/unit/test-host-guard tests/unit/test-host-port
tests/e2e/host-limits.sh tests/e2e/host-owner.sh tests/e2e/host-resume.sh
tests/unit/test-rpc-strict tests/unit/test-rpc-crowd tests/unit/test-rpc-tenant
tests/unit/test-rpc-auth tests/e2e/rpc-host.sh tests/e2e/units.sh
"}
seconds=${TEST_TIMEOUT:-900}

# run_all WHO: one line a test, then the sums.
run_all()
{
	passed=0 failed=0 skipped=0
	for t in $ATTACKS; do
		case $t in
		*.sh) program=$src/$t ;;
		*) program=$build/$t ;;
		esac
		log=$logs/$1-${t##*/}.log
		sh "$src/tests/lib/run-test.sh" "$seconds" "$program" >"$log" 2>&1 </dev/null
		status=$?
		s=$(grep -c '^ok .*# SKIP\|^1\.\.0 # SKIP' "$log")
		p=$(($(grep -c '^ok ' "$log") - $(grep -c '^ok .*# SKIP' "$log")))
		f=$(grep -c '^not ok ' "$log")
		[ $status -eq 0 ] || [ "$f" -gt 0 ] || f=1
		echo "$1: ${t##*/}: $p passed, $f failed, $s skipped"
		sed -n 's/^ok [0-9]* - \(.*\) # SKIP \(.*\)/    skipped: \1: \2/p
			s/^1\.\.0 # SKIP \(.*\)/    skipped: \1/p' "$log"
		[ "$f" -eq 0 ] || sed 's/^/    /' "$log" | grep -A 12 'not ok\|killed' | head -n 60
		passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	done
	echo "$1: $passed passed, $failed failed, $skipped skipped in all"
	[ $failed -eq 0 ]
}

# show DIRECTORY: makes it reachable for everybody in this mount namespace, though a directory on
# the way to it is closed.
show()
{
	case $1 in "$shown"/*) return 0 ;; esac
	shown=$1
	setpriv --reuid=65533 --regid=65533 --clear-groups test -x "$1" && return
	hold=$(mktemp -d) && mount --bind "$1" "$hold" || return
	way=
	for part in $(echo "$1" | tr / ' '); do
		way=$way/$part
		setpriv --reuid=65533 --regid=65533 --clear-groups test -x "$way" || break
	done
	mount -t tmpfs -o mode=755 tmpfs "$way" && mkdir -p "$1" && mount --move "$hold" "$1"
	rmdir "$hold"
}

CMOCKA_MESSAGE_OUTPUT=TAP SB_BOX=$build/sb-box
export CMOCKA_MESSAGE_OUTPUT SB_BOX
case ${1-} in
'')
	logs=$build/attacks.logs
	rm -rf "$logs"
	mkdir -p "$logs"
	rc=0
	run_all "$(id -un)" || rc=1
	[ "$(id -u)" -eq 0 ] || exit $rc
	# The user's logs lie where that user can write.
	unshare -m --propagation private sh "$src/tests/attacks.sh" as-user || rc=1
	exit $rc
	;;
as-user)
	shown=/nowhere
	show "$src" && show "$build" || exit
	home=$(mktemp -d) && chown 65533:65533 "$home" || exit
	cd / || exit
	HOME=$home TMPDIR=$home setpriv --reuid=65533 --regid=65533 --clear-groups \
		--inh-caps=-all --bounding-set=-all sh "$src/tests/attacks.sh" run
	rc=$?
	rm -rf "$home"
	exit $rc
	;;
run)
	logs=$HOME/logs
	mkdir "$logs"
	run_all user
	;;
esac
