#!/bin/sh
# SPDX-License-Identifier: MIT
# What a session refuses, each with the command that goes on; recovery from a timer: backoff, locks,
# sessions that cannot be reached or read.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3

sbsync=${SB_TOP_BUILDDIR:-.}/sbsync
export SBSYNC_STATE_DIR="$scratch/state"
cd "$scratch" || exit 1
real=$(pwd -P)

# go_on DESCRIPTION: the message of the last refusal ends with a command; that command works.
go_on()
{
	command=$(printf '%s\n' "$output" |
		sed -n 's/.*\(If that is meant\|To push there anew\|To go on\): //p' | tail -n 1)
	case $command in
	"sbsync "*) check "$1: $command" \
		sh -c "PATH='${sbsync%/*}:$PATH'; $command >/dev/null 2>&1 || [ \$? -eq 3 ]" ;;
	*) not_ok "$1" "no command in: $output" ;;
	esac
}

says() { check "$1" sh -c "printf '%s' \"\$1\" | grep -q \"\$2\"" sh "$output" "$2"; }

mkdir ws && for i in $(seq 1 200); do echo $i >ws/f$i; done
"$sbsync" start -q --name g ws runtime || not_ok "start"

# Mass deletion.
for i in $(seq 1 150); do rm runtime/f$i; done
must_fail "a mass deletion is refused" 5 "$sbsync" sync g
says "it is named" "would delete 150 of 200"
check "nothing was deleted" test -f ws/f1
must_fail "on stop as well" 5 "$sbsync" stop g
is "the session waits" \
	"$("$sbsync" status --json g | grep -o '"state":"[a-z]*"')" '"state":"unsynced"'
must_fail "also for sync" 5 "$sbsync" sync g
go_on "the way on"
check "it is done then" test ! -e ws/f1 -a -f ws/f200

