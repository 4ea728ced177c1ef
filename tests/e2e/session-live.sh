#!/bin/sh
# SPDX-License-Identifier: MIT
# People work on both sides while a session syncs, dies, is undone, stopped and started again: a
# model of what may never happen (tests/fault/live.py says what). LIVE_STEPS on this machine (400),
# LIVE_SSH_STEPS behind a real sshd (100), from LIVE_SEED; `make check-model` does many more.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3

src=$(cd "${SB_TOP_SRCDIR:-.}" && pwd)
build=$(cd "${SB_TOP_BUILDDIR:-.}" && pwd)
shim=$build/tests/fault/.libs/shim.so
seed=${LIVE_SEED:-1}
if [ -d /dev/shm ] && [ -w /dev/shm ] && [ -z "${SB_KEEP-}" ]; then
	place=$(mktemp -d /dev/shm/sblive.XXXXXX)
	at_exit "rm -rf '$place'"
else
	place=$scratch
fi
chmod 755 "$scratch" "$place"
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
user=
[ "$(id -u)" != 0 ] || user="--user 65534"

# live WHAT OPTION...
live()
{
	what=$1
	shift
	# shellcheck disable=SC2086
	python3 "$src/tests/fault/live.py" --seed "$seed" --dir "$place" ${SB_KEEP:+--keep} \
		"$@" "$build/sbsync" "$shim" >"$scratch/out" 2>&1
	status=$?
	diag <"$scratch/out"
	is "$what" "$status" 0
}

# shellcheck disable=SC2086
live "nothing is lost, invented or called equal on this machine" \
	--steps "${LIVE_STEPS:-400}" $user

what="nothing is lost, invented or called equal behind SSH"
dir=$place/srv
why=$(sh "$src/tests/lib/sshd.sh" start "$dir" \
	'SetEnv XDG_CACHE_HOME=@DIR@/cache SBSYNC_STATE_DIR=@DIR@/state TMPDIR=@DIR@')
case $? in
0)
	at_exit "sh '$src/tests/lib/sshd.sh' stop '$dir'"
	if [ ! -x "$build/sbsync-agent" ]; then
		SBSYNC_AGENT=$build/sbsync
	else
		SBSYNC_AGENT=${SBSYNC_AGENT:-$build/sbsync-agent}
	fi
	export SBSYNC_AGENT
	live "$what" --steps "${LIVE_SSH_STEPS:-100}" --ssh "$dir"
	;;
77) skip "$what" "$why" ;;
*) not_ok "$what" "$why" ;;
esac
finish
