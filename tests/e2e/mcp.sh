#!/bin/sh
# SPDX-License-Identifier: MIT
# sbctl mcp with the real MCP client of npm: a session of a host elsewhere, and a sandbox whose host
# is in this process (embedded), which is synced back at the end.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"

need node npm
[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 18 ] || skip_all "node is older than 18"
rpc_node_modules
SB_MCP_COMMAND=$(cd "$build" && pwd)/sbctl
export SB_MCP_COMMAND SB_MCP_ARGS

start_host_for local-disk
"$sbctl" host create --id one --empty >/dev/null || not_ok "a session for the client"
SB_MCP_ARGS='["mcp","--session","one","--host","'$SANDBOX_HOST'"]'
relay mcp.mjs
check "sbctl host tools lists them" sh -c '"$1" host tools >tools.out &&
	grep -q "^bash cmd\* timeout_ms" tools.out && grep -q "^read_file path\*" tools.out' \
	sh "$sbctl"
must_fail "a session that is not there" 1 "$sbctl" mcp --session none --host "$SANDBOX_HOST"
token=$("$sbctl" host token one) || not_ok "a token for the session"
check "the session's own token is enough" sh -c 'printf "%s\n" "$2" >own &&
	printf "%s\n" "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}" |
	"$1" mcp --session one --host "$3" --token-file own >ping.out &&
	grep -q "\"id\":1" ping.out' \
	sh "$sbctl" "$token" "$SB_URL"
stop_host
unset SANDBOX_HOST

# A sandbox on record: embedded. `true` is what ran in it before.
SBSYNC_STATE_DIR=$scratch/sb-state SBSYNC_BOX_DIR=$scratch/box
XDG_CONFIG_HOME=$scratch/config
export SBSYNC_STATE_DIR SBSYNC_BOX_DIR XDG_CONFIG_HOME
mkdir -p project && echo mine >project/mine
check "a kept sandbox" sh -c 'cd project && "$1" run -b host -s runtime=none -k --id kept \
	--sync-mode turn-bidirectional -- true' sh "$SB_MCP_COMMAND"
say()
{
	printf '{"jsonrpc":"2.0","id":%s,"method":"%s","params":%s}\n' "$@"
}
ask()
{
	say 0 initialize '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{}}'
	say 1 tools/call "{\"name\":\"bash\",\"arguments\":{\"cmd\":\"$1\"}}"
}
ask "cat mine && echo theirs >theirs" >asked
check "its tools work where the project is" sh -c '"$1" mcp --session kept <asked >out &&
	grep -q mine out' sh "$sbctl"
is "what they made comes back at the end" "$(cat project/theirs)" theirs

# Each tool's end is a turn: the file is here before the answer is.
mkfifo in out2
"$sbctl" mcp --session kept --turn-tools <in >out2 2>turns.err &
mcp=$!
exec 7>in 8<out2
ask "echo now >now" >&7
IFS= read -r line <&8 && IFS= read -r line <&8
is "a turn at the end of a tool call" "$(cat project/now 2>&1)" now
echo here >project/here
say 2 tools/call '{"name":"bash","arguments":{"cmd":"true"}}' >&7
IFS= read -r line <&8
say 3 tools/call '{"name":"read_file","arguments":{"path":"here"}}' >&7
IFS= read -r line <&8
case $line in *here*) ok "and back" ;; *) echo "$line" | diag && not_ok "and back" ;; esac
exec 7>&- 8<&-
wait "$mcp"
check "the sandbox goes" "$sbctl" destroy kept

must_fail "--turn-tools without turns" 1 sh -c 'cd project &&
	"$1" run -b host -s runtime=none -k --id other -- true &&
	"$1" mcp --session other --turn-tools' sh "$SB_MCP_COMMAND"
case $output in *"has sync mode session-bidirectional"*) ok "and why" ;; *) not_ok "and why" ;; esac
check "the other goes" "$sbctl" destroy other
must_fail "a sandbox of another backend" 1 sh -c 'cd project &&
	"$1" run -b local -k --id plain -- true && "$1" mcp --session plain' sh "$SB_MCP_COMMAND"
case $output in *"is of backend local"*) ok "and why not" ;; *) not_ok "and why not" ;; esac
check "the plain one goes" "$sbctl" destroy plain
finish
