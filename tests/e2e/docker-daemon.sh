#!/bin/sh
# SPDX-License-Identifier: MIT
# `sbctl run -b docker` with containers of a real Docker daemon, or (docker_engine=podman, by
# docker-rootless.sh) of a rootless Podman: the command works, files are the user's, limits hold or
# are refused, the network has lists, gVisor runs where the engine has it, and nothing is left.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"

build=$(cd "${SB_TOP_BUILDDIR:-.}" && pwd)
engine=${docker_engine:-docker}
if [ "$engine" = podman ]; then
	. "${SB_TOP_SRCDIR:-.}/tests/lib/podman.sh"
	podman_start || skip_all "$podman_why"
	image=$podman_image
	dir=$podman_dir
else
	. "${SB_TOP_SRCDIR:-.}/tests/lib/dockerd.sh"
	dockerd_start || skip_all "$dockerd_why"
	image=$docker_image
	dir=$dockerd_dir
fi
SBSYNC_AGENT=$build/sbsync-agent
XDG_STATE_HOME=$scratch/state
export SBSYNC_AGENT XDG_STATE_HOME
mkdir "$scratch/w"
printf 'test:\n\t@echo tested >result; cat a; exit $(STATUS)\n' >"$scratch/w/Makefile"
echo one >"$scratch/w/a"

# run [OPTION]... -- COMMAND: in a container; stdout in $scratch/out, the rest in $scratch/err.
run()
{
	(cd "${where:-$scratch/w}" && timeout 100 "$build/sbctl" run -b docker -s "image=$image" \
		-s "engine=$engine" "$@" >"$scratch/out" 2>"$scratch/err") && return
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

left()
{
	"${engine}_left"
}

is_mine()
{
	is "$1" "$(stat -c %u "$2" 2>&1)" "$(id -u)"
}

if command -v make >/dev/null; then
	check "make test works" run -- make test STATUS=0
	is "its output is ours" "$(cat "$scratch/out")" one
	is "its work is here" "$(cat "$scratch/w/result")" tested
	is_mine "and the user's" "$scratch/w/result"
	must_fail "its failure is ours" 2 run -- make test STATUS=1
fi
check "nobody named one: it says which it took, and why" sh -c "cd '$scratch/w' &&
	timeout 60 '$build/sbctl' run -b docker -s kind=container -s 'image=$image' -- true \
		>'$scratch/out' 2>'$scratch/err'"
check "by name" says "using a container of $engine ("

# The directory itself, whatever it is called: what is made there is the user's.
odd="$scratch/w,x \"y\" ':z"
mkdir "$odd"
where=$odd
check "mounted: an odd name" run -s sync=mounted -- sh -c 'id -u >who; mkdir d; echo x >d/f'
is_mine "new files are the user's" "$odd/d/f"
check "mounted and kept" run --id kept -s sync=mounted --persistence reuse -- true
"$engine" rm -f sbsync-kept >/dev/null 2>&1
check "made anew when somebody removed it" run --id kept -s sync=mounted --persistence reuse -- \
	sh -c 'echo y >again'
is_mine "new files are still the user's" "$odd/again"
check "destroyed" "$build/sbctl" destroy kept
where=
check "a system that cannot be changed" run -s read_only=yes -- \
	sh -c 'touch /etc/x 2>/dev/null && exit 1; echo ro >c'
check "another user inside" run -s user=1234:5678 -- sh -c '[ "$(id -u)" = 1234 ] && echo mine >d'
is_mine "is the user here" "$scratch/w/d"

# What cannot start leaves neither container nor volume.
must_fail "a runtime that is not there" 1 run -s runtime=nosuch -- true
is "leaves nothing" "$(left)" ""

# Limits hold, or are refused: never taken and forgotten.
limit='cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null
	cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null; true'
if run -s memory=100m -s pids=77 -- sh -c "$limit" >/dev/null; then
	is "memory and processes are limited" "$(tr '\n' ' ' <"$scratch/out")" "104857600 77 "
	check "processes also when nobody says so" run -- sh -c "$limit"
	is "at a number that no work needs" "$(tail -n 1 "$scratch/out")" 4096
else
	check "memory cannot be limited, which is told" says 'cannot limit memory'
	must_fail "nor can processors" 1 run -s cpus=1 -- true
	check "which is told" says 'cannot limit cpus'
	must_fail "nor can processes" 1 run -s pids=10 -- true
	check "which is told, too" says 'cannot limit pids'
fi

# Put away and taken out again.
check "archive keeps an image and stops it" run --id arch --persistence archive -- \
	sh -c 'echo deep >/tmp/deep'
is "nothing runs" "$("$engine" ps --format '{{.Names}}')" ""
"$engine" rm -f sbsync-arch >/dev/null 2>&1
check "it comes back from the image" run --id arch --persistence archive -- cat /tmp/deep
is "with what was in it" "$(cat "$scratch/out")" deep
check "and goes for good" "$build/sbctl" destroy --discard arch
is "image and all" "$(left)" ""

# An engine that does not answer is not one without containers.
check "one is kept" run --id alive --persistence reuse -- true
mkdir "$scratch/broken"
cat >"$scratch/broken/$engine" <<'END'
#!/bin/sh
echo "dial unix /run/engine.sock: connect: no such file or directory: container not found" >&2
exit 1
END
chmod +x "$scratch/broken/$engine"
must_fail "an engine that does not answer destroys nothing" 1 \
	env "PATH=$scratch/broken:$PATH" "$build/sbctl" destroy --discard alive
check "the record stays" sh -c "'$build/sbctl' ls | grep -q alive"
is "as does the container" "$("$engine" ps --format '{{.Names}}')" sbsync-alive
check "it goes when the engine is back" "$build/sbctl" destroy alive

# gVisor, where the engine has it.
if ! command -v runsc >/dev/null; then
	skip "in gVisor" "runsc is not installed"
elif ! "$engine" run --rm --network none --runtime runsc --ulimit nofile=1024:1024 \
	--ulimit nproc=1024:1024 "$image" true >"$dir/gvisor" 2>&1; then
	skip "in gVisor" "$engine does not run it here: $(tail -n 1 "$dir/gvisor" | cut -c1-200)"
else
	check "in gVisor" run -s runtime=runsc -- sh -c 'dmesg | grep -qi gvisor && echo in >g'
	is "the work is here" "$(cat "$scratch/w/g")" in
fi

# Lists of the network policy: a server of this machine that is listed, and nothing else.
why=$("$build/sb-egress" probe 2>&1 >/dev/null) || why=${why:-no gate}
if [ -z "$why" ] && command -v python3 >/dev/null; then
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
	cat >"$scratch/w/get" <<'END'
exec 2>/dev/null
exec 3<>"/dev/tcp/$1/$2" || exit 1
printf 'GET /a HTTP/1.0\r\nHost: %s:%s\r\n\r\n' "$1" "$2" >&3
timeout 10 tail -n 1 <&3 | grep .
END
	check "an allow list: a container gets a gate" run --network "127.0.0.1:$port" -- \
		sh -c 'bash ./get host.sandbox.internal "$1"
		bash ./get 192.0.2.1 80 || echo refused' sh "$port"
	is "what is listed is reached, and nothing else" "$(cat "$scratch/out")" "one
refused"
else
	skip "lists of the network policy" "$why"
fi
check "what works here is told" sh -c "'$build/sbctl' docker check | grep -q '^$engine *works'"
is "nothing is left at all" "$(left)" ""
finish
