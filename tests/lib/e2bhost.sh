# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154
# Our own host with the E2B API, for a test. Source after tap.sh:
#     start_e2b_host RUNTIME [OPTION]...   # sets $e2b_url, E2B_API_KEY, $host_pid
#     e2b_left                             # what is left there, a line for each sandbox

. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"

E2B_API_KEY=e2b_0123456789abcdefcanary
export E2B_API_KEY

start_e2b_host()
{
	runtime=$1
	shift
	port=$(free_port)
	e2b_url=http://127.0.0.1:$port
	(umask 077 && echo "team:$E2B_API_KEY" >"$scratch/keys")
	start_host --e2b-listen "127.0.0.1:$port" --e2b-key-file "$scratch/keys" \
		--container-runtime "$runtime" --storage-backend local-disk \
		--sessions-root-dir "$scratch/sess" "$@"
}

# The best runtime that works here.
e2b_runtime()
{
	if command -v bwrap >/dev/null && bwrap --unshare-user --ro-bind / / true 2>/dev/null; then
		echo bwrap
	else
		echo none
	fi
}

e2b_left()
{
	"$sbctl" host ls | awk 'NR > 1 { print $1 }'
}
