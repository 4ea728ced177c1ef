// SPDX-License-Identifier: MIT
// Every procedure of the service, called by the real Connect client with code generated from
// doc/sandbox.proto.
import assert from "node:assert/strict";
import { Code } from "@connectrpc/connect";
import { SandboxService } from "./gen/sandbox_pb.js";
import { called, collect, env, fails, local, packed, raw, remote, zfs } from "./client.mjs";
import { finish, skip, test, until } from "./tap.mjs";

const base = { baseSnapshot: env.SB_BASE };
let n = 0;
const tool = (sessionId, toolName, params, more) => ({
  sessionId,
  toolCallId: `call-${++n}`,
  toolName,
  params,
  ...more,
});

await test("HealthCheck", async () => {
  const h = await local.healthCheck({});
  assert.equal(h.status, "healthy");
  assert.ok(h.uptime > 0n);
  assert.ok(h.poolSpace.size > 0n);
  assert.equal(h.poolState, zfs ? "ONLINE" : "");
  assert.match(h.version, /^\d+\.\d+/);
});

await test("GetCapabilities tells what the storage can", async () => {
  const { serverCapabilities: c } = await local.getCapabilities({});
  assert.deepEqual(
    [c.snapshots, c.rollback, c.fork, c.pause, c.streamingProgress],
    [zfs, zfs, zfs, true, true],
  );
  assert.equal(c.storage, env.SB_STORAGE);
});

await test("ListBases", async () => {
  const { bases } = await local.listBases({});
  assert.ok(bases.includes(env.SB_BASE), bases.join());
});

await test("Fence: who has a lower token than the host has seen changes nothing", async () => {
  await local.createSession({ ...base, sessionId: "fenced", fence: 6n });
  const old = { sessionId: "fenced", fence: 5n };
  await fails(local.pauseSession(old), Code.FailedPrecondition);
  await fails(local.destroySession(old), Code.FailedPrecondition);
  await fails(local.setLabels({ ...old, labels: { a: "b" } }), Code.FailedPrecondition);
  await fails(local.launchProcess({ ...old, binary: "true" }), Code.FailedPrecondition);
  const ls = tool("fenced", "ls", {}, { fence: 5n });
  await fails(local.executeTool(ls), Code.FailedPrecondition);
  await local.pauseSession({ sessionId: "fenced", fence: 7n });
  await fails(local.resumeSession({ sessionId: "fenced", fence: 6n }), Code.FailedPrecondition);
  assert.equal((await local.getSession({ sessionId: "fenced" })).session.state, "paused");
  await local.destroySession({ sessionId: "fenced", fence: 7n });
  await fails(local.createSession({ ...base, ...old }), Code.FailedPrecondition);
});

await test("HealthCheck and GetCapabilities tell how much fits", async () => {
  const h = await local.healthCheck({});
  assert.equal(h.maxSessions, 0n);
  assert.ok(h.cpus > 0n && h.memMb > 0n && h.memFreeMb > 0n);
  const { serverCapabilities: c } = await local.getCapabilities({});
  assert.equal(c.concurrentSessions, 0n);
  assert.equal(c.maxSessionDuration, 0n);
});

await test("ListTools, also by a session's own token", async () => {
  const { tools } = await local.listTools({});
  const bash = tools.find((t) => t.name === "bash");
  assert.deepEqual(bash.inputSchema.required, ["cmd"]);
  assert.equal(bash.inputSchema.additionalProperties, false);
  assert.ok(bash.description.length > 10);
  assert.equal(bash.readOnly, false);
  assert.equal(tools.find((t) => t.name === "grep").readOnly, true);
  await fails(local.listTools({ sessionId: "none" }), Code.NotFound);
});

