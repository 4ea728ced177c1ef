#!/bin/sh
# SPDX-License-Identifier: MIT
# A version that has to go beside a file and cannot (nobody may make a new name in that directory)
# is still the runtime's: it is not overwritten there, and no run forgets that it has not come.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need setpriv
[ "$(id -u)" = 0 ] || skip_all "a directory of somebody else needs root"
user="setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all"
$user true 2>/dev/null || skip_all "setpriv cannot become another user here"
cp "${SB_TOP_BUILDDIR:-.}/sbsync" "$scratch"
sbsync=$scratch/sbsync
SBSYNC_STATE_DIR=$scratch/state
HOME=$scratch
export SBSYNC_STATE_DIR HOME
chown 65534:65534 "$scratch"
chmod 755 "$scratch"
cd "$scratch" || exit 1

# A session in which both sides edited d/f; here nothing new can be put into d, there neither when
# $1 says so.
both_edit()
{
	rm -rf ws rt state
	$user mkdir -p ws/d
	echo one | $user tee ws/d/f ws/d/g ws/other >/dev/null
	$user ln ws/d/g ws/g
	sleep 100 &
	owner=$!
	$user "$sbsync" start -q --name a --owner $owner ws rt
	kill $owner
	wait $owner 2>/dev/null
	echo "the user's" >ws/d/f
	echo "the agent's" >rt/d/f
	echo more | $user tee -a rt/other >/dev/null
	chown 0:0 ws/d
	[ "${1-}" != both ] || chown 0:0 rt/d
}

versions()
{
	find ws rt -type f -exec cat {} + | grep -c "^the $1's$"
}

both_there()
{
	is "$1: the user's is there" "$([ "$(versions user)" -gt 0 ] && echo yes)" yes
	is "$1: the agent's is there" "$([ "$(versions agent)" -gt 0 ] && echo yes)" yes
}

free()
{
	chown 65534:65534 ws/d rt/d
}

for there in here both; do
	both_edit $there
	must_fail "$there: a turn says that it cannot" 1 $user "$sbsync" sync a
	both_there "$there: a turn"
	is "$there: the rest came" "$(tail -n 1 ws/other)" more
	must_fail "$there: the next one says so, too" 1 $user "$sbsync" sync a
	both_there "$there: two turns"
	free
	must_fail "$there: then it is a conflict" 3 $user "$sbsync" sync a
	is "$there: the agent's is beside it" "$(cat ws/d/f.runtime-conflict-a)" "the agent's"
	is "$there: both sides have both" "$(cat rt/d/f rt/d/f.runtime-conflict-a)" \
		"$(cat ws/d/f ws/d/f.runtime-conflict-a)"

	both_edit $there
	must_fail "$there: a stop fails" 1 $user "$sbsync" stop a
	must_fail "$there: a turn after it says so" 1 $user "$sbsync" sync a
	both_there "$there: a turn after a failed stop"
	must_fail "$there: recover fails" 1 $user "$sbsync" recover --now a
	both_there "$there: recover"
	free
	must_fail "$there: then stop keeps both" 3 $user "$sbsync" stop a
	is "$there: the agent's came" "$(cat ws/d/f.runtime-conflict-a)" "the agent's"
done

# A whole directory that goes beside; a link to a file that cannot.
both_edit
$user rm -r rt/d/g
$user mkdir rt/d/g
echo "the agent's" >rt/d/g/in
chown -R 65534:65534 rt/d/g
echo "the user's" >ws/d/g
$user ln rt/d/f rt/f2
must_fail "a directory cannot go beside a file" 1 $user "$sbsync" stop a
must_fail "a turn after it" 1 $user "$sbsync" sync a
is "it is still there" "$(cat rt/d/g/in rt/d/f)" "the agent's
the agent's"
free
must_fail "then it is a conflict" 3 $user "$sbsync" sync a
is "it is beside the file" "$(cat ws/d/g.runtime-conflict-a/in ws/d/f.runtime-conflict-a)" \
	"the agent's
the agent's"

# The runtime cannot keep its own version beside the one that a start brings.
both_edit
free
must_fail "stop" 3 $user "$sbsync" stop a
echo "the user's 2" | $user tee ws/d/f >/dev/null
rm ws/d/f.runtime-conflict-a
echo "the agent's" | $user tee rt/d/f >/dev/null
echo "the agent's 2" | $user tee -a rt/d/f >/dev/null
chown 0:0 rt/d
$user "$sbsync" start -q --name a ws rt >out 2>&1
is "start: the agent's version is still there" "$(grep -rl "the agent's 2" ws rt | wc -l)" 1
chown 65534:65534 rt/d
finish
