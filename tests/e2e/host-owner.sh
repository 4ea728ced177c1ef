#!/bin/sh
# SPDX-License-Identifier: MIT
# To whom the files and processes of a sandbox belong: to a user that nobody else is. A program made
# inside that runs as its owner gives no other user of the machine anything.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/zfs.sh"
[ "$(id -u)" = 0 ] || skip_all "only root can be other users"
zfs_pool 256M || true
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"
need python3
need setpriv
first=1879048192
mkdir -p "$scratch/bases/img/dir"
echo hello >"$scratch/bases/img/dir/hello"
printf 'x' >"$scratch/bases/img/rooted"
chmod 4755 "$scratch/bases/img/rooted"

# Runs a line of shell in a session; what it says goes to $scratch/out.
tool()
{
	python3 -c 'import json, sys; print(json.dumps({"cmd": sys.argv[1]}))' "$2" >"$scratch/p"
	"$sbctl" host tool --params "$(cat "$scratch/p")" "$1" bash >"$scratch/out" 2>&1
}

# Another user of the machine, who comes as far as the place of the sessions lets them.
other()
{
	setpriv --reuid=65533 --regid=65533 --clear-groups "$@"
}

# Nothing in the workspace belongs to a user below the range.
all_theirs()
{
	[ -z "$(find "$1" -uid -$first -o -gid -$first)" ]
}

works()
{
	case $1 in
	gvisor) command -v runsc >/dev/null ;;
	bwrap) command -v bwrap >/dev/null && bwrap --unshare-user --ro-bind / / true 2>/dev/null ;;
	esac
}

# Where the sessions of this storage are, and whatever that needs.
prepare()
{
	if [ "$1" = zfs ]; then
		sessions=$scratch/mnt/sessions
		base=img@initial
		place="--storage-backend zfs --pool $pool --bases-dataset $pool/bases
			--sessions-dataset $pool/sessions"
	else
		sessions=$scratch/sessions
		base=img
		mkdir -p "$sessions"
		chmod 755 "$sessions"
		place="--storage-backend local-disk --sessions-root-dir $sessions
			--bases-dir $scratch/bases"
	fi
}

# try STORAGE RUNTIME [OPTION...]
try()
{
	prepare "$1"
	storage=$1
	rt=$2
	shift 2
	start_host $place --container-runtime $rt "$@"
	is "$storage, $rt $*: the place of the sessions is nobody else's" \
		"$(stat -c %a "$sessions")" 700
	"$sbctl" host create --base $base --id a >/dev/null
	"$sbctl" host create --empty --id b >/dev/null
	tool a 'cp /usr/bin/id made && chmod 6755 made && chmod 777 . && ./made -u; id -u
		mknod disk b 8 0 || echo no device; echo said >/dev/stderr
		[ ! -e dir/hello ] || { echo more >>dir/hello && echo changed; }
		[ ! -e hello ] || { echo more >>hello && echo changed; }'
	check "inside it is root without devices" \
		grep -q 'no device' "$scratch/out"
	check "which may write to its own output by name" grep -q '^said' "$scratch/out"
	check "and to what the base image brought" grep -q '^changed' "$scratch/out"
	check "what is there belongs to its user" all_theirs "$sessions/a"
	check "and no program of the base runs as its owner" \
		test -z "$(find "$sessions/a" -name rooted -perm /6000)"
	owner=$(stat -c %u "$sessions/a")
	check "who is none of the machine's" test "$owner" -ge $first
	check "nor that of the next session" test "$owner" != "$(stat -c %u "$sessions/b")"
	check "the program that runs as its owner is there" test -u "$sessions/a/made"
	check "another user does not come to it" sh -c "! $(command -v setpriv) --reuid=65533 \
		--regid=65533 --clear-groups test -e '$sessions/a/made'"
	# As if the place were open, or the file were handed out.
	chmod 755 "$sessions"
	open=$scratch
	while [ "$open" != / ]; do chmod o+x "$open"; open=$(dirname "$open"); done
	# A copy: gVisor keeps the file open for writing.
	cp -p "$sessions/a/made" "$sessions/a/made2"
	check "(whose copy is one, too)" test -u "$sessions/a/made2"
	is "nor would it make root of them" \
		"$(other "$sessions/a/made2" -u | sed "s/^$owner\$/65533/")" 65533
	chmod 700 "$sessions"
	"$sbctl" host tool --params '{"path":"by-tool","content":"x"}' a write_file >/dev/null
	is "a tool of the host writes as that user" "$(stat -c %u "$sessions/a/by-tool")" "$owner"
	tool a 'echo y >>by-tool && cat by-tool'
	check "and the sandbox goes on with it" grep -q '^xy' "$scratch/out"
	printf 'while :; do sleep 0.1; done\n' >"$sessions/a/loop.sh"
	"$sbctl" host launch a /bin/sh loop.sh >/dev/null
	if [ $rt = bwrap ]; then
		check "its processes are that user's" wait_for 10 \
			sh -c "pgrep -U $owner -f 'loop.sh' >/dev/null"
		check "and none is root's" sh -c "! pgrep -U 0 -f '^/bin/sh loop.sh' >/dev/null"
	fi
	if [ $storage = zfs ]; then
		"$sbctl" host snapshot a one >/dev/null
		"$sbctl" host fork a --snapshot one --id c >/dev/null
		tool c 'echo z >>by-tool && echo went'
		check "a fork is its origin's user's, who can write" grep -q '^went' "$scratch/out"
		check "no program there runs as its owner" \
			sh -c "awk '\$2 == \"$sessions/a\"' /proc/mounts | grep -qw nosuid"
		"$sbctl" host destroy c
	fi
	stop_host
	start_host $place --container-runtime $rt "$@"
	tool a 'echo later >>by-tool && echo still'
	check "all of it after a restart" grep -q '^still' "$scratch/out"
	"$sbctl" host destroy a
	"$sbctl" host destroy b
	stop_host
}

for rt in bwrap gvisor; do
	if ! works $rt; then
		skip "$rt" "it does not work here"
		continue
	fi
	try local-disk $rt
	# Here gVisor is no other user outside: its commands are that user inside.
	[ $rt = bwrap ] || try local-disk $rt --default-network host --allow-host-network
	if [ -n "$pool" ]; then
		try zfs $rt
	else
		skip "zfs, $rt" "$zfs_why"
	fi
done

# A session that was made before hosts did this, or by one that did not.
if works bwrap; then
	prepare local-disk
	start_host $place --container-runtime bwrap --session-uids 0
	check "sessions of this daemon's user are warned of" wait_for 5 \
		grep -q '"warn".*belong to user 0' "$host_log"
	"$sbctl" host create --base img --id old >/dev/null
	tool old 'echo x >>dir/hello'
	is "they are that user's" "$(stat -c %u "$sessions/old/dir/hello")" 0
	"$sbctl" host pause old
	stop_host
	kill "$(pgrep -f "^$build/sb-box enter.*$scratch" | head -1)" 2>/dev/null
	start_host $place --container-runtime bwrap
	"$sbctl" host resume old >/dev/null
	tool old 'echo more >>dir/hello && echo went'
	check "they go on in a host with users" grep -q '^went' "$scratch/out"
	"$sbctl" host destroy old
	stop_host
fi
finish
