# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# The sandbox host on a storage with snapshots, on a loop image: the programs that run on local-disk
# in tests/unit. Source it, then: host_on STORAGE FILE-SYSTEM
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/loop.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/hosttests.sh"

host_on()
{
	loop_mount "$2" || skip_all "$loop_why"
	export SB_TEST_STORAGE="$1" SB_TEST_PLACE="$place"
	for program in test-storage-auto test-host-service test-host-snapshots test-host-timeline \
		test-host-writers; do
		relay "$program"
	done
	for SB_TEST_RUNTIME in none bwrap; do
		export SB_TEST_RUNTIME
		relay test-box-swap
	done
	unset SB_TEST_RUNTIME
	for program in test-host-races test-env test-env-remote test-host-exec; do
		relay "$program"
	done
	is "nothing is left" "$(find "$place" -mindepth 1 -maxdepth 1 -name 's[0-9]*' | wc -l)" 0
	finish
}
