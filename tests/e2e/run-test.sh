#!/bin/sh
# SPDX-License-Identifier: MIT
# What a test leaves when its time is over, and when it ends by itself: nothing. The runner runs
# itself here, on small tests that leave everything a test could leave.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
runner=${SB_TOP_SRCDIR:-.}/tests/lib/run-test.sh
[ -x "${SB_TOP_BUILDDIR:-.}/tests/lib/reap" ] || skip_all "tests/lib/reap is not built"

# run NAME SECONDS: the test that stands on stdin; its output is in $scratch/NAME.out.
run()
{
	cat >"$scratch/$1"
	chmod +x "$scratch/$1"
	SCRATCH=$scratch sh "$runner" "$2" "$scratch/$1" >"$scratch/$1.out" 2>&1
}

# gone FILE: none of the processes whose numbers stand there lives.
gone()
{
	while read -r pid; do
		! kill -0 "$pid" 2>/dev/null || return 1
	done <"$1"
}

run hangs 1 <<'END'
#!/bin/sh
# Deaf to TERM; one more in a session of its own, without a variable, whose parent is gone.
trap '' TERM
setsid sh -c 'env -i sleep 1000 & echo $! >>"$SCRATCH/pids"' &
sh -c 'trap "" TERM; echo $$ >>"$SCRATCH/pids"; sleep 1000; sleep 1000' &
echo $$ >>"$SCRATCH/pids"
while :; do sleep 1000; done
END
is "the time limit is told" $? 124
is "three were running" "$(wc -l <"$scratch/pids")" 3
check "all are gone, deaf or in a session of their own" gone "$scratch/pids"
check "the log says what was ended" grep -q '^# ended: .*sleep 1000' "$scratch/hangs.out"

: >"$scratch/pids"
run leaves 60 <<'END'
#!/bin/sh
setsid sleep 1000 &
echo $! >>"$SCRATCH/pids"
echo "ok 1 - all well"
END
is "a test that ends keeps its exit status" $? 0
check "what it left is gone" gone "$scratch/pids"

run fails 60 <<'END'
#!/bin/sh
exit 3
END
is "so does one that fails" $? 3

if [ "$(id -u)" -eq 0 ] && losetup -f >/dev/null 2>&1 && command -v mkfs.ext4 >/dev/null; then
	run mounts 3 <<'END'
#!/bin/sh
truncate -s 8M "$TMPDIR/image" && mkfs.ext4 -q "$TMPDIR/image" && mkdir "$TMPDIR/a place" &&
	mount -o loop "$TMPDIR/image" "$TMPDIR/a place" && echo "$TMPDIR" >"$SCRATCH/place"
sleep 1000
END
	is "a test with a loop device is ended" $? 124
	place=$(cat "$scratch/place")
	must_fail "its mount is gone" 1 grep -qF "$place" /proc/self/mountinfo
	must_fail "its loop device is free" 1 sh -c "losetup -l -n -O BACK-FILE | grep -qF '$place'"
	must_fail "its place is gone" 1 test -e "$place"
else
	skip "a test with a loop device" "needs root, a loop device and mkfs.ext4"
fi

freezer=/sys/fs/cgroup/freezer
if [ "$(id -u)" -eq 0 ] && [ -w $freezer/cgroup.procs ]; then
	: >"$scratch/pids"
	run frozen 2 <<'END'
#!/bin/sh
group=/sys/fs/cgroup/freezer/sb-run-test-$$
mkdir $group && echo $group >"$SCRATCH/group"
sh -c "echo \$\$ >$group/cgroup.procs; echo \$\$ >>'$SCRATCH/pids'; exec sleep 1000" &
while ! grep -q . $group/cgroup.procs; do sleep 0.05; done
echo FROZEN >$group/freezer.state
wait
END
	is "a test with a frozen process is ended" $? 124
	check "the frozen one, too" gone "$scratch/pids"
	must_fail "its control group is removed" 1 test -d "$(cat "$scratch/group")"
else
	skip "a test with a frozen process" "no freezer of control groups, version 1, to write to"
fi
finish
