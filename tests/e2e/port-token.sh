#!/bin/sh
# SPDX-License-Identifier: MIT
# Exposed ports of a daemon that gives them only to who shows a token: the session's, or an
# admin's.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3 curl
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"

(umask 077; echo admin-token-0123456789 >"$scratch/admin"; head -c 32 /dev/urandom >"$scratch/key")
mkdir "$scratch/bases" "$scratch/bases/base" && echo "it is me" >"$scratch/bases/base/index.html"
start_host --storage-backend local-disk --sessions-root-dir "$scratch/sessions" \
	--bases-dir "$scratch/bases" --advertise-addr token:127.0.0.1 \
	--token-file "$scratch/admin" --token-key-file "$scratch/key"
port=$(free_port)
for id in one two; do
	check "session $id" "$sbctl" host create --id "$id" --base base
	"$sbctl" host token "$id" --json >"$scratch/token-$id" 2>"$scratch/err" ||
		diag <"$scratch/err"
done
"$sbctl" host launch --json --expose-port "$port" --ready 20s one \
	/usr/bin/python3 -m http.server --bind 127.0.0.1 "$port" >"$scratch/launched" 2>&1 ||
	diag <"$scratch/launched"
address=$(grep -o 'token:127.0.0.1:[0-9]*' "$scratch/launched" | head -n 1)
check "its address says that a token is needed" test -n "$address"

# fetch [TOKEN]: the status of the tunnel and what the process says.
fetch()
{
	curl -s -m 20 -p -x "http://${address#token:}" ${1:+--proxy-header \
		"Proxy-Authorization: Bearer $1"} -w '%{http_connect}' http://localhost/index.html
}
one=$(grep -o 'sbs2\.[^" ]*' "$scratch/token-one")
two=$(grep -o 'sbs2\.[^" ]*' "$scratch/token-two")
check "both sessions have tokens" test -n "$one" -a -n "$two"
is "nobody comes in without" "$(fetch)" 407
is "nor with a token of another session" "$(fetch "$two")" 407
is "nor with one that is made up" "$(fetch "${one%????}aaaa")" 407
is "the session's own token opens it" "$(fetch "$one")" "it is me
200"
is "and an admin's" "$(fetch admin-token-0123456789)" "it is me
200"
for id in one two; do
	check "session $id goes" "$sbctl" host destroy "$id"
done
finish
