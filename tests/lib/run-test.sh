#!/bin/sh
# SPDX-License-Identifier: MIT
# run-test.sh SECONDS PROGRAM [ARG]...: runs one test under a time limit and hands its TAP on.
# cmocka says "not ok N # SKIP name", which a TAP reader takes for a failure, and has no place
# for a reason: it becomes "ok N - name # SKIP reason" with the text of the "# skip: reason"
# line that skip_because (tests/lib/unit.h) printed before it. The exit status is the program's;
# 124 means the time was over.
seconds=$1
program=$2
shift 2
case $program in
*/*) ;;
*) program=./$program ;;
esac
{
	timeout -k 10 "$seconds" "$program" "$@" 2>&1
	rc=$?
	[ $rc -ne 124 ] && [ $rc -ne 137 ] || echo "# killed: ran longer than $seconds s"
	echo "run-test: exit $rc"
} | awk '
	/^run-test: exit [0-9]+$/ { exit $3 }
	/^# skip: / { reason = substr($0, 9) }
	/^not ok [0-9]+ # SKIP / {
		printf "ok %s - %s # SKIP %s\n", $3, $6, reason == "" ? "no reason given" : reason
		reason = ""
		fflush()
		next
	}
	{ print; fflush() }'
