// SPDX-License-Identifier: MIT
// sbctl mcp, driven by the real client of npm (@modelcontextprotocol/sdk) and, where that never
// would say such things, by lines of our own.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { Ajv } from "ajv";
import { finish, test, until } from "./tap.mjs";

const args = JSON.parse(process.env.SB_MCP_ARGS);
const command = process.env.SB_MCP_COMMAND;
const env = { ...process.env };

async function connect() {
  const transport = new StdioClientTransport({ command, args, env, stderr: "inherit" });
  const client = new Client({ name: "sbctl-test", version: "1" });
  await client.connect(transport);
  return { client, transport };
}
const text = (r) => r.content.map((b) => b.text).join("");

const { client, transport } = await connect();
const call = (name, args, ...more) => client.callTool({ name, arguments: args }, ...more);

await test("initialize gives the newest version and who we are", async () => {
  assert.equal(client.getServerVersion().name, "sbctl");
  assert.match(client.getServerVersion().version, /^\d+\.\d+/);
  assert.deepEqual(client.getServerCapabilities(), { tools: { listChanged: false } });
  assert.match(client.getInstructions(), /sandbox/);
});

await test("ping", () => client.ping());

let tools;
await test("tools/list: names, descriptions, schemas", async () => {
  ({ tools } = await client.listTools());
  const names = tools.map((t) => t.name);
  for (const n of ["bash", "read_file", "write_file", "edit_file", "ls", "grep", "glob"])
    assert.ok(names.includes(n), n);
  assert.equal(new Set(names).size, names.length);
  const ajv = new Ajv({ strict: true });
  for (const t of tools) {
    assert.ok(t.description.length > 10, t.name);
    assert.equal(t.inputSchema.additionalProperties, false, t.name);
    const validate = ajv.compile(t.inputSchema);
    assert.ok(!validate({ there_is_no_such_thing: 1 }), t.name);
  }
  const bash = ajv.compile(tools.find((t) => t.name === "bash").inputSchema);
  assert.ok(bash({ cmd: "true", timeout_ms: 5 }));
  assert.ok(!bash({}) && !bash({ cmd: 7 }) && !bash({ cmd: "x", timeout_ms: 0 }));
  assert.equal(tools.find((t) => t.name === "read_file").annotations.readOnlyHint, true);
  assert.equal(tools.find((t) => t.name === "bash").annotations.readOnlyHint, false);
});

await test("what the schema refuses, the tool refuses", async () => {
  for (const t of tools) {
    const r = await call(t.name, { there_is_no_such_thing: 1 });
    assert.equal(r.isError, true, t.name);
    assert.match(text(r), /has no parameter "there_is_no_such_thing"/);
    for (const p of t.inputSchema.required ?? []) {
      const r = await call(t.name, {});
      assert.equal(r.isError, true);
      assert.match(text(r), /is required/, `${t.name} ${p}`);
    }
  }
});

await test("tools/call: files", async () => {
  assert.match(text(await call("write_file", { path: "a.txt", content: "één\ntwee\n" })), /wrote/);
  assert.match(text(await call("read_file", { path: "a.txt" })), /één\n.*twee/s);
  const r = await call("read_file", { path: "missing" });
  assert.equal(r.isError, true);
  assert.match(text(r), /not found/);
});

await test("tools/call: bash works where the files are, and its exit shows", async () => {
  const r = await call("bash", { cmd: "cat a.txt; exit 3" });
  assert.match(text(r), /één/);
  assert.match(text(r), /Exit code: 3/);
  assert.equal(r.isError, true);
  assert.equal((await call("bash", { cmd: "true" })).isError, false);
});

await test("an unknown tool is an error of the protocol", async () => {
  await assert.rejects(call("no_such_tool", {}), (e) => e.code === -32602);
  await assert.rejects(call("shell", { cmd: "true" }), (e) => e.code === -32602);
});

await test("an unknown method", async () => {
  await assert.rejects(client.listResources(), /./);
});

await test("progress", async () => {
  const seen = [];
  await call("bash", { cmd: "for i in 1 2 3 4; do echo $i; sleep 0.15; done" }, undefined, {
    onprogress: (p) => seen.push(p),
  });
  assert.ok(seen.length >= 2, JSON.stringify(seen));
  for (let i = 1; i < seen.length; i++) assert.ok(seen[i].progress > seen[i - 1].progress);
});

await test("calls run at the same time, and ping is answered meanwhile", async () => {
  const slow = call("bash", { cmd: "while ! [ -e go ]; do sleep 0.02; done; echo went" });
  await client.ping();
  await call("write_file", { path: "go", content: "" });
  assert.match(text(await slow), /went/);
});

await test("cancellation ends what the call runs", async () => {
  const stop = new AbortController();
  const running = call("bash", { cmd: "echo $$ >pid; exec sleep 1000" }, undefined, {
    signal: stop.signal,
  });
  const failed = assert.rejects(running, /./);
  await until("it runs", async () => !(await call("read_file", { path: "pid" })).isError);
  stop.abort("enough");
  await failed;
  await until("it is gone", async () =>
    /gone/.test(text(await call("bash", { cmd: "kill -0 $(cat pid) 2>/dev/null || echo gone" }))),
  );
  await client.ping();
});