await test("StreamEvents begins, then tells of a session's life", async () => {
  const stop = new AbortController();
  const kinds = [];
  let started;
  const ready = new Promise((r) => (started = r));
  const reading = (async () => {
    try {
      for await (const e of local.streamEvents({ kinds: ["session."] }, { signal: stop.signal })) {
        kinds.push(e.kind);
        if (e.kind === "stream.started") started();
        else assert.equal(e.sessionId, "ev");
        if (e.kind === "session.destroyed") return;
      }
    } catch (e) {
      started();
      throw e;
    }
  })();
  await ready;
  await local.createSession({ ...base, sessionId: "ev" });
  await local.destroySession({ sessionId: "ev" });
  await reading;
  assert.ok(kinds.includes("session.created"), kinds.join());
  stop.abort();
});

await test("CreateSession, with labels", async () => {
  const r = await local.createSession({
    ...base,
    sessionId: "one",
    labels: { team: "a", ünï: "✓" },
  });
  assert.equal(r.session.id, "one");
  assert.equal(r.session.state, "active");
  assert.deepEqual(r.session.labels, { team: "a", ünï: "✓" });
  assert.ok(Math.abs(Number(r.session.created.seconds) - Date.now() / 1000) < 60);
  assert.equal(r.serverCapabilities.snapshots, zfs);
  await fails(
    local.createSession({ ...base, sessionId: "one" }),
    Code.AlreadyExists,
    "SESSION_EXISTS",
  );
});

await test("a session without a name gets one nobody can guess", async () => {
  const a = await local.createSession(base);
  const b = await local.createSession(base);
  assert.notEqual(a.session.id, b.session.id);
  assert.ok(a.session.id.length >= 16, a.session.id);
  await local.destroySession({ sessionId: a.session.id });
  await local.destroySession({ sessionId: b.session.id });
});

await test("GetSession, by POST, GET and compressed", async () => {
  for (const c of [local, packed]) {
    const { session } = await c.getSession({ sessionId: "one", measure: true });
    assert.equal(session.id, "one");
    assert.equal(session.labels.team, "a");
    assert.equal(session.turnCount, 0n);
  }
  await fails(local.getSession({ sessionId: "none" }), Code.NotFound, "SESSION_NOT_FOUND");
  await fails(packed.getSession({ sessionId: "none" }), Code.NotFound, "SESSION_NOT_FOUND");
});

await test("SetLabels and ListSessions by label, state and page", async () => {
  for (const id of ["l1", "l2", "l3"]) await local.createSession({ ...base, sessionId: id });
  const { session } = await local.setLabels({ sessionId: "l1", labels: { x: "1" } });
  assert.deepEqual(session.labels, { x: "1" });
  await local.setLabels({ sessionId: "l2", labels: { x: "2" } });
  const ids = async (q) => (await local.listSessions(q)).sessions.map((s) => s.id);
  assert.deepEqual(await ids({ labels: { x: "" } }), ["l1", "l2"]);
  assert.deepEqual(await ids({ labels: { x: "2" } }), ["l2"]);
  assert.deepEqual(await ids({ states: ["paused"] }), []);
  const page = await local.listSessions({ limit: 2 });
  assert.equal(page.sessions.length, 2);
  const rest = await packed.listSessions({ after: page.nextAfter });
  assert.equal(rest.nextAfter, "");
  assert.deepEqual(
    [...page.sessions, ...rest.sessions].map((s) => s.id),
    await ids({}),
  );
  for (const id of ["l1", "l2", "l3"]) await local.destroySession({ sessionId: id });
});

await test("SetNetworkPolicy, and lists where nothing can enforce them", async () => {
  // The host of this test has runtime none: what it cannot enforce it refuses.
  const { serverCapabilities: c } = await local.getCapabilities({});
  assert.equal(c.networkLists, false);
  assert.match(c.networkWhy, /runtime none cannot enforce/);
  const policy = { sessionId: "one", allow: ["good.test"], deny: ["*:25"] };
  await fails(local.setNetworkPolicy(policy), Code.FailedPrecondition);
  await fails(local.setNetworkPolicy({ ...policy, allow: ["a/b"] }), Code.InvalidArgument);
  await fails(local.setNetworkPolicy({ ...policy, sessionId: "none" }), Code.NotFound);
  await fails(
    local.createSession({ ...base, sessionId: "listed", allow: ["good.test"] }),
    Code.FailedPrecondition,
  );
});

