#!/bin/sh
# SPDX-License-Identifier: MIT
# The SSH provider against the conformance suite: a real sshd, logging in as who we
# are and as an ordinary user.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need ssh-keygen

src=${SB_TOP_SRCDIR:-.}
build=${SB_TOP_BUILDDIR:-.}
TMPDIR=$scratch
export TMPDIR
SBSYNC_AGENT=$build/sbsync-agent
export SBSYNC_AGENT
env_line='SetEnv XDG_CACHE_HOME=@DIR@/cache SBSYNC_STATE_DIR=@DIR@/state'
env_line="$env_line XDG_STATE_HOME=@DIR@/state TMPDIR=@DIR@/tmp"

# Stops every process of a server, and lets them go on: "hang.sh DIR on|off".
cat >"$scratch/hang.sh" <<'END'
tree()
{
	echo "$1"
	for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
		tree "$child"
	done
}
case $2 in
on) tree "$(cat "$1/pid")" >"$1/hung"; xargs sh "$freeze" <"$1/hung" || exit 1 ;;
off) xargs kill -CONT <"$1/hung" ;;
esac
exit 0
END

freeze=$(cd "$src" && pwd)/tests/lib/freeze.sh
export freeze

# suite NAME [ARGUMENT]...: the suite against a server of its own.
suite()
{
	dir=$scratch/$1
	shift
	why=$(sh "$src/tests/lib/sshd.sh" start "$dir" "$env_line" 'MaxSessions 10') || return
	at_exit "sh $src/tests/lib/sshd.sh stop $dir"
	SSHD_KEYS=$dir
	export SSHD_KEYS
	mkdir -p "$dir/tmp" "$dir/cache" "$dir/state"
	[ -z "${SSHD_ACCOUNT:-}" ] || chown 4321:4321 "$dir/tmp" "$dir/cache" "$dir/state"
	timeout 280 "$build/sbprovider-check" -b ssh -o host=127.0.0.1 \
		-o "port=$(cat "$dir/port")" -o "user=$(cat "$dir/user")" \
		-o "identity=$dir/id_ed25519" -o "known_hosts=$dir/known_hosts" \
		-o config=/dev/null --hang "sh $scratch/hang.sh $dir" "$@" >"$scratch/out" 2>&1
	status=$?
	if [ $status -ne 0 ]; then
		grep -v '^ok' "$scratch/out"
	elif grep SKIP "$scratch/out"; then
		status=1
	fi
	if [ -n "$(find "$dir/state/sandboxes" -mindepth 1 2>/dev/null | head -n 5)" ]; then
		find "$dir/state/sandboxes" | head -n 5
		status=1
	fi
	return $status
}

suite one >"$scratch/said"
case $? in
0) ok "the SSH provider passes, nothing skipped, nothing left over there" ;;
77) skip "the SSH provider" "$why" ;;
*) not_ok "the SSH provider passes, nothing skipped, nothing left over there" \
	"$(cat "$scratch/said")" ;;
esac
# All of it once more as an ordinary user takes another minute or two: SB_PROVIDER_FULL=1. Else the
# parts where it may matter who one is over there.
some="-c prepare -c state -c find -c reattach -c sync -c tools -c launch -c destroy"
[ -z "${SB_PROVIDER_FULL:-}" ] || some=
SSHD_ACCOUNT=sbconform
export SSHD_ACCOUNT
chmod 755 "$scratch"
# shellcheck disable=SC2086
suite two $some >"$scratch/said"
case $? in
0) ok "also as an ordinary user over there" ;;
77) skip "as an ordinary user over there" "$why" ;;
*) not_ok "also as an ordinary user over there" "$(cat "$scratch/said")" ;;
esac
finish
