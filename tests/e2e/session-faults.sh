#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2086
# The story of a session when the world fails: the network is cut in the middle of recovery, the far
# side goes down with a sync half done, either side sleeps, a disk is full, the clock goes back.
# Every edit is there at the end. SESSION_SLEEP sets how long processes sleep (3 seconds).
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/shim.sh"
need python3 git

src=${SB_TOP_SRCDIR:-.}
build=${SB_TOP_BUILDDIR:-.}
case $build in /*) ;; *) build=$PWD/$build ;; esac
case $src in /*) ;; *) src=$PWD/$src ;; esac
sbsync=$build/sbsync
export SBSYNC_STATE_DIR="$scratch/state"
cd "$scratch" || exit 1

sums() { (cd "$1" && find . -name .sbsync-stage -prune -o -type f -exec md5sum {} + | sort -k 2); }

workspace()
{
	mkdir "$1" && (
		cd "$1" || exit 1
		git init -q -b main .
		git config user.email u@example.com
		git config user.name u
		for d in a b c d; do
			mkdir -p src/$d
			for i in $(seq 1 65); do
				seq -f "$d/$i line %g" 1 40 >src/$d/f$i
			done
		done
		git add -A && git commit -qm first
	)
}

# 200 edits, 50 deletions, a renamed directory and a commit there; 20 edits here, 5
# of them of the same files.
agent_works()
{
	for d in a b c; do
		for i in $(seq 1 65); do echo "agent" >>"$1"/src/$d/f$i; done
	done
	for i in $(seq 1 5); do echo "agent" >>"$1"/src/d/f$i; done
	for i in $(seq 16 65); do rm "$1"/src/d/f$i; done
	mv "$1"/src/b "$1"/src/renamed
	git -C "$1" add -A &&
		git -C "$1" -c user.email=a@example.com -c user.name=a commit -qm "agent's work"
}

user_works()
{
	for i in $(seq 1 5); do echo "user" >>"$1"/src/a/f$i; done
	for i in $(seq 6 15); do echo "user" >>"$1"/src/d/f$i; done
	for i in $(seq 1 5); do echo "user" >"$1"/new$i; done
}

all_there()
{
	ws=$1 name=$2
	rm -f lost
	for i in $(seq 1 5); do
		grep -q user $ws/src/a/f$i && grep -q agent $ws/src/a/f$i.runtime-conflict-$name ||
			echo "a/f$i" >>lost
		grep -q user $ws/new$i || echo "new$i" >>lost
		grep -q agent $ws/src/d/f$i || echo "d/f$i" >>lost
	done
	for i in $(seq 6 15); do grep -q user $ws/src/d/f$i || echo "d/f$i" >>lost; done
	for i in $(seq 16 65); do [ ! -e $ws/src/d/f$i ] || echo "not deleted d/f$i" >>lost; done
	for i in $(seq 6 65); do
		grep -q agent $ws/src/a/f$i && grep -q agent $ws/src/renamed/f$i &&
			grep -q agent $ws/src/c/f$i || echo "f$i" >>lost
	done
	is "$3: every edit is present" "$(cat lost 2>/dev/null)" ""
	is "$3: 5 conflicts" "$("$sbsync" conflicts --json $name | grep -o '"path"' | wc -l)" 5
	check "$3: git fsck" git -C $ws fsck --strict
	is "$3: the agent's commit is here" "$(git -C $ws log -1 --format=%s)" "agent's work"
	sums $ws >before
	check "$3: a second recovery" "$sbsync" recover --all --now
	is "$3: changes nothing" "$(sums $ws)" "$(cat before)"
}

new_owner()
{
	(sleep 1000 & echo $! >owner)
	owner=$(cat owner)
	at_exit "kill -9 $owner 2>/dev/null"
}

kill_owner() { kill -9 "$owner" && wait_for 10 sh -c "! kill -0 $owner 2>/dev/null"; }

# ---- the network

over_ssh()
{
	dir=$scratch/srv
	why=$(sh "$src/tests/lib/sshd.sh" start "$dir" \
		'SetEnv XDG_CACHE_HOME=@DIR@/cache SBSYNC_STATE_DIR=@DIR@/state TMPDIR=@DIR@/tmp')
	case $? in
	0) ;;
	77) skip "the story over SSH" "$why"; return ;;
	*) not_ok "sshd starts" "$why"; return ;;
	esac
	at_exit "sh $src/tests/lib/sshd.sh stop $dir"
	there=$(cat "$dir/user")@127.0.0.1
	direct=$(cat "$dir/port")
	way="-i $dir/id_ed25519 -F /dev/null --known-hosts $dir/known_hosts"
	workspace net
	new_owner
	check "start over SSH" "$sbsync" start -q --name net --owner $owner $way \
		-p $direct net "$there:$scratch/netruntime"
	agent_works netruntime
	user_works net
	kill_owner
	# A link that dies for good in the middle of the data.
	mkfifo relay.in
	"$build/tests/lib/relay" "$direct" stall_down=30000 <relay.in >relay.out &
	relay=$!
	exec 9>relay.in
	wait_for 10 test -s relay.out
	port=$(sed -n 1p relay.out)
	sed "s/\]:$direct /]:$port /" "$dir/known_hosts" >relay.known
	sums net >untouched
	"$sbsync" recover --now --timeout 60s -i "$dir/id_ed25519" -F /dev/null \
		--known-hosts relay.known -p $port net >rec.out 2>&1 &
	rec=$!
	wait_for 20 sh -c "test -d netruntime/.sbsync-stage -o -d net/.sbsync-stage \
		-o \$(stat -c %s relay.out) -gt 8" || true
	kill -9 $relay
	exec 9>&-
	# It tries for a while; its user has had enough.
	kill -INT $rec
	wait $rec
	is "a recovery without a network fails" \
		"$("$sbsync" status --json net | grep -o '"state":"[a-z]*"')" '"state":"unsynced"'
	is "and has changed nothing" "$(sums net)" "$(cat untouched)"
	# The far side reboots: all of its processes end, what was staged stays.
	sh "$src/tests/lib/sshd.sh" stop "$dir"
	must_fail "nobody there" 1 "$sbsync" recover --now --timeout 5s $way -p $direct net
	SSHD_KEYS=$dir
	export SSHD_KEYS
	sh "$src/tests/lib/sshd.sh" start "$dir" \
		'SetEnv XDG_CACHE_HOME=@DIR@/cache SBSYNC_STATE_DIR=@DIR@/state TMPDIR=@DIR@/tmp'
	direct=$(cat "$dir/port")
	# And now a bad link: cut three times on the way.
	mkfifo relay2.in
	"$build/tests/lib/relay" "$direct" cuts=3 cut_max=20000 seed=5 <relay2.in >relay2.out &
	relay=$!
	exec 9>relay2.in
	wait_for 10 test -s relay2.out
	port=$(sed -n 1p relay2.out)
	sed "s/\]:$direct /]:$port /" "$dir/known_hosts" >relay.known
	"$sbsync" recover --now -i "$dir/id_ed25519" -F /dev/null --known-hosts relay.known \
		-p $port net >rec.out 2>rec.err
	exec 9>&-
	wait $relay
	counts=$(sed -n 's/.*back, \([0-9]* files, [0-9]* deleted\).*/\1/p' rec.out)
	is "recovery over a bad link" "$(cat rec.out)" "net: synced back, $counts, 5 conflicts"
	all_there net net "over SSH"
	"$sbsync" rm --discard --yes net
}