await test("ExecuteTool runs a command and answers its output and status", async () => {
  const r = await local.executeTool(tool("one", "bash", { cmd: "echo out; echo err >&2; exit 3" }));
  assert.match(r.content, /out/);
  assert.equal(r.exitCode, 3);
  assert.equal(r.isError, true);
  assert.ok(r.duration > 0n);
  assert.equal(r.contentBlocks.length, 0);
  const b = await local.executeTool(
    tool("one", "bash", { cmd: "echo blocks" }, { wantBlocks: true }),
  );
  assert.equal(b.content, "");
  assert.match(b.contentBlocks[0].text, /blocks/);
});

await test("ExecuteTool takes and gives large texts, whatever their bytes", async () => {
  const text = `zweite Zeile ✓ "quoted" \\ ${"x".repeat(100000)}`;
  const quoted = `'${text.replaceAll("'", "'\\''")}'`;
  for (const c of [local, packed]) {
    const r = await c.executeTool(
      tool("one", "bash", { cmd: `printf '%s\\n' ${quoted} >f.txt; cat f.txt` }),
    );
    assert.ok(r.content.includes(text));
  }
  const odd = await local.executeTool(tool("one", "bash", { cmd: "printf 'a\\377\\033b\\n'" }));
  assert.ok(odd.content.includes("a\ufffd"), JSON.stringify(odd.content));
});

await test("a repeated call gives the first result", async () => {
  const call = tool("one", "bash", { cmd: "date +%s%N; echo x >>twice" });
  const a = await local.executeTool(call);
  const b = await local.executeTool(call);
  assert.equal(a.replayed, false);
  assert.equal(b.replayed, true);
  assert.equal(a.content, b.content);
  const s = await collect(local.executeToolStream(call));
  assert.equal(s.length, 1);
  assert.equal(s[0].response.replayed, true);
  const lines = await local.executeTool(tool("one", "bash", { cmd: "wc -l <twice" }));
  assert.match(lines.content, /\b1\b/);
  await fails(local.executeTool({ ...call, params: { cmd: "true" } }), Code.InvalidArgument);
});

await test("the same call twice at once runs once", async () => {
  const call = tool("one", "bash", { cmd: "sleep 0.3; echo x >>atonce; wc -l <atonce" });
  const [a, b] = await Promise.all([local.executeTool(call), packed.executeTool(call)]);
  assert.equal(a.content, b.content);
  assert.notEqual(a.replayed, b.replayed);
});

await test("ExecuteToolStream gives progress as it comes, then the answer", async () => {
  const all = [];
  let early = false;
  const call = tool("one", "bash", {
    cmd: "echo first; until [ -e go ]; do sleep 0.02; done; echo ünï >&2",
  });
  for await (const m of local.executeToolStream(call)) {
    all.push(m);
    if (m.progress?.content.includes("first")) {
      early = true;
      await local.executeTool(tool("one", "bash", { cmd: "touch go" }));
    }
  }
  assert.ok(early);
  assert.ok(all.some((m) => m.progress?.isError && m.progress.content.includes("ünï")));
  assert.equal(all.at(-1).response.exitCode, 0);
  assert.equal(all.at(-1).response.toolCallId, call.toolCallId);
});

await test("a client that goes away ends its tool", async () => {
  const stop = new AbortController();
  const call = tool("one", "bash", { cmd: "echo $$ >pid; sleep 600" });
  const running = local.executeTool(call, { signal: stop.signal });
  running.catch(() => {});
  await until("the tool starts", async () => {
    const { session } = await local.getSession({ sessionId: "one" });
    return session.activeTools === 1;
  });
  stop.abort();
  await fails(running, Code.Canceled);
  await until("the tool ends", async () => {
    const { session } = await local.getSession({ sessionId: "one" });
    return session.activeTools === 0;
  });
});

