#!/bin/sh
# SPDX-License-Identifier: MIT
# freeze.sh PID...: stops these processes, and returns once each of their threads stands still. A
# signal alone is on its way for a moment, in which another thread can still answer somebody.
kill -STOP "$@"
n=0
for pid; do
	for thread in /proc/"$pid"/task/*; do
		until case $(sed 's/.*) //' "$thread/stat" 2>/dev/null) in [TtZX]* | "") true ;;
		*) false ;; esac do
			n=$((n + 1))
			[ $n -lt 1000 ] || { echo "freeze.sh: $pid does not stop" >&2 && exit 1; }
			sleep 0.01
		done
	done
done
