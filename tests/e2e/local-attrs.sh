#!/bin/sh
# SPDX-License-Identifier: MIT
# What a sync does not carry stays the local side's: modes beyond the mask, access control lists,
# attributes, owners of files that the runtime edits.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3

build=${SB_TOP_BUILDDIR:-.}
case $build in /*) ;; *) build=$PWD/$build ;; esac
sbsync=$build/sbsync
export SBSYNC_STATE_DIR="$scratch/state"
cd "$scratch" || exit 1
umask 022

attr() { python3 -c 'import os, sys
try:
    print(os.getxattr(sys.argv[1], sys.argv[2]).hex())
except OSError as e:
    print("none")' "$1" "$2"; }
setattr() { python3 -c 'import os, sys
os.setxattr(sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3]))' "$1" "$2" "$3" 2>/dev/null; }

mkdir -p ws/d && echo one >ws/f && echo one >ws/d/x && echo one >ws/s
chmod 664 ws/f && chmod 2775 ws/d && chmod 4755 ws/s
check "start" "$sbsync" start -q --name s ws rt
echo two >>rt/f && echo two >>rt/d/x && echo new >rt/d/y && echo two >>rt/s
check "a turn" "$sbsync" sync -q s
is "the edit is here" "$(tail -n 1 ws/f)" two
is "write permission of the group stays" "$(stat -c %a ws/f)" 664
is "so does what a directory hands on" "$(stat -c %a ws/d)" 2775
is "set-id of a file does not" "$(stat -c %a ws/s)" 755
chmod 700 rt/d && chmod 755 rt/f
check "a change of mode" "$sbsync" sync -q s
is "is taken, beside that" "$(stat -c '%a' ws/d ws/f | paste -sd' ')" "2720 775"
check "nothing is left to do" sh -c "test -z \"\$('$sbsync' diff -q s)\""

# u::rw- u:65534:rwx g::r-- m::rwx o::r--, as the kernel keeps it.
acl=0200000001000600ffffffff02000700feff000004000400ffffffff10000700ffffffff20000400ffffffff
if setattr ws/f user.note 6d696e65; then
	echo three >>rt/f
	check "a turn" "$sbsync" sync -q s
	is "an attribute stays" "$(attr ws/f user.note)" 6d696e65
else
	skip "an attribute stays" "no user attributes on this file system"
fi
if setattr ws/d/x system.posix_acl_access $acl; then
	echo three >>rt/d/x
	check "a turn" "$sbsync" sync -q s
	case $(attr ws/d/x system.posix_acl_access) in
	*02000700feff0000*) ok "an access control list stays" ;;
	*) not_ok "an access control list stays" "$(attr ws/d/x system.posix_acl_access)" ;;
	esac
else
	skip "an access control list stays" "none on this file system"
fi
if [ "$(id -u)" = 0 ]; then
	chown 65534:65533 ws/f && echo four >>rt/f
	check "a turn" "$sbsync" sync -q s
	is "the owner stays" "$(stat -c %u:%g ws/f)" 65534:65533
	is "and the mode" "$(stat -c %a ws/f)" 775
else
	skip "the owner stays" "only root gives files away"
fi

# The runtime keeps its own in the same way.
if setattr rt/f user.note 796f757273; then
	echo five >>ws/f
	check "a turn" "$sbsync" sync -q s
	is "an attribute there stays" "$(attr rt/f user.note)$(tail -n 1 rt/f)" 796f757273five
else
	skip "an attribute there stays" "no user attributes on this file system"
fi
if [ "$(id -u)" = 0 ]; then
	chown 65534:65533 rt/f && echo six >>ws/f
	check "a turn" "$sbsync" sync -q s
	is "the owner there stays" "$(stat -c %u:%g rt/f)$(tail -n 1 rt/f)" 65534:65533six
fi
finish