await test("a deadline ends a tool", async () => {
  const e = await fails(
    local.executeTool(tool("one", "bash", { cmd: "sleep 600" }), { timeoutMs: 300 }),
    Code.DeadlineExceeded,
  );
  assert.ok(e);
  await until(
    "the tool ends",
    async () => (await local.getSession({ sessionId: "one" })).session.activeTools === 0,
  );
});

await test("unknown tools and bad parameters are invalid_argument or an error result", async () => {
  await fails(
    local.executeTool(tool("one", "no_such_tool", {})),
    Code.InvalidArgument,
    "TOOL_UNKNOWN",
  );
  await fails(
    local.executeTool({ sessionId: "one", toolName: "bash", params: {} }),
    Code.InvalidArgument,
    "INVAL",
    "ToolCallID",
  );
});

await test("PauseSession refuses tools, ResumeSession takes them again", async () => {
  await local.pauseSession({ sessionId: "one" });
  assert.equal((await local.getSession({ sessionId: "one" })).session.state, "paused");
  await fails(
    local.executeTool(tool("one", "bash", { cmd: "true" })),
    Code.FailedPrecondition,
    "SESSION_PAUSED",
  );
  await fails(local.pauseSession({ sessionId: "one" }), Code.FailedPrecondition, "SESSION_PAUSED");
  await local.resumeSession({ sessionId: "one" });
  await fails(local.resumeSession({ sessionId: "one" }), Code.FailedPrecondition, "INVALID_STATE");
  assert.equal((await local.executeTool(tool("one", "bash", { cmd: "true" }))).exitCode, 0);
});

let process1;
await test("LaunchProcess, GetProcessStatus, ListProcesses", async () => {
  const p = await local.launchProcess({
    sessionId: "one",
    binary: "/bin/sh",
    args: [
      "-c",
      'echo "$GREETING"; echo bad >&2; until [ -e end ]; do sleep 0.02; done; echo last; exit 7',
    ],
    env: { GREETING: "hallo ✓" },
  });
  process1 = p.processId;
  assert.match(p.processId, /^proc-/);
  const s = await local.getProcessStatus({ sessionId: "one", processId: p.processId });
  assert.equal(s.status, "running");
  assert.equal(s.exitCode, undefined);
  const { processes } = await local.listProcesses({ sessionId: "one" });
  assert.equal(processes.length, 1);
  assert.equal(processes[0].processId, p.processId);
  assert.ok(processes[0].started.seconds > 0n);
  await fails(
    local.getProcessStatus({ sessionId: "one", processId: "proc-x-1" }),
    Code.NotFound,
    "PROCESS_NOT_FOUND",
  );
});

await test("StreamProcessLogs follows until the process ends", async () => {
  const text = { stdout: "", stderr: "" };
  for await (const m of local.streamProcessLogs({
    sessionId: "one",
    processId: process1,
    follow: true,
  })) {
    text[m.stream] += Buffer.from(m.data).toString();
    if (text.stdout.includes("hallo") && text.stderr.includes("bad"))
      await local.executeTool(tool("one", "bash", { cmd: "touch end" }));
  }
  assert.deepEqual(text, { stdout: "hallo ✓\nlast\n", stderr: "bad\n" });
  const part = await collect(
    packed.streamProcessLogs({
      sessionId: "one",
      processId: process1,
      stream: "stderr",
      offset: 1n,
    }),
  );
  assert.equal(Buffer.concat(part.map((m) => m.data)).toString(), "ad\n");
  const s = await until("the end", async () => {
    const v = await local.getProcessStatus({ sessionId: "one", processId: process1 });
    return v.status === "exited" && v;
  });
  assert.equal(s.exitCode, 7);
});