# An emptied root, on either side.
find runtime -mindepth 1 -delete
must_fail "an emptied sandbox is refused" 5 "$sbsync" sync g
says "it is named" "runtime was emptied: 50 entries"
check "nothing was deleted" test -f ws/f200
cp -a ws/. runtime
"$sbsync" sync -q g
mkdir kept && mv ws/* kept
must_fail "an emptied workspace is refused" 5 "$sbsync" sync g
says "it is named" "ws was emptied"
check "nothing was deleted" test -f runtime/f200
go_on "the way on"
check "it is done then" test ! -e runtime/f200
mv kept/* ws && "$sbsync" sync -q g

# Another sandbox at the same place.
mv runtime old-runtime && mkdir runtime
must_fail "another sandbox is refused" 5 "$sbsync" sync g
says "it is named" "not the sandbox this session was started with"
check "nothing was deleted" test -f ws/f200
go_on "the way on"
check "it has everything" cmp ws/f200 runtime/f200

# A scan without its end: an agent that dies while it tells what it has.
cat >half-agent <<END
#!/bin/sh
"$sbsync" agent | head -c 300
END
chmod +x half-agent
mkdir w2 && echo x >w2/x && "$sbsync" start -q --name h w2 b2
must_fail "an incomplete scan is refused" 1 \
	"${SB_TOP_BUILDDIR:-.}/tests/hostile/driver" turn w2 b2 "$real/half-agent"
says "it is named" "the scan of .* is incomplete"
check "nothing was deleted" test -f w2/x
go_on "the way on"

# Recovery of what cannot be reached: it stays, is tried less and less often, and for ever.
mkdir w3 && echo x >w3/x
(sleep 1000 & echo $! >owner3)
owner3=$(cat owner3)
at_exit 'kill -9 $owner3 2>/dev/null'
sed_state() { "$sbsync" status --json far | grep -o "\"$1\":[^,}]*"; }
"$sbsync" start -q --name far --owner "$owner3" w3 b3 && echo y >b3/y
mv b3 away && echo "not a directory" >b3
is "an owned session is left alone" "$("$sbsync" recover --all | grep '^far')" "far: owned"
kill -9 "$owner3" && wait_for 10 sh -c "! kill -0 $owner3"
must_fail "a recovery that fails" 1 "$sbsync" recover --all
says "says so, and when it tries again" "far: .*it stays unsynced, next try at 20"
is "it counts" "$(sed_state failures)" '"failures":1'
first=$(sed_state next_try | tr -dc 0-9)
check "it waits" test "$first" -gt "$(date +%s)"
is "the next one leaves it for later" \
	"$("$sbsync" recover --all | grep -c '^far: unsynced, next try at')" 1
"$sbsync" recover --all --now >/dev/null 2>&1
check "the wait grows" test "$(sed_state next_try | tr -dc 0-9)" -gt $((first + 30))
check "as JSON" sh -c '"$1" recover --all --json |
	grep -q "\"session\":\"far\",\"result\":\"later\",\"state\":\"unsynced\""' sh "$sbsync"
must_fail "no push over work that has not come back" 1 "$sbsync" start --name far w3 b3
rm b3 && mv away b3
is "when it is there again it comes back" "$("$sbsync" recover --all --now | grep '^far')" \
	"far: synced back, 1 files, 0 deleted, 0 conflicts"
is "with the work" "$(cat w3/y)" y
is "and then there is nothing to do" "$("$sbsync" recover --all --now | grep '^far')" ""
echo z >b3/z
is "work that goes on there comes with the next one" \
	"$("$sbsync" recover --all --now | grep '^far')" \
	"far: synced back, 1 files, 0 deleted, 0 conflicts"
is "every time" "$(cat w3/z)" z

# A start that came to nothing has a verb that ends it.
mkdir w5 && echo x >w5/x && echo "not a directory" >b5
must_fail "a start that fails there" 1 "$sbsync" start --name five w5 b5
must_fail "cannot be stopped" 1 "$sbsync" stop five
says "but is told how it ends" "sbsync rm five forgets it"
check "and so it does" "$sbsync" rm five
must_fail "it is gone" 1 "$sbsync" status five
must_fail "a machine that is not there" 1 \
	"$sbsync" start --name typo -F /dev/null w5 nobody@no-such-host.invalid:x
must_fail "leaves no session" 1 "$sbsync" status typo
must_fail "a host without a directory is not its home" 2 \
	"$sbsync" start --name home w5 nobody@no-such-host.invalid:
says "is told how to say that" "no-such-host.invalid:~ if all of the login directory is meant"
must_fail "nor is it mirrored to" 2 "$sbsync" mirror w5 ssh://no-such-host.invalid
# Two at once: the second leaves the work to the first.
exec 9>"$SBSYNC_STATE_DIR/recover.lock"
python3 - <<'PY'
import fcntl, struct
F_OFD_SETLK = 37
fcntl.fcntl(9, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
PY
must_fail "a second recovery" 4 "$sbsync" recover --all
says "says why" "another recovery of all sessions is under way"
must_fail "a quiet one says nothing" 4 "$sbsync" recover --all --quiet
is "indeed" "$output" ""
exec 9>&-

# A session of a newer version, and a damaged one, do not stop the others, and are
# not passed over in silence.
mkdir -p "$SBSYNC_STATE_DIR/sessions/newer" "$SBSYNC_STATE_DIR/sessions/broken"
printf 'sbsync-session 99\nname newer\nsum 00\n' >"$SBSYNC_STATE_DIR/sessions/newer/session"
echo garbage >"$SBSYNC_STATE_DIR/sessions/broken/session"
must_fail "recover" 1 "$sbsync" recover --all
says "tells of the newer one" "'newer' was made by a newer sbsync"
says "and of the damaged one" "'broken' is damaged"
must_fail "ls too" 1 "$sbsync" ls
says "and lists the others" "^far"

# rm --discard says what would be lost.
echo only >b3/only-there
must_fail "it asks, and nobody answers" 1 "$sbsync" rm --discard far
says "it says what stays there" "create *only-there"
says "and how to go on" "sbsync rm --discard --yes far"
check "the session is still there" "$sbsync" status far
mv b3 away
must_fail "a sandbox that cannot be reached" 1 "$sbsync" rm --discard far
says "has what changed since the last sync" "^Changes made there since .* stay only there\.$"
mv away b3
check "unless it is meant" "$sbsync" rm --discard --yes far
check "the sandbox is untouched" test -f b3/only-there
finish
