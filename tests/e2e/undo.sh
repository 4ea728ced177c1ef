#!/bin/sh
# SPDX-License-Identifier: MIT
# The brake and undo against a patient enemy: shares of the tree over a whole session, several
# generations of undo, nothing that came later is removed, leftovers go.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
sbsync=${SB_SBSYNC:-$(cd "${SB_TOP_BUILDDIR:-.}" && pwd)/sbsync}
SBSYNC_STATE_DIR=$scratch/state
export SBSYNC_STATE_DIR
cd "$scratch" || exit 1

# A workspace of $1 files, and a session with rt.
fresh()
{
	rm -rf ws rt state
	mkdir ws
	for i in $(seq "$1"); do
		echo "file $i" >"ws/f$i"
	done
	"$sbsync" start -q --name u ws rt
}

count()
{
	find "$1" -type f | wc -l
}

# The brake: exit 5, the way out is told, nothing changed.
brakes()
{
	before=$(cat ws/* | cksum)
	"$sbsync" sync u >out 2>&1
	code=$?
	[ $code -eq 5 ] && grep -q 'nothing was changed' out && grep -q -e '--max-delete' out &&
		[ "$before" = "$(cat ws/* | cksum)" ] || { echo "exit $code"; cat out; return 1; }
}

fresh 60
rm rt/*
echo new >rt/new
check "a small tree is not replaced by one file" brakes
"$sbsync" sync --max-delete 60 -q u
is "it is when that is meant" "$(count ws)" 1

fresh 300
rm -f rt/f?[0-4] rt/f??[0-4]
rm -f $(ls rt/* | head -n $(($(count rt) - 150)))
check "half of a tree goes" "$sbsync" sync -q u
rm -f $(ls rt/* | head -n 75)
check "half of the rest does not" brakes
is "150 are left" "$(count ws)" 150

fresh 300
for f in rt/*; do
	echo spoilt >"$f"
done
check "everything overwritten" brakes
fresh 300
spoil()
{
	for f in $(ls ws | sed -n "$1,$(($1 + 99))p"); do
		echo spoilt >"rt/$f"
	done
}
spoil 1
check "a third overwritten" "$sbsync" sync -q u
spoil 101
check "another third is too much" brakes
check "with consent it comes" "$sbsync" sync -q --max-delete 300 u
spoil 201
check "and counting begins anew" "$sbsync" sync -q u

# Ordinary work does not meet the brake.
fresh 12
for f in rt/*; do
	echo edited >"$f"
done
check "all of a dozen files edited" "$sbsync" sync -q u
for turn in 1 2 3 4; do
	mkdir -p rt/out
	for i in $(seq 80); do
		echo "$turn $i" >"rt/out/o$i"
	done
	"$sbsync" sync -q u
	rm -r rt/out
	check "what the sandbox built it may remove, turn $turn" "$sbsync" sync -q u
done

# A mirror from another machine has the brake for small trees, too.
fresh 60
printf '#!/bin/sh\nshift\nexec sh -c "$*"\n' >rsh
chmod +x rsh
rm rt/*
echo new >rt/new
must_fail "a mirror does not replace a small tree by one file" 5 \
	"$sbsync" mirror --rsh ./rsh "box:$scratch/rt" ws
is "nothing was changed" "$(count ws)" 60

# Generations.
fresh 40
for f in rt/f1*; do
	echo spoilt >"$f"
done
"$sbsync" sync -q u
echo harmless >rt/harmless
"$sbsync" sync -q u
rm rt/f2
"$sbsync" sync -q u
check "undo --list" "$sbsync" undo --list u
is "has three runs" "$("$sbsync" undo --list u | grep -c .)" 4
first=$("$sbsync" undo --list --json u | python3 -c 'import json, sys
print(json.load(sys.stdin)[-1]["run"])')
must_fail "a run that is none" 1 "$sbsync" undo --to 123456789012 u
must_fail "a time that is none" 2 "$sbsync" undo --to yesterday-ish u
check "undo --to, only to see" "$sbsync" undo -n --to "$first" u
is "changes nothing" "$(grep -l spoilt ws/* | wc -l)" 11
check "undo --to the first run" "$sbsync" undo -q --to "$first" u
is "nothing is spoilt" "$(grep -l spoilt ws/* 2>/dev/null | wc -l)" 0
check "what was deleted is back" test -f ws/f2
check "what came is gone" test ! -e ws/harmless
check "undo of that" "$sbsync" undo -q u
is "is a redo" "$(grep -l spoilt ws/* | wc -l)" 11
check "undo --to a time" "$sbsync" undo -q --to "2020-01-01 00:00" u
is "undoes all" "$(grep -l spoilt ws/* 2>/dev/null | wc -l)" 0

# D14: what came later stays.
fresh 5
mkdir -p rt/nd/deep
echo theirs >rt/nd/theirs
"$sbsync" sync -q u
echo mine >ws/nd/mine
echo mine >ws/nd/deep/mine
check "undo of a directory with later files" "$sbsync" undo -q u
check "they stay" cat ws/nd/mine ws/nd/deep/mine
check "the sync's own goes" test ! -e ws/nd/theirs
fresh 5
mkdir ws/d
for f in a b c; do
	echo $f >ws/d/$f
done
"$sbsync" sync -q u
echo new >rt/d/a
"$sbsync" sync -q u
cp -p ws/d/b ws/d/c ws
rm -r ws/d
echo file >ws/d
"$sbsync" undo -q u >/dev/null 2>&1
is "a directory aside holds everything" "$(cat ws/d.undo-conflict-u/* | tr '\n' ' ')" "a b c "

# D20: a pull that does not fit leaves room for the next.
mkdir small
if mount -t tmpfs -o size=24m none small 2>/dev/null; then
	at_exit "umount '$scratch/small'"
	rm -rf state rt
	mkdir small/ws
	echo one >small/ws/f
	"$sbsync" start -q --name s small/ws rt
	for i in $(seq 30); do
		head -c 1000000 /dev/urandom >"rt/m$i"
	done
	must_fail "many files that do not fit" 1 "$sbsync" sync s
	check "the message says so" sh -c 'printf "%s" "$1" | grep -q "are free here"' _ "$output"
	check "nothing was staged" test ! -e small/ws/.sbsync-stage
	rm rt/m*
	head -c 70000000 /dev/urandom >rt/big
	must_fail "one file that might have holes" 1 "$sbsync" sync s
	check "its beginning is not kept" test ! -e small/ws/.sbsync-stage
	rm rt/big
	head -c 15000000 /dev/urandom >rt/fits
	check "the next one has room" "$sbsync" sync -q s
	check "it is there" cmp rt/fits small/ws/fits
else
	skip "a pull that does not fit leaves room for the next" "cannot mount a tmpfs"
fi
rm -rf small/* state rt ws

# A run that was killed while it wrote its record had changed nothing.
fresh 5
echo spoilt >rt/f1
"$sbsync" sync -q u
printf 'SBUNDO2\n torn' >state/sessions/u/root0.undo-7fffffffffffffff-new
check "undo beside a torn record" "$sbsync" undo -q u
is "undoes the run before" "$(cat ws/f1)" "file 1"

# What an interrupted run left goes when there is nothing to bring.
fresh 5
mkdir -p ws/.sbsync-stage/new
echo old >ws/.sbsync-stage/new/offer0
check "a sync without changes" "$sbsync" sync -q u
check "leftovers are gone" test ! -e ws/.sbsync-stage

# A name of a file that the runtime removed comes back as a name of that file, first or last.
for gone in f1 f9; do
	fresh 2
	ln ws/f1 ws/f9
	"$sbsync" sync -q u
	rm rt/$gone
	"$sbsync" sync -q --max-delete 10 u
	check "$gone went" test ! -e ws/$gone
	check "undo" "$sbsync" undo -q u
	check "$gone is one file with the other again" test ws/f1 -ef ws/f9
done
finish
