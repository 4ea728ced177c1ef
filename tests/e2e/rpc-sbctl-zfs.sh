#!/bin/sh
# SPDX-License-Identifier: MIT
# The snapshot verbs of sbctl host against sbhostd on a real pool: change,
# snapshot, rm -rf, rollback, fork.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/zfs.sh"
need python3
zfs_pool 256M || skip_all "$zfs_why"
start_host_for zfs --keep-turn-snapshots 3

in_one() { "$sbctl" host exec one "$@"; }
check "create" "$sbctl" host create --id one --base img@initial --quota 64M
is "turn" "$("$sbctl" host turn one)" turn-0001
check "a change" in_one 'echo new >added; rm hello; echo more >>dir/deep'
is "diff until now" \
	"$("$sbctl" host diff one turn-0001 | awk '$2 != "dir" { print $1, $2 }')" "added added
modified dir/deep
removed hello"
is "diff with what is in the files" \
	"$("$sbctl" host diff --content one turn-0001 |
		grep -c -x -e '+new' -e '-hello' -e '+more')" 3
is "snapshot" "$("$sbctl" host snapshot one mine)" mine
is "diff of two" "$("$sbctl" host diff one turn-0001 mine | wc -l)" \
	"$("$sbctl" host diff one turn-0001 | wc -l)"
check "hold" "$sbctl" host hold one mine keep
must_fail "a held one is not deleted" 1 "$sbctl" host rm-snapshot one mine
must_fail "nor rolled over" 1 "$sbctl" host rollback --drop-later one turn-0001
must_fail "zfs cannot keep what is newer" 1 "$sbctl" host rollback one turn-0001
is "the timeline" "$("$sbctl" host timeline one | awk '{ print $2, $4 }')" "turn-0001 
mine <-"
check "release" "$sbctl" host release one mine keep
is "snapshots" "$("$sbctl" host snapshots one | awk 'NR > 1 { print $1, $2 }' | tr '\n' ' ')" \
	"turn-0001 turn mine named "
check "rm -rf" in_one 'rm -rf -- * .[!.]*; ls -A | wc -l'
check "rollback" "$sbctl" host rollback one mine
is "everything is back" "$(in_one 'cat added dir/deep')" "new
deep
more"
check "fork" "$sbctl" host fork --snapshot turn-0001 --id two --label of=one one
is "the fork has the older content" "$("$sbctl" host exec two cat hello)" hello
"$sbctl" host exec two 'echo two >hello'
is "and goes its own way" \
	"$("$sbctl" host exec two cat hello)/$(in_one 'ls hello 2>&1 | wc -l')" two/1
is "turns are numbered on" \
	"$("$sbctl" host turn one; "$sbctl" host turn one; "$sbctl" host turn one)" "turn-0002
turn-0003
turn-0004"
is "old turns are dropped, those with forks stay" \
	"$("$sbctl" host snapshots one | awk '$2 == "turn" { print $1 }' | tr '\n' ' ')" \
	"turn-0001 turn-0002 turn-0003 turn-0004 "
check "destroy the fork" "$sbctl" host destroy two
check "rm-snapshot" "$sbctl" host rm-snapshot one mine
check "destroy" "$sbctl" host destroy --force one

# A run there ends with a snapshot, taken after the work came back.
mkdir "$scratch/ws" && echo one >"$scratch/ws/f"
SBSYNC_STATE_DIR=$scratch/own
SBSYNC_AGENT=$build/sbsync-agent
export SBSYNC_STATE_DIR SBSYNC_AGENT
check "run with a snapshot" "$sbctl" run -q -b host --set "url=unix:$host_socket" -C "$scratch/ws" \
	--id snapped -k --snapshot -- sh -c 'echo two >f'
is "its work is back" "$(cat "$scratch/ws/f")" two
is "its snapshot is there" \
	"$("$sbctl" host snapshots snapped | awk 'NR > 1 { print $1 }' | grep -cx end)" 1
is "with its work" \
	"$("$sbctl" host exec snapped 'echo three >work/f' && "$sbctl" host rollback snapped end &&
		"$sbctl" host exec snapped cat work/f)" two
check "destroy it" "$sbctl" destroy snapped

# A removal that was under way when the host was killed, of a snapshot that
# something else came to need.
check "create one to be cut off" "$sbctl" host create --id cut --base img@initial
check "its snapshot" "$sbctl" host snapshot cut needed
stop_host
is "the host ends in order" "$host_status" 0
check "a clone from outside" zfs clone -o mountpoint=none \
	"$pool/sessions/cut@needed" "$pool/outside"
is "the intent" "$(python3 - "$scratch/state/host.db" <<'P'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
print(db.execute("UPDATE snapshots SET intent = 2 WHERE name = 'needed'").rowcount)
db.commit()
P
)" 1
start_host_for zfs
is "the host starts and it stays" \
	"$("$sbctl" host snapshots cut | awk '$1 == "needed" { print $2 }')" named
must_fail "as nobody can remove it" 1 "$sbctl" host rm-snapshot cut needed
check "the clone goes" wait_for 20 zfs destroy "$pool/outside"
check "until it is free" "$sbctl" host rm-snapshot cut needed
check "destroy what was cut off" "$sbctl" host destroy --force cut
stop_host
is "the host ends in order again" "$host_status" 0
is "no dataset is left" \
	"$(zfs list -H -r -t filesystem -o name "$pool/sessions" | grep -c /sessions/)" 0
finish
