#!/bin/sh
# SPDX-License-Identifier: MIT
# The clients for TypeScript and Python, used as their pages say, against a real host.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"
need python3

here=$src/bindings
export PYTHONDONTWRITEBYTECODE=1
for made in "ts ts/api.d.ts" "js ts/api.js" "python python/sbsync/api.py"; do
	is "${made#* } is what the proto says" "$(python3 "$here/generate.py" \
		"$src/doc/sandbox.proto" "${made% *}" | diff - "$here/${made#* }")" ""
done
start_host --storage-backend local-disk --sessions-root-dir "$scratch/sessions"

export SBSYNC_STATE_DIR="$scratch/sbsync" PYTHONPATH="$here/python"
out=$(python3 "$src/tests/bindings/client.py" "$build/sbsync" 2>&1)
is "the Python clients" "$out" "session py active b
tool 0 out True
stream 0 err out two
fails not_found SESSION_NOT_FOUND
fails invalid_argument INVAL
fails invalid_argument INVAL Quota
fails unavailable
timeout deadline_exceeded TIMEOUT
event stream.started
threads 8
left 0
start 1
sync conflicts ['f']
conflicts ['f']
status active ['s']
log ['start', 'turn']
error 1 there is no session 'nope'; 'sbsync ls' lists them
stop ok"
cp -r "$here/python" "$scratch/python"
if python3 -c 'import setuptools, pip, wheel' 2>/dev/null; then
	check "pip installs it" python3 -m pip install -q --no-index --no-build-isolation \
		--no-deps --target "$scratch/site" "$scratch/python"
	is "and it is what was tested" \
		"$(cd / && PYTHONPATH=$scratch/site python3 -c 'import sbsync
print(sbsync.__version__)')" "0.1.0"
else
	skip "pip installs it" "pip, setuptools or wheel is not there"
fi

if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
	skip "the TypeScript client" "node or npm is not installed"
	finish
fi
mkdir "$scratch/app"
cd "$scratch/app" || exit 1
echo '{"private": true, "type": "module"}' >package.json
check "npm pack" npm pack --silent --cache "$scratch/npm" --pack-destination "$scratch" "$here/ts"
is "the package holds its files" "$(tar -tzf "$scratch/sbsync-client-0.1.0.tgz" | LC_ALL=C sort |
	sed 's|package/||' | paste -sd' ')" \
	"README.md api.d.ts api.js index.d.ts index.js package.json"
check "it installs without a network" npm install --silent --offline --no-audit --no-fund \
	--cache "$scratch/npm" "$scratch/sbsync-client-0.1.0.tgz"

# The compiler checks the types, and makes of the test what node runs.
tsc=$build/tests/bindings/npm
if [ ! -e "$tsc/done" ]; then
	mkdir -p "$tsc" && echo '{"private":true}' >"$tsc/package.json"
	(cd "$tsc" && timeout 100 npm install --ignore-scripts --no-audit --no-fund \
		--fetch-retries=0 --cache ./cache typescript@5.9.2 @types/node@20.19.11 \
		>npm.log 2>&1) && touch "$tsc/done"
	rm -rf "$tsc/cache"
fi
cp "$src/tests/bindings/client.ts" .
if [ -e "$tsc/done" ]; then
	check "types: strict, as the test uses them" node "$tsc/node_modules/typescript/bin/tsc" \
		--strict --target es2022 --module nodenext --moduleResolution nodenext \
		--typeRoots "$tsc/node_modules/@types" --types node client.ts
	sed 's/SessionID: "none"/SessionId: 7/' client.ts >wrong.ts
	must_fail "a wrong field is a type error" 2 node \
		"$tsc/node_modules/typescript/bin/tsc" --strict --noEmit --target es2022 \
		--module nodenext --moduleResolution nodenext \
		--typeRoots "$tsc/node_modules/@types" --types node wrong.ts
	is "the TypeScript client" "$(timeout 60 node client.js 2>&1)" 'session ts active b
tool 0 out true
stream 0 "err out two"
fails not_found SESSION_NOT_FOUND
fails invalid_argument INVAL
fails invalid_argument INVAL Quota
fails unavailable
abort canceled
ended in the host
timeout deadline_exceeded TIMEOUT
event stream.started
big true
left 0'
else
	skip "the TypeScript client" "npm install typescript: $(tail -n 1 "$tsc/npm.log")"
fi
finish
