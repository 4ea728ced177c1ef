# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
# sbhostd for a test. Source after tap.sh:
#     start_host OPTION...      # sets $host_pid and, for sbctl, SANDBOX_HOST; ends with the test
#     stop_host                 # TERM; sets $host_status
# $host_log is what it said.

. "${SB_TOP_SRCDIR:-.}/tests/lib/json.sh"

build=${SB_TOP_BUILDDIR:-.}
src=$(cd "${SB_TOP_SRCDIR:-.}" && pwd)
sbctl=$build/sbctl
host_pid=
host_log=$scratch/host.log
host_socket=$scratch/host.sock
SANDBOX_HOST=unix:$host_socket
export SANDBOX_HOST
unset SANDBOX_AUTH_TOKEN
# Most of these tests are about calls, not about isolation: they look at a session's files and
# processes from here. Those about it say --container-runtime.
SANDBOX_CONTAINER_RUNTIME=none
export SANDBOX_CONTAINER_RUNTIME

# The host answers, or it is gone.
host_is_up()
{
	kill -0 "$host_pid" 2>/dev/null || return 0
	"$sbctl" host health >/dev/null 2>&1
}

# Starts it on $host_socket with these options; fails with its log as a diagnostic.
start_host()
{
	"$build/sbhostd" --listen "unix:$host_socket" --state-dir "$scratch/state" \
		--log-level debug "$@" >>"$host_log" 2>&1 </dev/null &
	host_pid=$!
	at_exit "[ -z \"\$host_pid\" ] || { kill $host_pid; wait $host_pid; } 2>/dev/null"
	if ! wait_for 20 host_is_up || ! kill -0 "$host_pid" 2>/dev/null; then
		tail -n 5 "$host_log" | diag
		echo "Bail out! sbhostd does not start"
		exit 1
	fi
}

stop_host()
{
	kill "$host_pid"
	wait "$host_pid"
	host_status=$?
	host_pid=
}

# A port of 127.0.0.1 where nobody listens.
free_port()
{
	python3 - <<'PY'
import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])
PY
}

# On zfs (zfs_pool comes first) or local-disk with a base image; listens on TCP as well.
# Sets what tests/node reads.
start_host_for()
{
	SB_STORAGE=$1
	shift
	SB_TOKEN=admin-token-0123456789
	SB_SOCKET=$host_socket
	export SB_STORAGE SB_TOKEN SB_SOCKET SB_BASE SB_ROOT SB_URL
	(umask 077 && echo "$SB_TOKEN" >"$scratch/token")
	port=$(free_port)
	SB_URL=http://127.0.0.1:$port
	if [ "$SB_STORAGE" = zfs ]; then
		SB_BASE=img@initial
		SB_ROOT=$scratch/mnt
		set -- --pool "$pool" --bases-dataset "$pool/bases" \
			--sessions-dataset "$pool/sessions" "$@"
	else
		SB_BASE=img
		SB_ROOT=$scratch/root
		mkdir -p "$scratch/root" "$scratch/bases/img"
		echo hello >"$scratch/bases/img/hello"
		set -- --sessions-root-dir "$scratch/root/sessions" \
			--bases-dir "$scratch/bases" "$@"
	fi
	start_host --storage-backend "$SB_STORAGE" --listen "127.0.0.1:$port" \
		--token-file "$scratch/token" "$@"
}

# Installs the client once for a build and generates its code; skips the file
# when that cannot be done.
rpc_node_modules()
{
	node_dir=$build/tests/node
	mkdir -p "$node_dir"
	(
		flock 8 || exit 1
		cd "$node_dir" || exit 1
		cp "$src"/tests/node/*.mjs "$src/tests/node/package.json" \
			"$src/tests/node/package-lock.json" "$src/tests/node/.npmrc" \
			"$src/tests/node/buf.gen.yaml" "$src/doc/sandbox.proto" . || exit 1
		if ! cmp -s "$src/tests/node/package-lock.json" node_modules/.installed; then
			timeout 150 npm install >npm.log 2>&1 || exit 1
			cp "$src/tests/node/package-lock.json" node_modules/.installed
		fi
		timeout 60 node_modules/.bin/buf generate sandbox.proto >buf.log 2>&1
	) 8>"$node_dir/lock" || {
		why=$(tail -n 1 "$node_dir/npm.log" 2>/dev/null)
		skip_all "the npm packages cannot be had: $why"
	}
	[ -s "$node_dir/gen/sandbox_pb.js" ] ||
		{ echo "Bail out! doc/sandbox.proto does not compile"; exit 1; }
}

# Hands each result of a TAP script of tests/node on under its own name.
relay()
{
	relay_tap "$1" sh -c 'cd "$1" && exec timeout 250 node "$2"' sh "$build/tests/node" "$1"
}

# relay_tap NAME COMMAND...: passes its TAP on, each line under NAME; the
# host must have survived it.
relay_tap()
{
	tap_of=$1
	shift
	"$@" >"$scratch/out" 2>&1 </dev/null
	status=$?
	while IFS= read -r line; do
		case $line in
		"ok "*"# SKIP "*)
			what=${line#*- }
			skip "$tap_of: ${what%% # SKIP*}" "${line#*# SKIP }"
			;;
		"ok "*) ok "$tap_of: ${line#*- }" ;;
		"not ok "*) not_ok "$tap_of: ${line#*- }" ;;
		1..*) ;;
		*) printf '# %s\n' "${line#\# }" ;;
		esac
	done <"$scratch/out"
	is "$tap_of ends" "$status" 0
	kill -0 "$host_pid" 2>/dev/null ||
		{ not_ok "the host is alive after $tap_of" "$(tail -n 5 "$host_log")"; finish; }
}
