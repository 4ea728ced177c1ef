#!/bin/sh
# SPDX-License-Identifier: MIT
# The E2B API: the vendor's own package against sbhostd, hostile clients, and what is there after a
# kill -9. SB_COMPAT_FULL=1 (make check-compat) does it with both pinned versions, each runtime and
# each storage that works here.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"
need node npm python3

key=e2b_0123456789abcdef0123
src=$(cd "${SB_TOP_SRCDIR:-.}" && pwd)
build=$(cd "$build" && pwd)
echo "a secret of this machine" >"$scratch/secret"
spec=$src/../shared/specs/e2b/openapi.yml
[ -e "$spec" ] && python3 -c 'import yaml' 2>/dev/null || spec=
E2B_SECRET=$scratch/secret
E2B_API_KEY=$key
export E2B_SECRET E2B_API_KEY E2B_API_URL E2B_SANDBOX_URL

# The package, installed once for a build.
modules_of()
{
	modules=$build/tests/compat/npm-$1
	[ -e "$modules/done" ] && return
	mkdir -p "$modules" && echo '{"private":true}' >"$modules/package.json"
	(
		cd "$modules" && timeout 150 npm install --ignore-scripts --no-audit --no-fund \
			--fetch-retries=0 --cache ./cache "e2b@$1" >npm.log 2>&1
	) && rm -rf "$modules/cache" && : >"$modules/done"
}

start_e2b()
{
	port=$(free_port)
	E2B_API_URL=http://127.0.0.1:$port
	E2B_SANDBOX_URL=$E2B_API_URL
	(umask 077 && echo "team:$key" >"$scratch/keys")
	start_host --e2b-listen "127.0.0.1:$port" --e2b-key-file "$scratch/keys" \
		--container-runtime "$1" --storage-backend "$2" --sessions-root-dir "$scratch/sess"
}

# Ends every sandbox, then the host, and forgets both.
end_e2b()
{
	"$sbctl" host ls 2>/dev/null | awk 'NR > 1 { print $1 }' >"$scratch/left"
	while read -r id; do
		"$sbctl" host destroy --force "$id" >/dev/null 2>&1
	done <"$scratch/left"
	stop_host
	is "the host ends ($1)" "$host_status" 0
	rm -rf "$scratch/state" "$scratch/sess"
}

package()
{
	if modules_of "$1"; then
		relay_tap "e2b $1, $2, $3" \
			timeout 280 node "$src/tests/compat/e2b.mjs" "$modules" "$4"
	else
		skip "e2b $1, $2, $3" "npm install: $(tail -n 1 "$modules/npm.log")"
	fi
}

works()
{
	"$build/sbhostd" --check --listen "unix:$scratch/x" --state-dir "$scratch/probe" \
		--container-runtime "$1" --storage-backend "$2" \
		--sessions-root-dir "$scratch/sess" >"$scratch/why" 2>&1
}

script()
{
	cat >"$scratch/s.cjs" <<JS
const { Sandbox } = require("$modules/node_modules/e2b");
(async () => { $1 })().catch((e) => { console.error(e); process.exit(1); });
JS
	timeout 120 node "$scratch/s.cjs"
}

# Killed in the middle: who ran, runs; who was paused, is paused; programs go on.
survives()
{
	modules_of 2.51.0 || { skip "a kill -9 of the host" "no package" && return; }
	script 'const a = await Sandbox.create({ timeoutMs: 600000, metadata: { me: "a" } });
		const b = await Sandbox.create({ timeoutMs: 600000, metadata: { me: "b" } });
		const h = await a.commands.run("read x; echo got $x", { background: true,
			stdin: true });
		await a.files.write("f", "kept"); await b.files.write("f", "frozen");
		await b.pause();
		console.log(a.sandboxId, b.sandboxId, h.pid); process.exit(0);' >"$scratch/ids"
	read -r a b pid <"$scratch/ids"
	kill -9 "$host_pid"
	wait "$host_pid" 2>/dev/null
	start_e2b bwrap "$1"
	check "sandboxes and programs are there after a kill -9" script "
		const a = await Sandbox.connect('$a');
		if (await a.files.read('f') !== 'kept') throw new Error('a');
		let out = '';
		const h = await a.commands.connect($pid, { onStdout: (d) => (out += d) });
		await a.commands.sendStdin($pid, 'it\\n');
		const r = await h.wait();
		if (r.stdout !== 'got it\\n') throw new Error(r.stdout);
		const l = await Sandbox.list({ query: { state: ['paused'] } }).nextItems();
		if (l.length !== 1 || l[0].sandboxId !== '$b') throw new Error('b');
		const b = await Sandbox.connect('$b');
		if (await b.files.read('f') !== 'frozen') throw new Error('b f');
		await a.kill(); await b.kill(); process.exit(0);"
}

fifty()
{
	check "fifty sandboxes at once" script '
		const v = await Promise.all(Array.from({ length: 50 }, (_, i) =>
			Sandbox.create({ metadata: { i: String(i) }, timeoutMs: 600000 })));
		const out = await Promise.all(v.map((s, i) => s.commands.run("echo " + i)));
		out.forEach((r, i) => { if (r.stdout !== i + "\n") throw new Error(r.stdout); });
		await Promise.all(v.map((s) => s.kill()));
		process.exit(0);'
}

if [ -n "${SB_COMPAT_BENCH-}" ]; then
	modules_of 2.51.0 || skip_all "npm install: $(tail -n 1 "$modules/npm.log")"
	start_e2b bwrap auto
	node "$src/tests/compat/bench-e2b.mjs" "$modules" "$host_socket" >"$scratch/numbers" 2>&1
	is "the numbers are there" $? 0
	sed 's/^/# /' "$scratch/numbers"
	end_e2b "bwrap"
	finish
fi
if [ -n "${SB_COMPAT_FULL-}" ]; then
	for runtime in bwrap gvisor; do
		for storage in overlay local-disk; do
			if works $runtime $storage; then
				start_e2b $runtime $storage
				snaps=$([ $storage = local-disk ] && echo 0 || echo 1)
				package 2.51.0 $runtime $storage "$snaps"
				package 2.45.0 $runtime $storage "$snaps"
				end_e2b "$runtime, $storage"
			else
				skip "$runtime on $storage" "$(head -n 1 "$scratch/why")"
			fi
		done
	done
fi
if works bwrap auto; then
	start_e2b bwrap auto
	snaps=$("$sbctl" host capabilities | grep -qi 'snapshots.*\(true\|yes\)' && echo 1 ||
		echo 0)
	package 2.51.0 bwrap auto "$snaps"
	relay_tap "hostile" timeout 250 \
		python3 "$src/tests/compat/e2b-hostile.py" "$E2B_API_URL" "$key" "$spec"
	survives auto
	[ -z "${SB_COMPAT_FULL-}" ] || fifty
	end_e2b "bwrap"
else
	skip "the API in bwrap" "$(head -n 1 "$scratch/why")"
fi
must_fail "keys that others can read are refused" 1 sh -c "chmod 644 $scratch/keys &&
	$build/sbhostd --check --state-dir $scratch/x --e2b-listen 127.0.0.1:1 \
		--e2b-key-file $scratch/keys --container-runtime none"
finish
