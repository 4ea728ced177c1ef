# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154,SC2164
# The life of sandboxes that have files of their own, whichever backend they are of: what
# `sbctl run` brings back, kept and stopped ones, signals, both sides that change, a sandbox whose
# sbctl was killed. Source it behind tap.sh and json.sh with $build, $sbctl, $backend, a profile
# "box" of that backend in the configuration, and an empty $scratch/ws; $there is where its machine
# keeps files, $elsewhere an option that means another machine.
export SB_E2E_SECRET=s3cr3t-y
cd ws || exit 1
echo one >one && echo two >two && echo x >skip.o && echo y >keep.o && mkdir -p sub ../also &&
	echo z >../also/z
out=$("$sbctl" run -P box -d ../also -- sh -c '
	pwd
	cat one
	ls
	echo changed >>one
	rm two
	echo new >sub/new
	echo "$KEY" | tr a-z A-Z
	exit 5' 2>../err)
is "the status is passed on" $? 5
is "it runs in the copy, without what is excluded" "$(echo "$out" | tail -n +2)" "one
keep.o
one
sub
two
S3CR3T-Y"
check "not in the original" test "$(echo "$out" | head -n 1)" != "$(pwd)"
is "changes come back" "$(cat one)" "one
changed"
check "deletions come back" test ! -e two
check "new files come back" test -e sub/new
check "what is excluded stays" test -e skip.o
check "the summary tells" grep -q "2 files .* synced, 1 deleted" ../err
check "no secret is on disk, here or there" \
	sh -c 'grep -rq s3cr3t-y "$1" "$2"; [ $? -eq 1 ]' - "$scratch/state" "$there"
is "nothing is left to look after" "$("$sbctl" ls)" "no sandboxes"
must_fail "a snapshot, where there are none" 1 "$sbctl" run -P box --snapshot -- touch ran
check "... tells so" sh -c 'printf %s "$0" | grep -q "backend $1 has no snapshots"' "$output" \
	"$backend"
check "the command did not run" test ! -e ran
is "and nothing was made" "$("$sbctl" ls)" "no sandboxes"

# Kept, used again, stopped from elsewhere.
check "a kept sandbox" "$sbctl" run -q -P box -k --id kept -- sh -c 'echo first >first'
is "is stopped" "$("$sbctl" ls --json | json '[(x["sandbox_id"], x["state"]) for x in o]')" \
	"[('kept', 'stopped')]"
echo here >here
is "exec syncs in first" "$("$sbctl" exec -q kept sh -c 'cat here; echo second >second')" "here"
is "... and back afterwards" "$(cat second)" second
echo more >here
check "dry run" "$sbctl" sync -n kept
is "... moves nothing: sync on demand does" \
	"$("$sbctl" sync --json kept | json 'o["files_synced"]')" 1
is "... once" "$("$sbctl" sync --json kept | json 'o["files_synced"]')" 0
# What it does last, it does after the last sync that anybody asks for.
"$sbctl" run -q -P box -k --id long -- sh -c 'trap "echo late >late; exit 143" TERM
	echo work >work; touch started; while :; do sleep 0.1; done' &
pid=$!
at_exit 'kill $pid 2>/dev/null'
running()
{
	"$sbctl" sync -q long && test -e started
}
wait_for 20 running
must_fail "one that is used is not destroyed" 4 "$sbctl" destroy long
check "stop from elsewhere" "$sbctl" stop -q long
wait "$pid"
is "brings the work, the last too" "$(cat work late)" "work
late"
for sig in INT:130 HUP:129 TERM:143; do
	code=${sig#*:} sig=${sig%:*}
	rm -f started work both* late
	echo base >both
	"$sbctl" run -q -P box --id "by-$sig" -- \
		sh -c "trap 'echo there >both; echo late >late; exit $code' $sig
		echo work >work; touch started; while :; do sleep 0.1; done" &
	pid=$!
	running_sig()
	{
		"$sbctl" sync -q "by-$sig" && test -e started
	}
	wait_for 20 running_sig
	rm -f work
	echo here >both
	kill -s "$sig" "$pid"
	wait "$pid"
	is "$sig ends the command" $? "$code"
	is "... its last work is back" "$(cat late)" late
	check "... a deletion here stays" test ! -e work
	is "... of what both edited, both are kept" "$(cat both "both.runtime-conflict-by-$sig")" \
		"here
there"
done
check "destroy" "$sbctl" destroy -q long
check "destroy twice" "$sbctl" destroy -q long
check "destroy the other" "$sbctl" destroy -q kept

# Both sides change, between two commands and during one.
"$sbctl" run -q -P box -k --id both -- sh -c 'echo runtime >one'
is "what it did is here" "$(cat one)" runtime
echo local >one
out=$("$sbctl" exec both sh -c 'cat one; echo runtime2 >one' 2>../err)
is "an edit here reaches the next command" "$out" local
is "... whose own edit of it is no conflict" "$(cat one; ls one.*)" runtime2
"$sbctl" run -P box --id clash -- \
	sh -c 'touch ready; while [ -e ready ]; do sleep 0.1; done; echo theirs >one' 2>../err &
pid=$!
clash_ready()
{
	"$sbctl" sync -q clash && test -e ready
}
wait_for 20 clash_ready
echo ours-again >sub/new
echo ours >one
"$sbctl" exec -q clash rm ready
wait "$pid"
is "an edit here goes on living" "$(cat sub/new)" "ours-again"
is "... also of what the command edited last" "$(cat one one.runtime-conflict-clash)" "ours
theirs"
check "... and that is told" grep -q '^conflict: one (changed on both sides), kept as' ../err

# One that is kept stays where it is, and what it is a copy of; new patterns count from now on.
mkdir -p ../other
must_fail "another directory" 1 "$sbctl" run -P box -C ../other --id both -- touch ran
must_fail "another machine" 1 "$sbctl" run -P box -s "$elsewhere" --id both -- touch ran
must_fail "another backend" 1 "$sbctl" run -b local --id both -- touch ran
check "... says what it is instead" \
	sh -c 'printf %s "$0" | grep -q "both is one of backend $1, not local"' "$output" \
	"$backend"
check "neither of them ran" test ! -e ran -a ! -e ../other/ran
echo secret >plan.txt
is "a pattern at a later start" \
	"$("$sbctl" run -q -P box -x plan.txt --id both -- sh -c 'test -e plan.txt || echo none
	echo x >plan.txt')" none
is "... counts both ways" "$(cat plan.txt)" secret
is "... and is the session's" "$("$build/sbsync" ignore list both | grep plan)" \
	"session      plan.txt"
is "it is kept still" "$("$sbctl" show --json both | json 'o["state"]')" stopped
"$sbctl" destroy -q both
is "a reader that leaves ends the command" \
	"$(timeout 60 "$sbctl" run -q -P box -- yes | head -n 1)" y

# A lost server: the sandbox is kept and comes back with recover.
"$sbctl" run -q -P box --id lost -- \
	sh -c 'echo precious >precious; touch up; exec sleep 1000' 2>../err &
pid=$!
lost_up()
{
	"$sbctl" sync -q lost && test -e up
}
wait_for 20 lost_up
"$sbctl" exec -q lost sh -c 'echo later >later'
kill -9 $pid
wait "$pid" 2>/dev/null
is "after kill -9 it is still on record" "$("$sbctl" show --json lost | json 'o["state"]')" active
check "sbsync recover finds it too" \
	sh -c '"$1" recover --all --json | grep -q "\"lost\""' - "$build/sbsync"
check "its work is here" test -e later
check "sbctl recover ends it" "$sbctl" recover
is "nothing is left" "$("$sbctl" ls)" "no sandboxes"
