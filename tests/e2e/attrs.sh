#!/bin/sh
# SPDX-License-Identifier: MIT
# --xattrs and --acls carry attributes of users and access control lists over, three-way in a
# session; without them nothing goes. What cannot be set is told.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3

build=${SB_TOP_BUILDDIR:-.}
case $build in /*) ;; *) build=$PWD/$build ;; esac
sbsync=$build/sbsync
export SBSYNC_STATE_DIR="$scratch/state"
cd "$scratch" || exit 1
umask 022

cat >attr.py <<'PY'
import os, sys
verb, path, name = sys.argv[1:4]
if verb == "get":
    try:
        print(os.getxattr(path, name).decode("latin-1"))
    except OSError:
        print("none")
elif verb == "hex":
    try:
        print(os.getxattr(path, name).hex())
    except OSError:
        print("none")
elif verb == "sethex":
    os.setxattr(path, name, bytes.fromhex(sys.argv[4]))
elif verb == "set":
    os.setxattr(path, name, sys.argv[4].encode())
else:
    os.removexattr(path, name)
PY
get() { python3 attr.py get "$1" "$2"; }
set_() { python3 attr.py set "$@"; }
drop() { python3 attr.py remove "$@"; }

mkdir -p ws/d && echo one >ws/f && echo one >ws/d/g && echo one >ws/ro
set_ ws/f user.note mine 2>/dev/null || skip_all "no user attributes on this file system"
set_ ws/d user.note dir
set_ ws/f user.overlay.redirect /etc
set_ ws/ro user.note locked
chmod 444 ws/ro

check "a session without" "$sbsync" start -q --name s ws rt
is "nothing goes unasked" "$(get rt/f user.note)" none
check "asked" "$sbsync" sync -q --xattrs s
is "of a file" "$(get rt/f user.note)" mine
is "of a directory" "$(get rt/d user.note)" dir
is "of one that cannot be written" "$(get rt/ro user.note)$(stat -c %a rt/ro)" locked444
is "not what others obey" "$(get rt/f user.overlay.redirect)" none
is "nor the session's own" "$(get ws user.sbsync.id)" none

set_ rt/f user.note theirs
set_ rt/d/g user.new made
set_ rt/d/g user.sbsync.id stolen
drop rt/d user.note
before=$(stat -c %y ws/f)
check "back" "$sbsync" sync -q --xattrs s
is "a change came" "$(get ws/f user.note)" theirs
is "a new one came" "$(get ws/d/g user.new)" made
is "ours did not" "$(get ws/d/g user.sbsync.id)" none
is "one went" "$(get ws/d user.note)" none
is "the time stays" "$(stat -c %y ws/f)" "$before"
check "nothing is left to do" "$sbsync" sync -q --xattrs s
is "and nothing changed" "$(get ws/f user.note)$(get rt/f user.note)" theirstheirs

set_ ws/f user.note a
set_ rt/f user.note b
check "both sides" sh -c '"$1" sync --xattrs s >out 2>&1' _ "$sbsync"
check "it is told" grep -q "attributes changed on both sides" out
is "the local one counts" "$(get ws/f user.note)$(get rt/f user.note)" aa

echo two >>rt/f
set_ rt/f user.note with
mv rt/d/g rt/d/h
check "with contents and a move" "$sbsync" sync -q --xattrs s
is "both are here" "$(tail -n 1 ws/f)$(get ws/f user.note)$(get ws/d/h user.new)" twowithmade
set_ rt/f user.note late
check "stop" "$sbsync" stop -q --xattrs s
is "brings them" "$(get ws/f user.note)" late

check "a mirror" "$sbsync" mirror -q --xattrs ws copy
is "has them" "$(get copy/f user.note)$(get copy/d/h user.new)" latemade
set_ copy/f user.other x
check "again" "$sbsync" mirror -q --xattrs ws copy
is "and no others" "$(get copy/f user.other)" none

# Access control lists: u::rw- u:65534:rwx g::r-- m::rwx o::r--, as the kernel keeps it.
acl=0200000001000600ffffffff02000700feff000004000400ffffffff10000700ffffffff20000400ffffffff
if python3 attr.py sethex ws/f system.posix_acl_access $acl 2>/dev/null; then
	check "a mirror without --acls" "$sbsync" mirror -q --xattrs ws copy
	is "has none" "$(python3 attr.py hex copy/f system.posix_acl_access)" none
	check "with it" "$sbsync" mirror -q --acls ws copy
	is "the list came" "$(python3 attr.py hex copy/f system.posix_acl_access)" $acl
	is "the mode is the same" "$(stat -c %a copy/f)" "$(stat -c %a ws/f)"
	is "attributes stay" "$(get copy/f user.note)" late
	python3 attr.py remove ws/f system.posix_acl_access
	check "taken away" "$sbsync" mirror -q --acls ws copy
	is "it went" "$(python3 attr.py hex copy/f system.posix_acl_access)" none
else
	skip "access control lists" "none on this file system"
fi

# A destination that keeps none.
if [ "$(id -u)" = 0 ] && mkdir plain && mount -t ramfs none plain 2>/dev/null; then
	at_exit "umount '$scratch/plain'"
	if set_ plain user.x y 2>/dev/null; then
		skip "a place without attributes" "ramfs keeps them here"
	else
		check "a place without attributes" sh -c \
			'"$1" mirror --xattrs ws plain/copy >out 2>&1' _ "$sbsync"
		check "it is told" grep -q "its attributes cannot be set" out
		check "the files are there" cmp ws/f plain/copy/f
	fi
else
	skip "a place without attributes" "needs root and ramfs"
fi
finish