# ---- sleep

# asleep WHO: that process stops in the middle of a sync for a while.
asleep()
{
	rm -f pause.here pause.go
	head -c 64 /dev/zero >fault.log
	LD_PRELOAD="$shim" FAULT_WHO=$1 FAULT_HOW=pause FAULT_N=30 FAULT_SPAN=1 \
		FAULT_LOG=fault.log FAULT_PAUSE=$scratch/pause \
		"$sbsync" sync -q --max-delete 100000 $2 >sleep.out 2>&1 &
	run=$!
	if ! wait_for 20 test -e pause.here; then
		not_ok "$1 gets to its 30th call"
		return
	fi
	pid=$run
	[ "$1" = agent ] && pid=$(ps -o pid= --ppid $run | head -n 1)
	kill -STOP $pid
	: >pause.go
	sleep "${SESSION_SLEEP:-3}"
	# It may be gone: the other side ends what does not answer any more.
	kill -CONT $pid 2>/dev/null
	code=0
	wait $run || code=$?
	# A sleep longer than the other side's patience ends the sync; the next one completes it.
	[ $code -eq 0 ] || [ $code -eq 3 ] ||
		"$sbsync" sync -q --max-delete 100000 $2 >sleep2.out 2>&1
}

sleeps()
{
	for who in controller agent; do
		mkdir s-$who && (cd s-$who && for i in $(seq 1 80); do seq $i 200 >f$i; done)
		"$sbsync" start -q --name sleep-$who s-$who b-$who || not_ok "start"
		for i in $(seq 1 40); do echo agent >>b-$who/f$i; done
		for i in $(seq 31 60); do echo user >>s-$who/f$i; done
		asleep $who sleep-$who
		is "the $who slept: both sides are equal" "$(sums s-$who)" "$(sums b-$who)"
		is "and nothing is lost" \
			"$(grep -l user s-$who/f* | wc -l) $(grep -l agent s-$who/f* | wc -l)" \
			"30 40"
		"$sbsync" rm --discard --yes sleep-$who
	done
}