await test("KillProcess", async () => {
  const p = await local.launchProcess({ sessionId: "one", binary: "/bin/sleep", args: ["600"] });
  await local.killProcess({ sessionId: "one", processId: p.processId, signal: 9 });
  const s = await until("the end", async () => {
    const v = await local.getProcessStatus({ sessionId: "one", processId: p.processId });
    return v.status === "exited" && v;
  });
  assert.equal(s.exitCode, 137);
  await local.killProcess({ sessionId: "one", processId: p.processId });
  await fails(local.launchProcess({ sessionId: "one" }), Code.InvalidArgument, "INVAL", "Binary");
  await fails(local.launchProcess({ sessionId: "one", binary: "/no/such/binary" }), Code.NotFound);
});

const paths = (r) => r.changes.map((c) => `${c.kind} ${c.path}`);
if (zfs) {
  await test("TurnComplete, CreateSnapshot, ListSnapshots", async () => {
    const t = await local.turnComplete({ sessionId: "one" });
    assert.deepEqual([t.snapshotId, t.turnNumber], ["turn-0001", 1n]);
    const s = await local.createSnapshot({ sessionId: "one", name: "mine" });
    assert.deepEqual([s.snapshotId, s.turnNumber], ["mine", 0n]);
    await fails(
      local.createSnapshot({ sessionId: "one", name: "mine" }),
      Code.AlreadyExists,
      "SNAPSHOT_EXISTS",
    );
    await fails(
      local.createSnapshot({ sessionId: "one", name: "turn-0009" }),
      Code.InvalidArgument,
    );
    const { snapshots } = await packed.listSnapshots({ sessionId: "one" });
    assert.deepEqual(
      snapshots.map((v) => [v.name, v.kind]),
      [
        ["turn-0001", "turn"],
        ["mine", "named"],
      ],
    );
    assert.match(snapshots[0].dataset, /\/one@turn-0001$/);
    assert.ok(snapshots[0].createdAt.seconds > 0n);
  });

  await test("DiffSnapshots lists what changed", async () => {
    await local.executeTool(
      tool("one", "bash", { cmd: "rm f.txt; echo new >n; printf x >$'bad\\377name'" }),
    );
    const d = await local.diffSnapshots({ sessionId: "one", from: "mine" });
    assert.ok(paths(d).includes("removed f.txt"), paths(d).join());
    assert.ok(paths(d).includes("added n"), paths(d).join());
    const odd = d.changes.find((c) => c.rawPath.length > 0);
    assert.deepEqual([...odd.rawPath], [...Buffer.from("bad\xffname", "latin1")]);
    const cut = await packed.diffSnapshots({ sessionId: "one", from: "mine", limit: 1 });
    assert.deepEqual([cut.changes.length, cut.more], [1, true]);
    assert.deepEqual(
      paths(await local.diffSnapshots({ sessionId: "one", from: "turn-0001", to: "mine" })),
      [],
    );
    await fails(
      local.diffSnapshots({ sessionId: "one", from: "none" }),
      Code.NotFound,
      "SNAPSHOT_NOT_FOUND",
    );
  });

  await test("Fork goes its own way", async () => {
    const { session } = await local.fork({
      sessionId: "one",
      snapshotId: "mine",
      newSessionId: "two",
      labels: { of: "one" },
    });
    assert.equal(session.id, "two");
    assert.equal(session.parent, "one@mine");
    const r = await local.executeTool(tool("two", "bash", { cmd: "cat f.txt; echo two >f.txt" }));
    assert.match(r.content, /zweite Zeile/);
    await fails(
      local.deleteSnapshot({ sessionId: "one", snapshotId: "mine" }),
      Code.FailedPrecondition,
      "SNAPSHOT_IN_USE",
    );
    await local.destroySession({ sessionId: "two" });
  });

  await test("HoldSnapshot, ReleaseSnapshot, DeleteSnapshot", async () => {
    await local.createSnapshot({ sessionId: "one", name: "held" });
    await local.holdSnapshot({ sessionId: "one", snapshotId: "held", tag: "keep" });
    await fails(
      local.deleteSnapshot({ sessionId: "one", snapshotId: "held" }),
      Code.FailedPrecondition,
      "SNAPSHOT_HELD",
    );
    await fails(
      local.destroySession({ sessionId: "one" }),
      Code.FailedPrecondition,
      "SNAPSHOT_HELD",
    );
    await fails(
      local.releaseSnapshot({ sessionId: "one", snapshotId: "held", tag: "no" }),
      Code.NotFound,
      "HOLD_NOT_FOUND",
    );
    await local.releaseSnapshot({ sessionId: "one", snapshotId: "held", tag: "keep" });
    await local.deleteSnapshot({ sessionId: "one", snapshotId: "held" });
    await fails(
      local.deleteSnapshot({ sessionId: "one", snapshotId: "held" }),
      Code.NotFound,
      "SNAPSHOT_NOT_FOUND",
    );
  });

  await test("RollbackSession puts everything back and forgets results", async () => {
    const call = tool("one", "bash", { cmd: "echo x >>count; wc -l <count" });
    await local.executeTool(call);
    await fails(
      local.rollbackSession({ sessionId: "one", snapshotId: "misspelt" }),
      Code.NotFound,
      "SNAPSHOT_NOT_FOUND",
    );
    assert.equal((await local.getSession({ sessionId: "one" })).session.state, "active");
    await local.executeTool(tool("one", "bash", { cmd: "rm -rf -- * .[!.]*" }));
    const back = await local.rollbackSession({
      sessionId: "one",
      snapshotId: "mine",
      dropLater: true,
    });
    assert.deepEqual([back.boxRestarted, back.kept], [false, 0n]);
    const line = (await local.listSnapshots({ sessionId: "one" })).snapshots;
    assert.deepEqual(
      line.filter((s) => s.current).map((s) => s.name),
      ["mine"],
    );
    assert.equal(line.at(-1).parent, line.at(-2)?.name ?? "");
    const r = await local.executeTool(tool("one", "bash", { cmd: "cat f.txt" }));
    assert.match(r.content, /zweite Zeile/);
    assert.equal((await local.executeTool(call)).replayed, false);
  });
} else {
  await test("TurnComplete does nothing, but knows its session", async () => {
    const t = await local.turnComplete({ sessionId: "one" });
    assert.deepEqual([t.snapshotId, t.turnNumber, t.spaceUsed], ["", 0n, 0n]);
    await fails(local.turnComplete({ sessionId: "none" }), Code.NotFound, "SESSION_NOT_FOUND");
  });

  await test("the other snapshot procedures say why not", async () => {
    const s = { sessionId: "one", snapshotId: "x" };
    const why = [Code.FailedPrecondition, "NO_SNAPSHOTS"];
    await fails(local.createSnapshot({ sessionId: "one", name: "x" }), ...why);
    await fails(local.listSnapshots(s), ...why);
    await fails(local.rollbackSession(s), ...why);
    await fails(local.diffSnapshots({ sessionId: "one", from: "x" }), ...why);
    await fails(local.fork(s), ...why);
    await fails(local.deleteSnapshot(s), ...why);
    await fails(local.holdSnapshot({ ...s, tag: "t" }), ...why);
    await fails(local.releaseSnapshot({ ...s, tag: "t" }), ...why);
    await fails(local.listSnapshots({ sessionId: "none" }), Code.NotFound, "SESSION_NOT_FOUND");
  });
}