await test("a large result and a large parameter", async () => {
  const big = "x".repeat(3 << 20);
  assert.equal((await call("write_file", { path: "big", content: big })).isError, false);
  assert.match(text(await call("bash", { cmd: "wc -c <big" })), /^3145728/);
});

await test("closing ends the server", async () => {
  const pid = transport.pid;
  await client.close();
  await until("it ends", () => {
    try {
      process.kill(pid, 0);
      return false;
    } catch {
      return true;
    }
  });
});

// Lines of our own: what comes back, line by line.
async function raw(lines, { end = true } = {}) {
  const p = spawn(command, args, { env, stdio: ["pipe", "pipe", "inherit"] });
  const out = [];
  createInterface({ input: p.stdout }).on("line", (l) => out.push(JSON.parse(l)));
  const ended = new Promise((r) => p.on("close", r));
  p.stdin.write(lines.map((l) => (typeof l === "string" ? l : JSON.stringify(l)) + "\n").join(""));
  if (end) p.stdin.end();
  return { p, out, ended };
}
const init = (version, id = 0) => ({
  jsonrpc: "2.0",
  id,
  method: "initialize",
  params: { protocolVersion: version, capabilities: {}, clientInfo: { name: "t", version: "0" } },
});

for (const v of ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
  await test(`version ${v} is spoken`, async () => {
    const { out, ended } = await raw([init(v)]);
    assert.equal(await ended, 0);
    assert.equal(out[0].result.protocolVersion, v);
  });

await test("another version gets ours; only once", async () => {
  const { out, ended } = await raw([init("1999-01-01"), init("2025-06-18", 1)]);
  await ended;
  assert.equal(out[0].result.protocolVersion, "2025-11-25");
  assert.equal(out[1].error.code, -32600);
});

await test("what is no message is refused, and the next one is answered", async () => {
  const bad = [
    ["{", -32700],
    ["nonsense", -32700],
    ['{"jsonrpc":"2.0","id":1,"method":"ping"} trailing', -32700],
    ["[".repeat(1000), -32700],
    ["7", -32600],
    ["[]", -32600],
    ['{"id":1,"method":"ping"}', -32600],
    ['{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":1}', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":7}', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/list"}', -32600],
    ['[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600],
  ];
  const { out, ended } = await raw([
    ...bad.map(([line]) => line),
    "",
    { jsonrpc: "2.0", id: 9, result: {} },
    { jsonrpc: "2.0", method: "notifications/what" },
    { jsonrpc: "2.0", id: "last", method: "ping" },
  ]);
  assert.equal(await ended, 0);
  bad.forEach(([line, code], i) => assert.equal(out[i]?.error?.code, code, line));
  assert.deepEqual(out[bad.length], { jsonrpc: "2.0", id: "last", result: {} });
  assert.equal(out.length, bad.length + 1);
});

await test("a call that is wrong is told so under its id", async () => {
  const { out, ended } = await raw([
    init("2025-11-25"),
    { jsonrpc: "2.0", id: 1, method: "tools/call" },
    { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "bash", arguments: [] } },
    { jsonrpc: "2.0", id: 3, method: "tools/list", params: { cursor: "x" } },
    { jsonrpc: "2.0", id: 4, method: "nothing" },
    '{"jsonrpc":"2.0","id":5,"method":"tools/call",' +
      '"params":{"name":"bash","arguments":{"cmd":"a\\u0000b"}}}',
  ]);
  await ended;
  const of = (id) => out.find((m) => m.id === id);
  assert.equal(of(1).error.code, -32602);
  assert.equal(of(2).error.code, -32602);
  assert.equal(of(3).error.code, -32602);
  assert.equal(of(4).error.code, -32601);
  assert.equal(of(5).result.isError, true);
});

await test("batches, where the version has them", async () => {
  const { out, ended } = await raw([
    init("2025-03-26"),
    [
      { jsonrpc: "2.0", id: 1, method: "ping" },
      { jsonrpc: "2.0", method: "notifications/initialized" },
      { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "ls", arguments: {} } },
    ],
    [{ jsonrpc: "2.0", method: "notifications/initialized" }],
  ]);
  await ended;
  assert.equal(out.length, 2);
  assert.deepEqual(out[1].map((m) => m.id).sort(), [1, 2]);
});

await test("a message that is too long is skipped", async () => {
  const { out, ended } = await raw([
    `{"jsonrpc":"2.0","id":1,"method":"${"x".repeat(17 << 20)}"}`,
    { jsonrpc: "2.0", id: 2, method: "ping" },
  ]);
  await ended;
  assert.equal(out[0].error.code, -32600);
  assert.equal(out[1].id, 2);
});

await test("after the input's end calls are answered", async () => {
  const { out, ended } = await raw([
    init("2025-11-25"),
    {
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "bash", arguments: { cmd: "sleep 0.3; echo late" } },
    },
  ]);
  assert.equal(await ended, 0);
  assert.match(out[1].result.content[0].text, /late/);
});

await test("a client that is gone ends its calls", async () => {
  const { p, ended } = await raw([
    init("2025-11-25"),
    {
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "bash", arguments: { cmd: "echo $$ >pid2; exec sleep 1000" } },
    },
  ]);
  const other = await connect();
  await until("it runs", async () => {
    const r = await other.client.callTool({ name: "bash", arguments: { cmd: "cat pid2" } });
    return !r.isError;
  });
  p.stdout.destroy();
  await ended;
  await other.client.close();
});

finish();
