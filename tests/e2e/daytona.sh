#!/bin/sh
# SPDX-License-Identifier: MIT
# The Daytona API: the vendor's own package against sbhostd, hostile clients, intervals that are
# over, and what is there after a kill -9. SB_COMPAT_FULL=1 (make check-compat) does it with both
# pinned packages, each runtime and each storage that works here.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"
need node npm python3

key=dtn_0123456789abcdef0123
build=$(cd "$build" && pwd)
specs=$src/../shared/specs/daytona
[ -e "$specs/api.openapi.yaml" ] && python3 -c 'import yaml' 2>/dev/null || specs=
DAYTONA_API_KEY=$key
export DAYTONA_API_KEY DAYTONA_API_URL
# The package looks for a file .env where it runs.
mkdir "$scratch/cwd"

# The packages, installed once for a build.
modules=$build/tests/compat/daytona-npm
npm_why=
(
	mkdir -p "$modules" && exec 8>"$modules/lock" && flock 8 &&
		{ cmp -s "$src/tests/compat/npm/package-lock.json" "$modules/done" && exit 0
			cp "$src/tests/compat/npm/package.json" \
				"$src/tests/compat/npm/package-lock.json" "$modules" &&
				chmod u+w "$modules"/package*.json && cd "$modules" &&
				timeout 200 npm ci --ignore-scripts --no-audit --no-fund \
					--fetch-retries=0 --cache ./cache >npm.log 2>&1 &&
				rm -rf cache && cp package-lock.json done; }
) || npm_why="npm ci: $(tail -n 1 "$modules/npm.log")"

start_daytona()
{
	port=$(free_port)
	DAYTONA_API_URL=http://127.0.0.1:$port/api
	(umask 077 && echo "team:$key" >"$scratch/keys")
	start_host --daytona-listen "127.0.0.1:$port" --daytona-key-file "$scratch/keys" \
		--daytona-ssh-gateway gate.example:2222 \
		--container-runtime "$1" --storage-backend "$2" --sessions-root-dir "$scratch/sess"
}

# Ends every sandbox, then the host, and forgets both.
end_daytona()
{
	"$sbctl" host ls 2>/dev/null | awk 'NR > 1 { print $1 }' >"$scratch/left"
	while read -r id; do
		"$sbctl" host destroy --force "$id" >/dev/null 2>&1
	done <"$scratch/left"
	stop_host
	is "the host ends ($1)" "$host_status" 0
	rm -rf "$scratch/state" "$scratch/sess"
}

has_snapshots()
{
	"$sbctl" host capabilities | grep -qi 'snapshots.*\(true\|yes\)' && echo 1 || echo 0
}

package()
{
	if [ -z "$npm_why" ]; then
		relay_tap "$1, $2, $3" sh -c "cd '$scratch/cwd' && exec timeout 280 node \
			'$src/tests/compat/daytona.mjs' '$modules' '$1' $(has_snapshots)"
	else
		skip "$1, $2, $3" "$npm_why"
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
	cat >"$scratch/cwd/s.cjs" <<JS
const { Daytona } = require("$modules/node_modules/@daytonaio/sdk");
const daytona = new Daytona();
(async () => { $1 })().catch((e) => { console.error(e); process.exit(1); });
JS
	(cd "$scratch/cwd" && timeout 120 node s.cjs)
}

kill_host()
{
	kill -9 "$host_pid"
	wait "$host_pid" 2>/dev/null
}

# Killed in the middle: who ran, runs, with its programs; who was paused or stopped is so. One whose
# interval was over meanwhile is stopped.
survives()
{
	[ -z "$npm_why" ] || { skip "a kill -9 of the host" "$npm_why" && return; }
	script 'const [a, b, c, idle] = await Promise.all(["a", "b", "c", "idle"].map((name) =>
			daytona.create({ name, labels: { me: name } })));
		await a.process.executeCommand("echo kept >f; (sleep 1000 &) >/dev/null 2>&1");
		await b.process.executeCommand("(sleep 1000 &) >/dev/null 2>&1");
		await a.process.createSession("s");
		const r = await a.process.executeSessionCommand("s", { runAsync: true,
			command: "cd /tmp; read x; echo got $x", suppressInputEcho: true });
		const t = await a.process.createPty({ id: "t", onData: () => {} });
		await t.sendInput("K=kept\n");
		await b.pause(); await c.stop();
		console.log(idle.id, r.cmdId); process.exit(0);' >"$scratch/ids"
	read -r idle command <"$scratch/ids"
	kill_host
	python3 - "$scratch/state/daytona/$idle.json" <<'PY'
