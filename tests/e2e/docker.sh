#!/bin/sh
# SPDX-License-Identifier: MIT
# `sbctl run -b docker` with containers of a real Podman: what a container is like, its network,
# what stays of it, and what happens to odd words.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/podman.sh"

build=$(cd "${SB_TOP_BUILDDIR:-.}" && pwd)
podman_start || skip_all "$podman_why"
SBSYNC_AGENT=$build/sbsync-agent
XDG_STATE_HOME=$scratch/state
export SBSYNC_AGENT XDG_STATE_HOME
mkdir "$scratch/w"
echo one >"$scratch/w/a"

# run [OPTION]... -- COMMAND: in a container; stdout in $scratch/out, the rest in $scratch/err.
run()
{
	(cd "$scratch/w" && timeout 100 "$build/sbctl" run -b docker -s "image=$podman_image" "$@" \
		>"$scratch/out" 2>"$scratch/err") && return
	status=$?
	cat "$scratch/err"
	return $status
}

says()
{
	grep -q -- "$1" "$scratch/err" || {
		cat "$scratch/err"
		return 1
	}
}

check "a command runs in a container" run -- sh -c 'cat a; echo two >b; rm a; pwd; hostname
	grep -E "^(CapEff|NoNewPrivs|Seccomp):" /proc/self/status; ls /sys/class/net; env'
check "it says which it took, and why" says 'using a container of podman (docker'
is "its work is here" "$(cat "$scratch/w/b")$(ls "$scratch/w")" twob
check "it has no capabilities" grep -qx 'CapEff:.0000000000000000' "$scratch/out"
check "it gains no privileges" grep -qx 'NoNewPrivs:.1' "$scratch/out"
check "its system calls are filtered" grep -qx 'Seccomp:.2' "$scratch/out"
is "its only network is its own" "$(sed -n '/Seccomp:/,$p' "$scratch/out" | sed -n 2p)" lo
is "nothing is left of it" "$(podman_left)" ""
must_fail "its exit status is ours" 7 run -- sh -c 'exit 7'

# Words that programs on the way could take apart.
odd="a b'c\"d,e;\$(f)\\ -g"
check "odd words reach the command as they are" run -e "ODD=$odd" -- \
	sh -c 'printf "%s\n" "$ODD" "$@"' sh "$odd" --privileged '' '
two lines'
is "one by one" "$(cat "$scratch/out")" "$odd
$odd
--privileged


two lines"
secret=5ecret-value
MY_SECRET=$secret
export MY_SECRET
cat >"$scratch/config.yaml" <<END
profiles:
  box:
    backend: docker
    docker: {kind: container, engine: podman, image: "$podman_image", memory: 256m, pids: 64}
    env: {GREETING: "hello, \"you\""}
    secret_env: {TOKEN: env:MY_SECRET}
END
check "a profile's environment and secrets reach it" sh -c "cd '$scratch/w' && timeout 60 \
	'$build/sbctl' run --config '$scratch/config.yaml' -P box -- \
	sh -c 'echo \$GREETING \$TOKEN' >'$scratch/out' 2>'$scratch/err'"
is "as they are" "$(cat "$scratch/out")" "hello, \"you\" $secret"
is "a secret is in no record" "$(grep -rl $secret "$XDG_STATE_HOME")" ""
for bad in image=-it image='a b' memory=lots cpus=-1 pids=0 user=-u cap_add=chown engine=lxc \
	kind=vm runtime=-x; do
	must_fail "refused: $bad" 1 run -s "$bad" -- true
done
must_fail "an image that is not there is told" 1 run -s image=localhost/nosuch -- true
is "and leaves nothing" "$(podman_left)" ""

check "a system that cannot be changed" run -s read_only=yes -- \
	sh -c 'touch /etc/x 2>/dev/null && exit 1; echo ro >c'
is "but work can" "$(cat "$scratch/w/c")" ro
check "as another user" run -s user=1234:5678 -- sh -c 'id -u; echo mine >d'
is "inside" "$(cat "$scratch/out")" 1234
is "and the files are ours" "$(stat -c %u "$scratch/w/d")" "$(id -u)"

check "reuse leaves it running" run --id kept --persistence reuse -- sh -c 'echo x >/tmp/x'
is "one container" "$(podman ps --format '{{.Names}}')" sbsync-kept
podman stop --time 0 sbsync-kept >/dev/null
check "one that was stopped is started again" run --id kept --persistence reuse -- cat /tmp/x
must_fail "with another network it is refused" 1 run --id kept --persistence reuse \
	--network on -- true
check "that is told" says 'was made with none,synced'
check "destroyed on demand" "$build/sbctl" destroy kept
is "it is gone" "$(podman_left)" ""
check "archive keeps an image and stops it" run --id arch --persistence archive -- \
	sh -c 'echo deep >/root/deep'
