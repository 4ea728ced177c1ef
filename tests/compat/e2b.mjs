// SPDX-License-Identifier: MIT
// Each method of the e2b package that the host can serve, by the package itself. argv: the folder
// of its node_modules, and whether the storage has snapshots (1 or 0).
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test, skip, finish, until } from "../node/tap.mjs";

const [, , modules, snaps] = process.argv;
const require = createRequire(`${modules}/x.js`);
const { Sandbox, CommandExitError, NotFoundError, TimeoutError } = require("e2b");

let sb;
await test("create", async () => {
  sb = await Sandbox.create("base", {
    metadata: { "a b": "c d&=%", run: "1" },
    envs: { FOO: "bar" },
    timeoutMs: 300000,
  });
  assert.match(sb.sandboxId, /^[a-z0-9]{20}$/);
});
await test("commands.run: output, environment, directory", async () => {
  const r = await sb.commands.run("echo $FOO $X; pwd; echo no >&2", { envs: { X: "y" } });
  assert.deepEqual([r.stdout, r.stderr, r.exitCode], ["bar y\n/home/user\n", "no\n", 0]);
  assert.equal((await sb.commands.run("pwd", { cwd: "/tmp" })).stdout, "/tmp\n");
  assert.equal((await sb.commands.run("echo $USER", { user: "root" })).stdout, "root\n");
});
await test("commands.run: codes, a missing directory, an unknown user", async () => {
  await assert.rejects(sb.commands.run("exit 3"), (e) => {
    return e instanceof CommandExitError && e.exitCode === 3;
  });
  await assert.rejects(sb.commands.run("true", { cwd: "/nope" }));
  await assert.rejects(sb.commands.run("true", { user: "nobody-else" }));
});
await test("commands.run: a stream, in pieces as they come", async () => {
  const seen = [];
  await sb.commands.run("echo one; sleep 0.3; echo two", { onStdout: (d) => seen.push(d) });
  assert.deepEqual(seen, ["one\n", "two\n"]);
  const r = await sb.commands.run("head -c 3000000 /dev/zero | tr '\\0' x");
  assert.equal(r.stdout.length, 3000000);
});
await test("commands.run: its time is over", async () => {
  await assert.rejects(sb.commands.run("sleep 60", { timeoutMs: 700 }), TimeoutError);
  await until("the program is gone", async () => (await sb.commands.list()).length === 0);
});
await test("commands: background, stdin, list, connect, kill", async () => {
  let out = "";
  const h = await sb.commands.run("cat", { background: true, stdin: true });
  const again = await sb.commands.connect(h.pid, { onStdout: (d) => (out += d) });
  await sb.commands.sendStdin(h.pid, "ping\n");
  await until("an echo", () => out === "ping\n");
  assert.deepEqual((await sb.commands.list()).map((p) => p.pid), [h.pid]);
  await h.disconnect();
  assert.equal(await sb.commands.kill(h.pid), true);
  await assert.rejects(again.wait());
  assert.equal(await sb.commands.kill(h.pid), false);
});
await test("commands.closeStdin", async () => {
  const h = await sb.commands.run("cat; echo over", { background: true, stdin: true });
  await sb.commands.sendStdin(h.pid, "x\n");
  await sb.commands.closeStdin(h.pid);
  assert.equal((await h.wait()).stdout, "x\nover\n");
});
await test("pty: create, input, resize, end", async () => {
  let out = "";
  const dec = new TextDecoder();
  const h = await sb.pty.create({ cols: 80, rows: 24, onData: (d) => (out += dec.decode(d)) });
  await sb.pty.resize(h.pid, { cols: 100, rows: 40 });
  await sb.pty.sendInput(h.pid, new TextEncoder().encode("stty size; exit 5\n"));
  await assert.rejects(h.wait(), (e) => e.exitCode === 5);
  assert.match(out, /40 100/);
  const k = await sb.pty.create({ cols: 80, rows: 24, onData: () => {} });
  assert.equal(await sb.pty.kill(k.pid), true);
});
await test("files: write, read in each form, list, info, exists", async () => {
  const i = await sb.files.write("x/ü n.txt", "hello");
  assert.equal(i.path, "/home/user/x/ü n.txt");
  assert.equal(await sb.files.read("x/ü n.txt"), "hello");
  const bytes = await sb.files.read("~/x/ü n.txt", { format: "bytes" });
  assert.deepEqual([...bytes], [...Buffer.from("hello")]);
  assert.equal((await sb.files.read("x/ü n.txt", { format: "blob" })).size, 5);
  let streamed = "";
  for await (const p of await sb.files.read("x/ü n.txt", { format: "stream" }))
    streamed += Buffer.from(p).toString();
  assert.equal(streamed, "hello");
  await sb.files.write("empty", "");
  assert.equal(await sb.files.read("empty"), "");
  await sb.files.write([
    { path: "m/1", data: "one" },
    { path: "/home/user/m/d/2", data: new Uint8Array([1, 2]).buffer },
  ]);
  const l = await sb.files.list("m", { depth: 2 });
  assert.deepEqual(l.map((e) => [e.path, e.type]), [
    ["/home/user/m/1", "file"],
    ["/home/user/m/d", "dir"],
    ["/home/user/m/d/2", "file"],
  ]);
  assert.equal((await sb.files.getInfo("m/1")).size, 3);
  assert.deepEqual([await sb.files.exists("m"), await sb.files.exists("no")], [true, false]);
  await assert.rejects(sb.files.read("no"), NotFoundError);
  await assert.rejects(sb.files.list("m/1"));
  await assert.rejects(sb.files.read("m"));
});
await test("files: makeDir, rename, remove", async () => {
  assert.equal(await sb.files.makeDir("d/e"), true);
  assert.equal(await sb.files.makeDir("d/e"), false);
  await assert.rejects(sb.files.makeDir("m/1"));
  assert.equal((await sb.files.rename("m/1", "new/q")).path, "/home/user/new/q");
  assert.equal((await sb.files.rename("new/q", "/tmp/q")).path, "/tmp/q");
  await assert.rejects(sb.files.rename("nothing", "x"), NotFoundError);
  await sb.files.remove("d");
  await sb.files.remove("d");
  assert.equal(await sb.files.exists("d"), false);
});
await test("files.watchDir, also beneath", async () => {
  const seen = [];
  await sb.files.makeDir("w");
  const w = await sb.files.watchDir("w", (e) => seen.push(`${e.type} ${e.name}`), {
    recursive: true,
  });
  await sb.files.write("w/a", "1");
  await sb.files.write("w/deep/b", "1");
  await sb.files.remove("w/a");
  const want = ["create a", "write a", "create deep/b", "remove a"];
  await until("events", () => want.every((x) => seen.includes(x)));
  await w.stop();
  await assert.rejects(sb.files.watchDir("no", () => {}), NotFoundError);
});
await test("files: signed addresses", async () => {
  const up = await sb.uploadUrl("signed", { useSignatureExpiration: 60 });
  const form = new FormData();
  form.append("file", new Blob(["by url"]), "signed");
  assert.equal((await fetch(up, { method: "POST", body: form })).status, 200);
  const down = await sb.downloadUrl("signed", { useSignatureExpiration: 60 });
  assert.equal(await (await fetch(down)).text(), "by url");
  const u = new URL(down);
  u.searchParams.set("path", "m/d/2");
  assert.equal((await fetch(u)).status, 401);
  const late = new URL(down);
  late.searchParams.set("signature_expiration", "1");
  assert.equal((await fetch(late)).status, 401);
});
await test("getInfo, setTimeout, isRunning, getMetrics", async () => {
  await sb.setTimeout(200000);
  const i = await sb.getInfo();
  assert.equal(i.metadata["a b"], "c d&=%");
  const left = i.endAt - Date.now();
  assert.ok(left > 100000 && left <= 200000, `${left} ms`);
  assert.equal(await sb.isRunning(), true);
  assert.ok(Array.isArray(await sb.getMetrics()));
});
await test("list by metadata, page by page", async () => {
  const ids = [];
  for (let i = 0; i < 3; i++)
    ids.push((await Sandbox.create({ metadata: { page: "p&q" } })).sandboxId);
  const p = Sandbox.list({ query: { metadata: { page: "p&q" } }, limit: 2 });
  const got = await p.nextItems();
  assert.equal(got.length, 2);
  assert.equal(p.hasNext, true);
  got.push(...(await p.nextItems()));
  assert.equal(p.hasNext, false);
  assert.deepEqual(got.map((s) => s.sandboxId).sort(), ids.sort());
  const none = Sandbox.list({ query: { metadata: { page: "other" } } });
  assert.deepEqual(await none.nextItems(), []);
  for (const id of ids) assert.equal(await Sandbox.kill(id), true);
});
await test("pause, connect: files and programs are still there", async () => {
  const h = await sb.commands.run("sleep 1000", { background: true });
  await sb.pause();
  assert.equal(await sb.isRunning(), false);
  const paused = Sandbox.list({ query: { state: ["paused"], metadata: { run: "1" } } });
  assert.ok((await paused.nextItems()).some((s) => s.sandboxId === sb.sandboxId));
  await assert.rejects(sb.commands.run("true"));
  const c = await Sandbox.connect(sb.sandboxId);
  assert.equal(await c.files.read("x/ü n.txt"), "hello");
  assert.ok((await c.commands.list()).some((p) => p.pid === h.pid));
  await c.commands.kill(h.pid);
});
await test("a sandbox whose time is over is killed", async () => {
  const s = await Sandbox.create({ timeoutMs: 1000 });
  await until("its end", async () => !(await s.isRunning()));
  await assert.rejects(Sandbox.connect(s.sandboxId), NotFoundError);
});
await test("or paused, and woken by traffic", async () => {
  const s = await Sandbox.create({
    timeoutMs: 1000,
    lifecycle: { onTimeout: "pause", autoResume: true },
  });
  await until("its pause", async () => (await s.getInfo()).state === "paused");
  assert.equal((await s.commands.run("echo awake")).stdout, "awake\n");
  await s.kill();
});
if (snaps === "1") {
  await test("snapshots: create, list, start from, delete", async () => {
    const s = await sb.createSnapshot();
    const l = await Sandbox.listSnapshots({ sandboxId: sb.sandboxId }).nextItems();
    assert.deepEqual(l.map((x) => x.snapshotId), [s.snapshotId]);
    await sb.files.write("x/ü n.txt", "later");
    const n = await Sandbox.create(s.snapshotId);
    assert.equal(await n.files.read("x/ü n.txt"), "hello");
    await n.kill();
    assert.equal(await Sandbox.deleteSnapshot(s.snapshotId), true);
    assert.equal(await Sandbox.deleteSnapshot(s.snapshotId), false);
  });
  if (typeof sb.fork === "function")
    await test("fork", async () => {
      const forks = [].concat(await sb.fork({ count: 2 }));
      for (const f of forks) {
        const s = f.sandbox ?? f;
        assert.equal(await s.files.read("x/ü n.txt"), "later");
        await s.kill();
      }
      assert.equal(forks.length, 2);
    });
  else skip("fork", "this version of the package has none");
} else {
  await test("snapshots: refused where the storage has none", async () => {
    await assert.rejects(sb.createSnapshot());
  });
}
await test("kill", async () => {
  assert.equal(await sb.kill(), true);
  assert.equal(await Sandbox.kill(sb.sandboxId), false);
  await assert.rejects(Sandbox.connect(sb.sandboxId), NotFoundError);
});
finish();