await test("without a cold store nothing becomes cold", async () => {
  const why = [Code.FailedPrecondition, "UNSUPPORTED"];
  await fails(local.deepPauseSession({ sessionId: "one" }), ...why);
  await fails(local.deepResumeSession({ sessionId: "one" }), ...why);
  assert.equal((await local.getSession({ sessionId: "one" })).session.state, "active");
});

await test("TCP wants a token; roles hold", async () => {
  await fails(remote().getSession({ sessionId: "one" }), Code.Unauthenticated);
  await fails(
    remote("wrong-token-0123456789").getSession({ sessionId: "one" }),
    Code.Unauthenticated,
  );
  const admin = remote(env.SB_TOKEN);
  assert.equal((await admin.getSession({ sessionId: "one" })).session.id, "one");
  await admin.createSession({ ...base, sessionId: "three" });
});

await test("IssueSessionToken gives a token for one session only", async () => {
  const { token, expiresAt } = await local.issueSessionToken({
    sessionId: "one",
    ttl: 60_000_000_000n,
  });
  assert.ok(Number(expiresAt.seconds) > Date.now() / 1000);
  const one = remote(token);
  assert.equal((await one.getSession({ sessionId: "one" })).session.id, "one");
  assert.equal((await one.executeTool(tool("one", "bash", { cmd: "true" }))).exitCode, 0);
  await fails(one.getSession({ sessionId: "three" }), Code.PermissionDenied);
  await fails(one.listSessions({}), Code.PermissionDenied);
  await fails(one.createSession({ sessionId: "four" }), Code.PermissionDenied);
  await fails(one.issueSessionToken({ sessionId: "one" }), Code.PermissionDenied);
  await fails(collect(one.streamEvents({})), Code.InvalidArgument);
  await local.destroySession({ sessionId: "three" });
});

