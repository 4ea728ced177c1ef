// SPDX-License-Identifier: MIT
// Speed of the E2B API beside our own RPC on the same host: numbers and ratios, no verdicts. argv:
// the folder of node_modules, sbhostd's socket, a token's file is not needed on it.
import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, ftruncateSync, rmSync, createReadStream } from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { Readable } from "node:stream";

const [, , modules, socket] = process.argv;
const { Sandbox } = createRequire(`${modules}/x.js`)("e2b");
const rounds = Number(process.env.BENCH_ROUNDS ?? 100);
const megabytes = Number(process.env.BENCH_MB ?? 256);
const agent = new http.Agent({ keepAlive: true });
const p50 = (v) => v.sort((a, b) => a - b)[Math.floor(v.length / 2)];

function rpc(method, body) {
  return new Promise((done, fail) => {
    const req = http.request(
      {
        agent,
        socketPath: socket,
        path: `/rpc.v1.SandboxService/${method}`,
        method: "POST",
        headers: { "Content-Type": "application/json", "Connect-Protocol-Version": "1" },
      },
      (res) => {
        let text = "";
        res.on("data", (d) => (text += d));
        res.on("end", () => (res.statusCode === 200 ? done(JSON.parse(text)) : fail(text)));
      },
    );
    req.on("error", fail);
    req.end(JSON.stringify(body));
  });
}

async function timed(fn) {
  const t = performance.now();
  await fn();
  return performance.now() - t;
}

const first = [];
for (let i = 0; i < 10; i++) {
  let s;
  first.push(
    await timed(async () => {
      s = await Sandbox.create();
      await s.commands.run("true");
    }),
  );
  await s.kill();
}
console.log(`create to first command: p50 ${p50(first).toFixed(1)} ms of ${first.length}`);

const sb = await Sandbox.create({ timeoutMs: 600000 });
const SessionID = sb.sandboxId;
const ours = [];
const theirs = [];
await sb.commands.run("true");
// Turn by turn, so that both see the same machine.
for (let i = 0; i < rounds; i++) {
  const Params = { command: "true" };
  const call = { SessionID, ToolCallID: `b${i}`, ToolName: "bash", Params };
  ours.push(await timed(() => rpc("ExecuteTool", call)));
  theirs.push(await timed(() => sb.commands.run("true")));
}
const a = p50(theirs);
const b = p50(ours);
console.log(
  `commands.run("true"): p50 ${a.toFixed(2)} ms; our tool call: p50 ${b.toFixed(2)} ms; ` +
    `ratio ${(a / b).toFixed(2)} (at most 1.3 is wanted)`,
);

const dir = mkdtempSync(`${tmpdir()}/bench-e2b-`);
const file = `${dir}/f`;
const fd = openSync(file, "w");
ftruncateSync(fd, megabytes << 20);
closeSync(fd);
const url = new URL(await sb.uploadUrl("curl"));
const curl = await timed(() =>
  execFileSync("curl", [
    "-sf", "-o", "/dev/null", "-H", "Content-Type: application/octet-stream", "-H", "Expect:",
    "-H", `E2b-Sandbox-Id: ${SessionID}`, "-T", file, "-X", "POST", url.href,
  ]),
);
const sdk = await timed(() => sb.files.write("sdk", Readable.toWeb(createReadStream(file))));
const rate = (ms) => ((megabytes * 1000) / ms).toFixed(0);
console.log(
  `upload of ${megabytes} MiB: package ${rate(sdk)} MiB/s, curl ${rate(curl)} MiB/s; ` +
    `ratio ${(curl / sdk).toFixed(2)} (at least 0.5 is wanted)`,
);
rmSync(dir, { recursive: true });
await sb.kill();
process.exit(0);