import json, sys
record = json.load(open(sys.argv[1]))
record["activeNs"] -= 16 * 60 * 10**9
json.dump(record, open(sys.argv[1], "w"))
PY
	start_daytona bwrap "$1"
	check "sandboxes are as they were after a kill -9" script '
		const [a, b, c] = await Promise.all(["a", "b", "c"].map((n) => daytona.get(n)));
		const s = [a.state, b.state, c.state].join();
		if (s !== "started,paused,stopped") throw new Error(s);
		if ((await a.fs.downloadFile("f")).toString() !== "kept\n") throw new Error("f");
		const ran = async (x) =>
			(await x.process.executeCommand("pgrep -x sleep")).exitCode;
		if (await ran(a) !== 0) throw new Error("a: its program is gone");
		await b.start(); await c.start();
		if (await ran(b) !== 0) throw new Error("b: its program is gone");
		await Promise.all([b, c].map((x) => x.delete()));'
	check "so are sessions and terminals" script "
		const a = await daytona.get('a'), c = '$command';
		await a.process.sendSessionCommandInput('s', c, 'it\\n');
		let out = '';
		await a.process.getSessionCommandLogs('s', c, (d) => (out += d), () => {});
		if (out !== 'got it\\n') throw new Error(out);
		const n = await a.process.executeSessionCommand('s', { command: 'pwd' });
		if (n.stdout !== '/tmp\\n') throw new Error(n.stdout);
		out = '';
		const onData = (d) => (out += Buffer.from(d));
		const t = await a.process.connectPty('t', { onData });
		await t.sendInput('echo \$K-; exit 3\\n');
		if ((await t.wait()).exitCode !== 3 || !out.includes('kept-')) throw new Error(out);
		await a.delete();"
	check "an interval that was over meanwhile has acted" script '
		for (let i = 0; i < 200; i++) {
			const idle = await daytona.get("idle");
			if (idle.state === "stopped") { await idle.delete(); return; }
			await new Promise((r) => setTimeout(r, 50));
		}
		throw new Error("not stopped");'
}

fifty()
{
	check "fifty sandboxes at once" script '
		const v = await Promise.all(Array.from({ length: 50 }, (_, i) =>
			daytona.create({ labels: { i: String(i) } })));
		const out = await Promise.all(v.map((s, i) =>
			s.process.executeCommand("echo " + i)));
		out.forEach((r, i) => { if (r.result !== i + "\n") throw new Error(r.result); });
		await Promise.all(v.map((s) => s.delete()));'
}

if [ -n "${SB_COMPAT_FULL-}" ]; then
	for runtime in bwrap gvisor; do
		for storage in overlay btrfs local-disk; do
			if works $runtime $storage; then
				start_daytona $runtime $storage
				package @daytonaio/sdk $runtime $storage
				package @daytona/sdk $runtime $storage
				end_daytona "$runtime, $storage"
			else
				skip "$runtime on $storage" "$(head -n 1 "$scratch/why")"
			fi
		done
	done
fi
if works bwrap auto; then
	start_daytona bwrap auto
	package @daytonaio/sdk bwrap auto
	relay_tap "hostile" timeout 250 python3 "$src/tests/compat/daytona-hostile.py" \
		"http://127.0.0.1:$port" "$key" "$specs"
	survives auto
	[ -z "${SB_COMPAT_FULL-}" ] || fifty
	end_daytona "bwrap"
else
	skip "the API in bwrap" "$(head -n 1 "$scratch/why")"
fi
must_fail "keys that others can read are refused" 1 sh -c "chmod 644 $scratch/keys &&
	$build/sbhostd --check --state-dir $scratch/x --daytona-listen 127.0.0.1:1 \
		--daytona-key-file $scratch/keys --container-runtime none"
finish