is "nothing runs" "$(podman ps --format '{{.Names}}')" ""
check "the image is there" podman image inspect localhost/sbsync-archive:arch
podman rm --force sbsync-arch >/dev/null
check "it comes back from the image" run --id arch --persistence archive -- cat /root/deep
is "with what was in it" "$(cat "$scratch/out")" deep
check "and goes for good" "$build/sbctl" destroy --discard arch
is "image and all" "$(podman_left)" ""

rm -f "$scratch/w"/*
echo before >"$scratch/w/e"
check "mounted: in the directory itself" run --id m -s sync=mounted -- \
	sh -c 'pwd; echo agent >e; echo new >f'
is "under its own path" "$(cat "$scratch/out")" "$scratch/w"
is "what it changed is told" "$(sed -n 's/^sbctl: m: \([0-9]* files\).*/\1/p' "$scratch/err")" \
	"2 files"
echo "by the user" >"$scratch/w/f"
check "taken back" "$build/sbctl" docker undo m
is "the file is as before" "$(cat "$scratch/w/e")" before
is "what the user edited since stays" "$(cat "$scratch/w/f")" "by the user"
must_fail "a runtime root of its own does not go with it" 1 "$build/sbctl" run -b docker \
	-s sync=mounted -s "image=$podman_image" -s runtime_root=x -- true
odd="$scratch/with, \"quotes\" and:colon"
mkdir "$odd"
check "a name that the engine could take apart" sh -c "cd '$odd' &&
	timeout 60 '$build/sbctl' run -b docker -s sync=mounted -s image=$podman_image -- touch f"
check "is mounted as it is" test -e "$odd/f"
line="$scratch/two
lines"
mkdir "$line"
must_fail "but one of two lines is refused" 1 sh -c "cd '$line' &&
	'$build/sbctl' run -b docker -s sync=mounted -s image=$podman_image -- true"

# What a crash may leave: a container that no record knows. Others' are not touched.
podman run --detach --name stray --network none --ulimit nofile=1024:1024 \
	--ulimit nproc=1024:1024 --label sb_sandbox_id=stray \
	--label "sb_owner=$(id -u):$XDG_STATE_HOME/sbsync/docker" "$podman_image" sleep 1000 \
	>/dev/null
podman run --detach --name other --network none --ulimit nofile=1024:1024 \
	--ulimit nproc=1024:1024 --label sb_sandbox_id=other --label sb_owner=7:/elsewhere \
	"$podman_image" sleep 1000 >/dev/null
check "ls shows both records and strays" sh -c "'$build/sbctl' docker ls >'$scratch/out' &&
	grep -q 'stray.*no record' '$scratch/out'"
check "prune removes the stray" "$build/sbctl" docker prune
is "and no other" "$(podman ps --format '{{.Names}}')" other
podman rm --force --time 0 other >/dev/null
check "check tells what works" sh -c "'$build/sbctl' docker check >'$scratch/out' &&
	grep -q '^podman *works' '$scratch/out'"

# Lists, by the egress proxy: the one way out leads to a server of this machine that is listed.
if "$build/sb-egress" probe >/dev/null 2>"$scratch/why" && command -v python3 >/dev/null; then
	cat >"$scratch/serve.py" <<'END'
import http.server
import sys
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
with open(sys.argv[1], "w", encoding="utf-8") as f:
    f.write("%d\n" % server.server_port)
server.serve_forever()
END
	(cd "$scratch/w" && exec python3 "$scratch/serve.py" "$scratch/port") 2>/dev/null &
	server=$!
	at_exit "kill $server"
	wait_for 20 test -s "$scratch/port"
	port=$(cat "$scratch/port")
	# get NAME PORT: the file e from there; no word about what went wrong.
	cat >"$scratch/w/get" <<'END'
exec 2>/dev/null
exec 3<>"/dev/tcp/$1/$2" || exit 1
printf 'GET /e HTTP/1.0\r\nHost: %s:%s\r\n\r\n' "$1" "$2" >&3
timeout 10 tail -n 1 <&3 | grep .
END
	check "an allow list: a container gets a gate" run --id net --keep \
		--network "127.0.0.1:$port" -- sh -c 'ls /sys/class/net | sort | tr "\n" " "
		bash ./get host.sandbox.internal "$1"
		bash ./get 192.0.2.1 80 || echo refused
		bash ./get other.example 80 || echo unknown' sh "$port"
	is "what is listed is reached, and nothing else" "$(cat "$scratch/out")" "lo sb0 before
refused
unknown"
	check "it goes on without us" "$build/sbctl" exec net bash ./get host.sandbox.internal \
		"$port"
	check "and ends with the container" "$build/sbctl" destroy net
	check "as does its proxy" wait_for 20 sh -c '! pgrep -f "sb-egress serve -s [n]et "'
else
	skip "lists of the network policy" "$(cat "$scratch/why")"
fi
is "nothing is left at all" "$(podman_left)" ""
finish