# ---- full disks

disk()
{
	mkdir "$1" && mount -t tmpfs -o "size=$2" tmpfs "$1" 2>/dev/null || return 1
	at_exit "umount -l $scratch/$1 2>/dev/null"
}

full_disks()
{
	if [ "$(id -u)" != 0 ] || ! disk far 3m; then
		skip "full disks" "file systems cannot be mounted here"
		return
	fi
	mkdir fw && echo small >fw/small
	"$sbsync" start -q --name full fw far/runtime || not_ok "start"
	for i in 1 2 3 4 5 6; do head -c 1000000 /dev/urandom >fw/big$i; done
	echo agent >far/runtime/agent && echo edit >>far/runtime/small
	must_fail "the far disk is full" 1 "$sbsync" sync full
	check "the message says so" \
		sh -c "printf '%s' \"\$1\" |
			grep -q 'far/runtime needs .* bytes\|No space\|no space'" sh "$output"
	is "nothing is lost there" "$(cat far/runtime/agent far/runtime/small)" "agent
small
edit"
	mount -o remount,size=60m far
	check "with room it goes on" "$sbsync" sync -q full
	is "everything is there" "$(sums far/runtime)" "$(sums fw)"
	"$sbsync" stop -q full

	disk near 3m
	mkdir near/ws && echo small >near/ws/small
	"$sbsync" start -q --name near near/ws nruntime || not_ok "start"
	for i in 1 2 3 4 5 6; do head -c 1000000 /dev/urandom >nruntime/big$i; done
	echo user >near/ws/user && echo agent >>nruntime/small
	must_fail "the local disk is full at stop" 1 "$sbsync" stop near
	is "the session stays open" \
		"$("$sbsync" status --json near | grep -o '"state":"[a-z]*"')" '"state":"unsynced"'
	is "nothing has changed here" "$(cat near/ws/small near/ws/user)" "small
user"
	mount -o remount,size=60m near
	check "with room it goes on" "$sbsync" stop -q near
	is "all of it is here" \
		"$(cat near/ws/small) $(cat near/ws/user) $(cat nruntime/big* | md5sum)" "small
agent user $(cat near/ws/big* | md5sum)"
}

# ---- the clock

clock()
{
	back() { LD_PRELOAD="$shim" FAULT_CLOCK=$1 "$sbsync" sync -q clock; }
	mkdir cw && for i in 1 2 3 4; do echo $i >cw/f$i; done
	new_owner
	"$sbsync" start -q --name clock --owner $owner cw cruntime || not_ok "start"
	back 864000
	check "the clock is ahead" test \
		"$("$sbsync" status --json clock | grep -o '"last_sync":[0-9]*' | tr -dc 0-9)" \
		-gt $(($(date +%s) + 800000))
	echo user >>cw/f1 && echo agent >>cruntime/f2
	check "it goes back ten days" back 0
	echo user >>cw/f3 && echo agent >>cruntime/f4 && rm cruntime/f2
	check "and further" back -864000
	is "both sides are equal" "$(sums cw)" "$(sums cruntime)"
	is "with every edit" "$(cat cw/f1 cw/f3 cw/f4 | tr '\n' ' ')" "1 user 3 user 4 agent "
	check "and the deletion" test ! -e cw/f2
	# A failure in the future must not keep recovery away until then.
	mv cruntime gone && : >cruntime && kill_owner
	LD_PRELOAD="$shim" FAULT_CLOCK=864000 "$sbsync" recover --all >/dev/null 2>&1
	rm cruntime && mv gone cruntime && echo late >cruntime/late
	is "recovery does not wait for a day that may not come" \
		"$("$sbsync" recover --all | sed -n 's/^clock: \([a-z ]*\),.*/\1/p')" "synced back"
}

over_ssh
sleeps
full_disks
clock
finish
