#!/bin/sh
# SPDX-License-Identifier: MIT
# What users are asked on the way to another machine, and options that fingers know from rsync.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/tmux.sh"
need ssh ssh-keygen
src=$(cd "${SB_TOP_SRCDIR:-.}" && pwd)
sbsync=$(cd "${SB_TOP_BUILDDIR:-.}" && pwd)/sbsync
export SBSYNC_STATE_DIR="$scratch/state"
export PATH="$(dirname "$sbsync"):$PATH"
cd "$scratch" || exit 1
mkdir tree
echo one >tree/file

# says DESCRIPTION WANT OPTION...: wrong usage, with these words.
says()
{
	what=$1 want=$2
	shift 2
	must_fail "$what" 2 "$sbsync" mirror "$@" tree copy
	is "... and what stands for it" "$output" "$want"
}
says "-a" "sbsync: -a is not needed: modes, times and links are always kept, owners never" -a
says "-avz" "sbsync: -a is not needed: modes, times and links are always kept, owners never" -avz
says "-P" "sbsync: -P is --progress always; a transfer that was cut goes on by itself" -P
says "-z" "sbsync: -z is not needed: what is sent is compressed as the link is worth it\
 (--compress)" -z
says "--include" "sbsync: --include is --exclude '!PATTERN', behind the --exclude it makes an\
 exception of" --include=x
says "--chmod" "sbsync: --chmod is not there: modes are kept, without set-id bits from a sandbox" \
	--chmod=go-w
says "-X" "sbsync: -X is --xattrs" -X
says "-A" "sbsync: -A is --acls" -A
if python3 -c 'import os; os.setxattr("tree/file", "user.note", b"x")' 2>/dev/null; then
	"$sbsync" mirror tree attrs >/dev/null 2>attrs.err
	is "attributes that do not travel are told" "$(cat attrs.err)" "sbsync: warning: send: 1\
 files have extended attributes or access control lists, which are not synced"
else
	skip "attributes that do not travel are told" "there are none in $scratch"
fi

why=$(sh "$src/tests/lib/sshd.sh" start "$scratch/srv" \
	'SetEnv XDG_CACHE_HOME=@DIR@/cache SBSYNC_STATE_DIR=@DIR@/state TMPDIR=@DIR@/tmp')
case $? in
0) ;;
77)
	skip "questions of host keys" "$why"
	finish
	;;
*)
	echo "Bail out! sshd does not start: $why"
	exit 1
	;;
esac
dir=$scratch/srv
at_exit 'sh $src/tests/lib/sshd.sh stop $dir'
port=$(cat "$dir/port")
there=$(cat "$dir/user")@127.0.0.1:$dir
unset SSH_AUTH_SOCK SSH_ASKPASS
way="-F /dev/null -p $port --known-hosts $scratch/known"

# shellcheck disable=SC2086
must_fail "a key file that is not there" 1 "$sbsync" mirror $way -i nokey tree "$there/x"
is "is named" "$output" "sbsync: the key file nokey (-i): No such file or directory"
# shellcheck disable=SC2086
must_fail "an unknown host without a terminal" 1 setsid -w "$sbsync" mirror $way \
	-i "$dir/id_ed25519" tree "$there/x"
check "is refused with the way out" sh -c 'echo "$1" | grep -q -e --accept-new-host-key' sh \
	"$output"

terminal 120 12
type_in "sbsync mirror $way -i $dir/id_ed25519 tree $there/asked"
sees "on one it is asked about" "^Is it the server's\? \(yes, no, or its fingerprint\)"
sees "with its fingerprint" 'the host key ssh-ed25519 SHA256:[A-Za-z0-9+/]+ is not known'
type_in "what"
sees "again when it was neither" 'Please answer yes or no'
type_in "no"
sees "no is refused with the way out" 'accept-new-'
type_in 'echo status-$?'
sees "no is no" '(^|[$] )status-1$'
check "nothing is remembered" test ! -s known
type_in "clear; sbsync mirror $way -i $dir/id_ed25519 tree $there/asked"
sees "asked anew" 'fingerprint\)'
type_in "yes"
sees "yes is yes" '^1 files synced'
check "the file is there" test -f "$dir/asked/file"
type_in "clear; sbsync mirror $way -i $dir/id_ed25519 tree $there/asked"
sees "and remembered" '^0 files synced'
type_in "clear; sbsync mirror $way -i $dir/id_locked tree $there/locked"
sees "a passphrase is asked for" 'Passphrase for key'
type_in "open sesame"
sees "and works" '^1 files synced'
must_fail "the passphrase is not on the screen" 1 sh -c 'echo "$1" | grep sesame' sh "$(screen)"
finish