await test("tokens for SSH are made, listed and withdrawn", async () => {
  const sessionId = "one";
  const { token, access } = await local.createSshAccess({ sessionId, ttl: 60_000_000_000n });
  assert.match(token, /^ssh-[0-9a-f]{40}$/);
  assert.ok(Number(access.expiresAt.seconds) > Date.now() / 1000);
  const second = await local.createSshAccess({ sessionId });
  const ids = async () => (await local.listSshAccess({ sessionId })).accesses.map((a) => a.id);
  assert.deepEqual(await ids(), [access.id, second.access.id]);
  await fails(remote(token).getSession({ sessionId }), Code.Unauthenticated);
  await fails(local.revokeSshAccess({ sessionId, accessId: "0000000000000000" }), Code.NotFound);
  await local.revokeSshAccess({ sessionId, accessId: access.id });
  assert.deepEqual(await ids(), [second.access.id]);
  await local.revokeSshAccess({ sessionId });
  assert.deepEqual(await ids(), []);
  const { token: own } = await local.issueSessionToken({ sessionId });
  await fails(remote(own).createSshAccess({ sessionId }), Code.PermissionDenied);
});

await test("/health and /metrics", async () => {
  const h = await raw("/health", { method: "GET" });
  assert.deepEqual([h.status, h.body.toString()], [200, "ok\n"]);
  const m = (await raw("/metrics", { method: "GET" })).body.toString();
  for (const line of [
    /^sbhostd_sessions\{state="active"\} 1$/m,
    /^sbhostd_sessions_created_total [1-9]/m,
    /^sbhostd_tool_executions_total [1-9]/m,
    /^sbhostd_rpc_requests_total\{method="GetSession",code="not_found"\} [1-9]/m,
    /^sbhostd_rpc_duration_seconds_bucket\{method="ExecuteTool",le="\+Inf"\} [1-9]/m,
    /^sbhostd_storage_capacity_ratio 0\.\d/m,
  ])
    assert.match(m, line);
});

await test("DestroySession ends everything in it", async () => {
  await local.launchProcess({ sessionId: "one", binary: "/bin/sleep", args: ["600"] });
  await local.destroySession({ sessionId: "one" });
  await fails(local.getSession({ sessionId: "one" }), Code.NotFound);
  assert.equal((await local.listSessions({})).sessions.length, 0);
});

await test("every procedure was called", () => {
  const all = SandboxService.methods.map((m) => m.name).sort();
  assert.deepEqual([...called].sort(), all);
});
if (!zfs) skip("snapshots that work", "local-disk has none; the run on zfs has them");
finish();
