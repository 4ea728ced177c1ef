// SPDX-License-Identifier: MIT
// Each method of the vendor's package that the host can serve, by the package itself. argv: the
// folder of its node_modules, the package's name there, whether the storage has snapshots (1 or 0).
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { test, skip, finish, until } from "../node/tap.mjs";

const [, , modules, name, snaps] = process.argv;
const require = createRequire(`${modules}/x.js`);
const { Daytona, DaytonaNotFoundError, DaytonaError } = require(name);
const scratch = mkdtempSync(`${tmpdir()}/daytona-`);
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }));
const daytona = new Daytona();
const HOME = "/home/daytona";

let sb;
await test("create", async () => {
  sb = await daytona.create({
    name: "first",
    envVars: { FOO: "bar" },
    labels: { "a b": "c&=", run: "1" },
    autoStopInterval: 30,
  });
  assert.match(sb.id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.deepEqual([sb.state, sb.name, sb.autoStopInterval], ["started", "first", 30]);
  assert.equal(sb.labels["a b"], "c&=");
  assert.ok(sb.cpu >= 1 && sb.memory > 0 && sb.disk > 0);
  await assert.rejects(daytona.create({ name: "first" }), (e) => e.statusCode === 409);
  await assert.rejects(daytona.create({ image: "debian:12" }), /builds no images/);
  await assert.rejects(daytona.create({ snapshot: "none-of-that-name" }), /not found/);
  await assert.rejects(daytona.create({ resources: { gpu: 1 } }), /gpu/);
});
await test("get by id and by name; what is not there", async () => {
  assert.equal((await daytona.get(sb.id)).name, "first");
  assert.equal((await daytona.get("first")).id, sb.id);
  await assert.rejects(daytona.get("nobody"), DaytonaNotFoundError);
});
await test("process.executeCommand: output, environment, directory, codes", async () => {
  let r = await sb.process.executeCommand("echo $FOO $X; pwd; echo no >&2", undefined, { X: "y" });
  assert.deepEqual([r.result, r.exitCode], [`bar y\n${HOME}\nno\n`, 0]);
  r = await sb.process.executeCommand("pwd; exit 3", "/tmp");
  assert.deepEqual([r.result, r.exitCode], ["/tmp\n", 3]);
  r = await sb.process.executeCommand("if [", "");
  assert.ok(r.exitCode !== 0 && /syntax/.test(r.result), JSON.stringify(r));
  r = await sb.process.executeCommand("kill -9 $$");
  assert.equal(r.exitCode, 137);
  r = await sb.process.executeCommand("head -c 3000000 /dev/zero | tr '\\0' x");
  assert.equal(r.result.length, 3000000);
  await assert.rejects(sb.process.executeCommand("true", "/nope"));
});
await test("process.executeCommand: its time is over", async () => {
  await assert.rejects(sb.process.executeCommand("sleep 60", undefined, undefined, 1), (e) => {
    return e.statusCode === 408;
  });
  await until("the program is gone", async () => {
    return (await sb.process.executeCommand("pgrep -x sleep")).exitCode !== 0;
  });
});
await test("process.codeRun", async () => {
  const r = await sb.process.codeRun("import sys, os\nprint(sys.argv[1], os.environ['Q'])", {
    argv: ["one"],
    env: { Q: "two" },
  });
  assert.deepEqual([r.exitCode, r.result], [0, "one two\n"]);
  assert.equal((await sb.process.codeRun("raise SystemExit(4)")).exitCode, 4);
});
await test("fs: upload, download, one and many", async () => {
  await sb.fs.uploadFile(Buffer.from("hello"), "x/ü n.txt");
  assert.equal((await sb.fs.downloadFile("x/ü n.txt")).toString(), "hello");
  assert.equal((await sb.fs.downloadFile(`${HOME}/x/ü n.txt`)).toString(), "hello");
  const big = Buffer.alloc(3 << 20, "abcdefgh");
  writeFileSync(`${scratch}/local`, big);
  await sb.fs.uploadFiles([
    { source: `${scratch}/local`, destination: "m/big" },
    { source: Buffer.from("2"), destination: "/tmp/two" },
  ]);
  await sb.fs.downloadFile("m/big", `${scratch}/back`);
  assert.ok(big.equals(readFileSync(`${scratch}/back`)));
  const l = await sb.fs.downloadFiles([{ source: "/tmp/two" }, { source: "nope" }]);
  assert.equal(l[0].result.toString(), "2");
  assert.ok(l[1].error && l[1].errorDetails.code === "FILE_NOT_FOUND", JSON.stringify(l[1]));
  await sb.fs.uploadFile(Buffer.alloc(0), "empty");
  await assert.rejects(sb.fs.downloadFile("no"), DaytonaNotFoundError);
  await assert.rejects(sb.fs.uploadFile(Buffer.from("x"), "/usr/x"));
});
await test("fs: listFiles, getFileDetails, createFolder, permissions, move, delete", async () => {
  await sb.fs.createFolder("d/e", "700");
  const i = await sb.fs.getFileDetails("d/e");
  assert.deepEqual([i.name, i.isDir, i.permissions], ["e", true, "0700"]);
  await sb.fs.uploadFile(Buffer.from("123"), "d/f");
  const names = (await sb.fs.listFiles("d")).map((e) => [e.name, e.isDir, e.size > 0]);
  assert.deepEqual(names.map((e) => e[0]).sort(), ["e", "f"]);
  await sb.fs.setFilePermissions("d/f", { mode: "600", owner: "root", group: "root" });
  assert.equal((await sb.fs.getFileDetails("d/f")).mode, "-rw-------");
  await assert.rejects(sb.fs.setFilePermissions("d/f", { owner: "www-data" }));
  await sb.fs.moveFiles("d/f", "new/g");
  assert.equal((await sb.fs.downloadFile("new/g")).toString(), "123");
  await assert.rejects(sb.fs.moveFiles("nothing", "x"), DaytonaNotFoundError);
  await assert.rejects(sb.fs.deleteFile("d"), /recursive/);
  await sb.fs.deleteFile("d", true);
  await assert.rejects(sb.fs.getFileDetails("d"), DaytonaNotFoundError);
  await assert.rejects(sb.fs.listFiles("nope"), DaytonaNotFoundError);
});
await test("fs: searchFiles, findFiles, replaceInFiles", async () => {
  await sb.fs.uploadFile(Buffer.from("one\ntwo: needle\nthree needle\n"), "s/a.txt");
  await sb.fs.uploadFile(Buffer.from("nothing"), "s/deep/b.txt");
  const s = await sb.fs.searchFiles("s", "*.txt");
  assert.deepEqual(s.files.sort(), [`${HOME}/s/a.txt`, `${HOME}/s/deep/b.txt`]);
  assert.deepEqual(await sb.fs.findFiles("s", "needle"), [
    { file: `${HOME}/s/a.txt`, line: 2, content: "two: needle" },
    { file: `${HOME}/s/a.txt`, line: 3, content: "three needle" },
  ]);
  assert.deepEqual(await sb.fs.findFiles("s", "-rf /"), []);
  const r = await sb.fs.replaceInFiles(["s/a.txt", "s/no"], "needle", "pin");
  assert.deepEqual(r.map((x) => x.success), [true, false]);
  assert.equal((await sb.fs.downloadFile("s/a.txt")).toString(), "one\ntwo: pin\nthree pin\n");
});
await test("home and work directory", async () => {
  assert.equal(await sb.getUserHomeDir(), HOME);
  assert.equal(await sb.getWorkDir(), HOME);
});
await test("signed addresses of files", async () => {
  if (!sb.uploadUrl) return;
  const form = new FormData();
  form.append("file", new Blob(["by url"]), "signed");
  const up = await sb.uploadUrl("signed", 60);
  assert.equal((await fetch(up, { method: "POST", body: form })).status, 200);
  const down = await sb.downloadUrl("signed", 60);
  assert.equal(await (await fetch(down)).text(), "by url");
  const u = new URL(down);
  u.searchParams.set("path", "s/a.txt");
  assert.equal((await fetch(u)).status, 401);
  const late = new URL(down);
  late.searchParams.set("expires", "1");
  assert.equal((await fetch(late)).status, 401);
  await sb.rotateSigningKey();
  assert.equal((await fetch(down)).status, 401);
});
await test("labels, intervals, activity", async () => {
  assert.deepEqual(await sb.setLabels({ run: "2", "x y": "ü" }), { run: "2", "x y": "ü" });
  await sb.setAutostopInterval(7);
  await sb.setAutoArchiveInterval(8);
  await sb.setAutoDeleteInterval(9);
  await sb.refreshActivity();
  await sb.refreshData();
  assert.deepEqual(
    [sb.autoStopInterval, sb.autoArchiveInterval, sb.autoDeleteInterval, sb.labels["x y"]],
    [7, 8, 9, "ü"],
  );
  await sb.setTtl(60);
  await sb.refreshData();
  const left = new Date(sb.autoDestroyAt) - Date.now();
  assert.ok(left > 0 && left <= 3600000, `${left}`);
  await sb.setTtl(0);
  await sb.setAutoDeleteInterval(-1);
});
await test("list by labels and states, page by page", async () => {
  const made = await Promise.all(
    [1, 2, 3].map((i) => daytona.create({ name: `page ${i}`, labels: { page: "p&q" } })),
  );
  const got = [];
  for await (const s of daytona.list({ labels: { page: "p&q" }, limit: 2 })) got.push(s);
  assert.deepEqual(got.map((s) => s.id).sort(), made.map((s) => s.id).sort());
  const byName = [];
  for await (const s of daytona.list({ name: "page", sort: "name", order: "asc", limit: 1 }))
    byName.push(s.name);
  assert.deepEqual(byName, ["page 1", "page 2", "page 3"]);
  await made[0].stop();
  const off = [];
  for await (const s of daytona.list({ states: ["stopped", "archived"] })) off.push(s.id);
  assert.deepEqual(off, [made[0].id]);
  for (const s of made) await s.delete();
});
await test("sessions: one shell, commands one after the other", async () => {
  await sb.process.createSession("s1");
  await assert.rejects(sb.process.createSession("s1"), (e) => e.statusCode === 409);
  const run = (command, more) => sb.process.executeSessionCommand("s1", { command, ...more });
  let r = await run("cd /tmp && export V=here; echo out; echo err >&2; (exit 3)");
  assert.deepEqual([r.exitCode, r.stdout, r.stderr], [3, "out\n", "err\n"]);
  r = await run("pwd; echo $V");
  assert.deepEqual([r.exitCode, r.stdout], [0, "/tmp\nhere\n"]);
  assert.ok((await run("if [")).exitCode !== 0);
  assert.equal((await run("cat <<'E'\na ' \" $x\nE")).stdout, "a ' \" $x\n");
  const s = await sb.process.getSession("s1");
  assert.deepEqual([s.sessionId, s.commands.length, s.commands[0].exitCode], ["s1", 4, 3]);
  assert.ok((await sb.process.listSessions()).some((x) => x.sessionId === "s1"));
  r = await run("exit 5");
  assert.equal(r.exitCode, 5);
  await assert.rejects(run("true"), (e) => e.statusCode === 410);
  await sb.process.deleteSession("s1");
  await assert.rejects(sb.process.getSession("s1"), DaytonaNotFoundError);
});
await test("sessions: asynchronous, logs as they come, input", async () => {
  await sb.process.createSession("s2");
  const c = await sb.process.executeSessionCommand("s2", {
    command: "echo one; echo bad >&2; read x; echo got $x; exit 7",
    runAsync: true,
    suppressInputEcho: true,
  });
  let out = "", bad = "";
  const logs = sb.process.getSessionCommandLogs(
    "s2", c.cmdId, (d) => (out += d), (d) => (bad += d));
  await until("output", () => out === "one\n" && bad === "bad\n");
  assert.equal((await sb.process.getSessionCommand("s2", c.cmdId)).exitCode, undefined);
  await sb.process.sendSessionCommandInput("s2", c.cmdId, "it\n");
  await logs;
  assert.equal(out, "one\ngot it\n");
  const end = await sb.process.getSessionCommand("s2", c.cmdId);
  assert.equal(end.exitCode, 7);
  assert.equal((await sb.process.getSessionCommandLogs("s2", c.cmdId)).stdout, out);
  await assert.rejects(sb.process.getSessionCommandLogs("s2", "nope"), DaytonaNotFoundError);
  await assert.rejects(sb.process.sendSessionCommandInput("s2", c.cmdId, "x"));
  await sb.process.deleteSession("s2");
});
await test("pty: create, input, resize, exit code, envs", async () => {
  let out = "";
  const dec = new TextDecoder();
  const h = await sb.process.createPty({
    id: "t1", cols: 90, rows: 30, cwd: "/tmp", envs: { PV: "pty" },
    onData: (d) => (out += dec.decode(d)),
  });
  await h.resize(100, 40);
  const i = await sb.process.getPtySessionInfo("t1");
  assert.deepEqual([i.cols, i.rows, i.active, i.envs.PV], [100, 40, true, "pty"]);
  await h.sendInput("stty size; pwd; echo $PV-; exit 5\n");
  const end = await h.wait();
  assert.equal(end.exitCode, 5);
  assert.match(out, /40 100\r\n\/tmp\r\npty-/);
  await assert.rejects(sb.process.getPtySessionInfo("t1"), DaytonaNotFoundError);
});
await test("pty: leave and join, list, kill", async () => {
  const a = await sb.process.createPty({ id: "t2", onData: () => {} });
  await a.sendInput("K=kept\n");
  await a.disconnect();
  let out = "";
  const b = await sb.process.connectPty("t2", { onData: (d) => (out += Buffer.from(d)) });
  await b.sendInput("echo $K-\n");
  await until("an echo", () => out.includes("kept-"));
  assert.deepEqual((await sb.process.listPtySessions()).map((x) => x.id), ["t2"]);
  await assert.rejects(sb.process.createPty({ id: "t2", onData: () => {} }), /exists/);
  await b.kill();
  await b.wait();
  assert.deepEqual(await sb.process.listPtySessions(), []);
  await assert.rejects(sb.process.connectPty("t2", { onData: () => {} }), /not found/);
});
await test("git: a repository from init to push and clone", async () => {
  const g = sb.git, repo = "repo";
  await sb.process.executeCommand("git init -q --bare /home/daytona/far.git -b main");
  if (g.init) await g.init(repo, false, "main");
  else await sb.process.executeCommand("git init -q -b main repo");
  await sb.fs.uploadFile(Buffer.from("1\n"), "repo/a ü");
  let s = await g.status(repo);
  assert.deepEqual(s.fileStatus.map((f) => [f.name, f.worktree]), [["a ü", "Untracked"]]);
  await g.add(repo, ["."]);
  const c = await g.commit(repo, "first\n\nbody", "Me", "me@x");
  assert.match(c.sha, /^[0-9a-f]{40}$/);
  await assert.rejects(g.commit(repo, "nothing", "Me", "me@x"), /nothing to commit/);
  await g.createBranch(repo, "side");
  await assert.rejects(g.createBranch(repo, "side"), (e) => e.statusCode === 409);
  await g.checkoutBranch(repo, "side");
  assert.equal((await g.status(repo)).currentBranch, "side");
  await g.checkoutBranch(repo, "main");
  assert.deepEqual((await g.branches(repo)).branches.sort(), ["main", "side"]);
  await g.deleteBranch(repo, "side");
  await sb.process.executeCommand("git -C repo remote add origin /home/daytona/far.git");
  await sb.process.executeCommand("git -C repo push -q -u origin main");
  await sb.fs.uploadFile(Buffer.from("2\n"), "repo/a ü");
  await g.add(repo, ["a ü"]);
  await g.commit(repo, "second", "Me", "me@x");
  s = await g.status(repo);
  assert.deepEqual([s.ahead, s.behind, s.branchPublished], [1, 0, true]);
  await g.push(repo);
  await g.clone("/home/daytona/far.git", "copy", "main");
  assert.equal((await sb.fs.downloadFile("copy/a ü")).toString(), "2\n");
  await g.pull("copy");
  await assert.rejects(g.status("/tmp"), /not a git repository/);
  await assert.rejects(g.clone("/nowhere", "copy2"));
  if (!g.init) return;
  assert.equal(await g.remoteGet(repo, "origin"), "/home/daytona/far.git");
  await g.remoteAdd(repo, "other", "/x");
  assert.equal((await g.remotes(repo)).remotes.length, 2);
  await g.setConfig("a.b", "v w", "local", repo);
  assert.equal(await g.getConfig("a.b", "local", repo), "v w");
  assert.equal(await g.getConfig("a.none", "local", repo), undefined);
  await g.configureUser("N", "n@x", "local", repo);
  await sb.fs.uploadFile(Buffer.from("3\n"), "repo/a ü");
  await g.restore(repo, ["a ü"]);
  assert.equal((await sb.fs.downloadFile("repo/a ü")).toString(), "2\n");
  await g.reset(repo, "hard", "HEAD~1");
  assert.equal((await sb.fs.downloadFile("repo/a ü")).toString(), "1\n");
});
await test("ports: preview with a token, signed, public", async () => {
  await sb.fs.uploadFile(Buffer.from(`
import http.server, json
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        n = int(self.headers.get("Content-Length") or 0)
        chunks = b""
        while self.headers.get("Transfer-Encoding") == "chunked":
            size = int(self.rfile.readline(), 16)
            chunks += self.rfile.read(size)
            self.rfile.readline()
            if size == 0:
                break
        body = self.rfile.read(n) + chunks
        seen = {k.lower(): v for k, v in self.headers.items()}
        out = json.dumps({"verb": self.command, "path": self.path, "headers": seen,
            "body": len(body)}).encode()
        self.send_response(418)
        self.send_header("X-Own", "yes")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(out)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(out)
    do_POST = do_PUT = do_HEAD = do_GET
http.server.ThreadingHTTPServer(("127.0.0.1", 8123), H).serve_forever()
`), "serve.py");
  await sb.process.createSession("srv");
  await sb.process.executeSessionCommand("srv", { command: "python3 serve.py", runAsync: true });
  const p = await sb.getPreviewLink(8123);
  const auth = { "X-Daytona-Preview-Token": p.token };
  await until("an answer", async () => (await fetch(p.url, { headers: auth })).status === 418);
  let r = await fetch(`${p.url}a%20b/c?x=1`, {
    method: "POST", body: Buffer.alloc(100000), headers: { ...auth, "X-Mine": "1" },
  });
  let o = await r.json();
  assert.deepEqual([r.status, r.headers.get("x-own")], [418, "yes"]);
  assert.deepEqual([o.verb, o.path, o.body, o.headers["x-mine"]],
    ["POST", "/a%20b/c?x=1", 100000, "1"]);
  assert.equal(o.headers["x-daytona-preview-token"], undefined);
  const stream = new ReadableStream({ start(c) { c.enqueue(Buffer.alloc(9)); c.close(); } });
  r = await fetch(p.url, { method: "PUT", body: stream, duplex: "half", headers: auth });
  assert.equal((await r.json()).body, 9);
  assert.equal((await fetch(p.url, { method: "HEAD", headers: auth })).headers.get("x-own"), "yes");
  r = await fetch(`${p.url}?q=2&DAYTONA_SANDBOX_AUTH_KEY=${p.token}`);
  o = await r.json();
  assert.equal(o.path, "/?q=2");
  const cookie = r.headers.get("set-cookie").split(";")[0];
  r = await fetch(p.url, { headers: { Cookie: `own=1; ${cookie}` } });
  assert.equal((await r.json()).headers.cookie, "own=1");
  r = await fetch(p.url, {
    headers: { Authorization: `Bearer ${process.env.DAYTONA_API_KEY}` },
  });
  assert.equal((await r.json()).headers.authorization, undefined);
  assert.equal((await fetch(p.url)).status, 401);
  assert.equal((await fetch(p.url.replace("8123", "8124"), { headers: auth })).status, 502);
  const s = await sb.getSignedPreviewUrl(8123, 60);
  assert.equal((await fetch(s.url)).status, 418);
  assert.equal((await fetch(s.url.replace("8123", "8124"))).status, 401);
  await sb.expireSignedPreviewUrl(8123, s.token);
  assert.equal((await fetch(s.url)).status, 401);
  const ports = await fetch(`${sb.toolboxProxyUrl}/${sb.id}/port`, {
    headers: { Authorization: `Bearer ${process.env.DAYTONA_API_KEY}` },
  });
  assert.ok((await ports.json()).ports.includes(8123));
  await sb.process.deleteSession("srv");
});
await test("ssh access: create, validate, revoke", async () => {
  const a = await sb.createSshAccess(10);
  assert.match(a.token, /^[A-Za-z0-9]{32}$/);
  assert.equal(a.sshCommand, `ssh -p 2222 ${a.token}@gate.example`);
  const left = new Date(a.expiresAt) - Date.now();
  assert.ok(left > 0 && left <= 600000, `${left}`);
  assert.deepEqual(await sb.validateSshAccess(a.token), { valid: true, sandboxId: sb.id });
  const b = await sb.createSshAccess();
  assert.equal((await sb.validateSshAccess(a.token)).valid, false);
  await sb.revokeSshAccess(b.token);
  assert.equal((await sb.validateSshAccess(b.token)).valid, false);
});
await test("stop ends programs and keeps files; start; archive", async () => {
  await sb.process.executeCommand("(sleep 1000 &) >/dev/null 2>&1; echo kept >stays");
  await sb.stop();
  assert.equal(sb.state, "stopped");
  await assert.rejects(sb.process.executeCommand("true"), /not started/);
  await sb.archive();
  assert.equal(sb.state, "archived");
  await sb.start();
  assert.equal(sb.state, "started");
  assert.equal((await sb.fs.downloadFile("stays")).toString(), "kept\n");
  assert.notEqual((await sb.process.executeCommand("pgrep -x sleep")).exitCode, 0);
});
await test("pause keeps programs", async () => {
  await sb.process.executeCommand("(sleep 1000 &) >/dev/null 2>&1");
  await sb.pause();
  assert.equal(sb.state, "paused");
  await sb.start();
  assert.equal((await sb.process.executeCommand("pgrep -x sleep")).exitCode, 0);
});
await test("one that is deleted when it stops", async () => {
  const e = await daytona.create({ ephemeral: true });
  await e.stop();
  await until("its end", async () => {
    return daytona.get(e.id).then(() => false, (x) => x instanceof DaytonaNotFoundError);
  });
});
await test("events come by the socket", async () => {
  const seen = [];
  const watched = await daytona.get(sb.id);
  await sb.stop();
  await until("an event", () => watched.state === "stopped");
  await sb.start();
  await until("an event", () => watched.state === "started");
});
if (snaps === "1") {
  await test("fork: files, labels; where it comes from", async () => {
    const f = await sb.fork({ name: "the fork" });
    assert.equal((await f.fs.downloadFile("stays")).toString(), "kept\n");
    assert.equal(f.labels.run, "2");
    await f.fs.uploadFile(Buffer.from("mine"), "stays");
    assert.equal((await sb.fs.downloadFile("stays")).toString(), "kept\n");
    await f.delete();
  });
  await test("snapshots: of a sandbox, list, start from, delete", async () => {
    await sb.createSnapshot("snap one");
    await assert.rejects(sb.createSnapshot("snap one"), (e) => e.statusCode === 409);
    await sb.fs.uploadFile(Buffer.from("later"), "stays");
    const l = await daytona.snapshot.list();
    assert.deepEqual(l.items.filter((x) => !x.general).map((x) => x.name), ["snap one"]);
    const s = await daytona.snapshot.get("snap one");
    assert.equal(s.state, "active");
    const n = await daytona.create({ snapshot: "snap one" });
    assert.equal(n.snapshot, "snap one");
    assert.equal((await n.fs.downloadFile("stays")).toString(), "kept\n");
    await n.delete();
    const seen = [];
    for await (const x of daytona.list()) seen.push(x.name);
    assert.ok(!seen.includes("snap one"));
    await daytona.snapshot.delete(s);
    await assert.rejects(daytona.snapshot.get("snap one"), DaytonaNotFoundError);
  });
} else {
  skip("fork, snapshots", "the storage has no snapshots");
  await test("a fork is refused", async () => {
    await assert.rejects(sb.fork(), (e) => e.statusCode === 422);
  });
}
await test("what is not served is said so", async () => {
  await assert.rejects(sb.resize({ cpu: 2 }), (e) => e.statusCode === 422);
  await assert.rejects(daytona.volume.list(), (e) => e.statusCode === 501);
  const no = { volumes: [{ volumeId: "v", mountPath: "/v" }] };
  await assert.rejects(daytona.create(no), /volumes/);
});
await test("delete", async () => {
  await sb.delete();
  await assert.rejects(daytona.get(sb.id), DaytonaNotFoundError);
  await assert.rejects(sb.process.executeCommand("true"), DaytonaNotFoundError);
});
await test("a script ends when it is done", async () => {
  const r = spawnSync(process.execPath, ["-e", `
    const { Daytona } = require("${modules}/node_modules/${name}");
    (async () => {
      const d = new Daytona();
      const s = await d.create();
      console.log((await s.process.executeCommand("echo done")).result);
      await s.delete();
    })();`], { timeout: 25000, encoding: "utf8" });
  assert.deepEqual([r.status, r.stdout], [0, "done\n\n"], r.stderr);
});
finish();
