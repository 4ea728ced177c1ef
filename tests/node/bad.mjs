// SPDX-License-Identifier: MIT
// Every field of every procedure with what does not belong there. The answer is always a Connect
// answer with a code that blames the caller, never a broken connection and never "internal";
// afterwards the host is as it was.
import assert from "node:assert/strict";
import fs from "node:fs";
import { gzipSync } from "node:zlib";
import { SandboxService } from "./gen/sandbox_pb.js";
import { env, local, raw } from "./client.mjs";
import { finish, test } from "./tap.mjs";

const long = "x".repeat(1 << 20);
const values = [
  null, true, false, 0, -1, 1.5, 1e30, -1e308, 9223372036854775807n, 18446744073709551616n,
  "", "a/b", "/", "/etc/passwd", "..", ".", "../../x", "a/../b", "a@b", "@", "-rf", "--help",
  "a b", "a\nb", "$(touch pwned)", "\u0001", "é", "a..b", "%s%n", "a\u0000b", long,
  [], [1], [[]], ["a", 1], {}, { a: 1 }, { a: { b: [] } }, { "": "" },
];
const strings = values.filter((v) => typeof v === "string");
// For lists and maps: every string as an element, a key and a value.
const large = {
  list: strings.map((v) => [v]),
  map: strings.flatMap((v) => [{ [v]: "x" }, { x: v }]),
};
const codes = {
  invalid_argument: 400,
  failed_precondition: 400,
  not_found: 404,
  already_exists: 409,
  resource_exhausted: 429,
  permission_denied: 403,
};

const text = (v) =>
  JSON.stringify(v, (_, x) => (typeof x === "bigint" ? { big: `${x}` } : x)).replace(
    /\{"big":"(\d+)"\}/g,
    "$1",
  );
const url = (m) => `/rpc.v1.SandboxService/${m.name}`;
const unary = { "Content-Type": "application/json" };

function envelope(data, flags = 0) {
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(data.length, 1);
  return Buffer.concat([head, data]);
}

// Sends the body to the method and gives {code, message} or {code: "ok"}.
async function call(m, body, headers = {}) {
  const stream = m.methodKind !== "unary";
  const data = Buffer.isBuffer(body) ? body : Buffer.from(body);
  // The follow-up of a stream that succeeds may be endless: the host is asked to end it soon, but
  // not before a long body has come.
  const soon = data.length > 65536 ? "3000" : "100";
  const r = await raw(url(m), {
    headers: {
      "Content-Type": stream ? "application/connect+json" : "application/json",
      "Connect-Timeout-Ms": m.name === "StreamEvents" ? soon : "5000",
      ...headers,
    },
    body: stream && !headers.Raw ? envelope(data) : data,
  });
  if (!stream) {
    if (r.status === 200) return { code: "ok" };
    const e = JSON.parse(r.body);
    assert.equal(codes[e.code] ?? r.status, r.status === 413 ? 429 : r.status, r.body.toString());
    return e;
  }
  assert.equal(r.status, 200);
  let at = 0;
  let last;
  while (at < r.body.length) {
    const len = r.body.readUInt32BE(at + 1);
    last = { flags: r.body[at], text: r.body.subarray(at + 5, at + 5 + len) };
    at += 5 + len;
  }
  assert.equal(last.flags & 2, 2, "the stream has no end");
  return JSON.parse(last.text).error ?? { code: "ok" };
}

// A request that is right, for the field that is not to be the only mistake.
function right(m) {
  const all = {
    SessionID: "bad",
    SnapshotID: "none",
    Name: "n",
    From: "none",
    Tag: "t",
    ProcessID: "proc-x-1",
    Binary: "/bin/true",
    ToolCallID: `c${Math.random()}`,
    ToolName: "bash",
    Params: { cmd: "true" },
    Resources: {},
    BaseSnapshot: env.SB_BASE,
  };
  const names = new Set(m.input.fields.map((f) => f.jsonName));
  const o = Object.fromEntries(Object.entries(all).filter(([k]) => names.has(k)));
  if (m.name === "CreateSession") delete o.SessionID;
  if (m.name === "StreamEvents" || m.name === "IssueSessionToken") o.SessionID = "bad";
  return o;
}

const harmful = new Set(["DestroySession"]);
const root = env.SB_ROOT;
const seen = () => fs.readdirSync(root).sort().join();
const before = seen();

await local.createSession({ sessionId: "bad", baseSnapshot: env.SB_BASE });
for (const m of SandboxService.methods) {
  if (m.input.fields.length === 0) continue;
  await test(`${m.name}: ${m.input.fields.map((f) => f.jsonName).join(", ")}`, async () => {
    const stream = m.methodKind !== "unary";
    for (const f of m.input.fields) {
      // Fields of a message inside one level down.
      const inner =
        f.message && f.message.typeName.startsWith("rpc.")
          ? f.message.fields.map((g) => g.jsonName)
          : [];
      for (const v of [...values, ...(large[f.fieldKind] ?? [])]) {
        const requests = [
          { ...right(m), [f.jsonName]: v },
          ...inner.map((g) => ({ ...right(m), [f.jsonName]: { [g]: v } })),
        ];
        // What a tool is told has no type in the .proto. A text would be run, so only what is none,
        // or too long.
        if (f.jsonName === "Params" && (typeof v !== "string" || v === long))
          requests.push(
            ...["cmd", "command", "timeout_ms"].map((g) => ({ ...right(m), Params: { [g]: v } })),
          );
        // A number that is right keeps everybody with a lower one out from then on.
        if (f.jsonName === "Fence" && typeof v === "bigint") continue;
        for (const q of requests) {
          if (harmful.has(m.name) && q.SessionID === "bad") q.SessionID = "missing";
          // A megabyte takes its time on a busy machine; it is refused, so no stream is waited for.
          const slow = v === long && f.jsonName.endsWith("ID");
          const e = await call(m, text(q), slow ? { "Connect-Timeout-Ms": "60000" } : {});
          // Events of a number that never was are lost, and endless streams end by their deadline.
          const more = stream
            ? ["ok", "deadline_exceeded", f.jsonName === "After" ? "data_loss" : "ok"]
            : ["ok"];
          assert.ok(
            e.code in codes || more.includes(e.code),
            `${f.jsonName} = ${text(v).slice(0, 60)}: ${JSON.stringify(e).slice(0, 300)}`,
          );
          if (slow) assert.equal(e.code, "invalid_argument");
        }
      }
    }
  });
}

await test("what is not a message at all", async () => {
  for (const m of SandboxService.methods) {
    const bodies = [
      "[]",
      "1",
      '"x"',
      "{",
      "nul",
      '{"SessionID":"bad"',
      "\xff\xfe",
      "[".repeat(100000),
      '{"a":'.repeat(5000),
      "{}{}",
      "\0",
    ];
    for (const body of bodies)
      assert.equal(
        (await call(m, Buffer.from(body, "latin1"))).code,
        "invalid_argument",
        `${m.name}: ${body.slice(0, 20)}`,
      );
    const many = `{"a":[${"0,".repeat(200000)}0]}`;
    assert.equal((await call(m, many)).code, "resource_exhausted");
  }
});

await test("envelopes that are none", async () => {
  for (const m of SandboxService.methods.filter((x) => x.methodKind !== "unary"))
    for (const body of [
      Buffer.alloc(0),
      Buffer.from([0]),
      Buffer.from([0, 255, 255, 255, 255]),
      Buffer.from([255, 0, 0, 0, 0]),
      envelope(Buffer.from("{}"), 1),
      envelope(Buffer.from("{}"), 2),
      Buffer.concat([envelope(Buffer.from("{}")), Buffer.from("x")]),
    ]) {
      const e = await call(m, body, { Raw: "1" });
      assert.ok(["invalid_argument", "resource_exhausted"].includes(e.code), JSON.stringify(e));
    }
});

await test("compressed nonsense and bombs", async () => {
  const m = SandboxService.method.getSession;
  const gz = { "Content-Encoding": "gzip" };
  assert.equal((await call(m, "not gzip", gz)).code, "invalid_argument");
  assert.equal((await call(m, gzipSync(Buffer.alloc(64 << 20)), gz)).code, "resource_exhausted");
  assert.equal((await call(m, gzipSync('{"SessionID":"none"}'), gz)).code, "not_found");
});

await test("too large a body is refused before it is sent", async () => {
  const r = await raw(url(SandboxService.method.getSession), {
    headers: { ...unary, "Content-Length": `${1 << 30}` },
  }).catch((e) => e);
  // The host answers and closes; a client that is still sending may see only the latter.
  assert.ok(r.status === 413 || r.code === "EPIPE" || r.code === "ECONNRESET", JSON.stringify(r));
});

await test("the host is as it was", async () => {
  const { sessions } = await local.listSessions({});
  for (const s of sessions) {
    assert.match(s.id, /^[A-Za-z0-9][A-Za-z0-9._-]*$/);
    await local.destroySession({ sessionId: s.id, force: true });
  }
  assert.equal((await local.listSessions({})).sessions.length, 0);
  assert.equal((await local.healthCheck({})).status, "healthy");
  assert.equal(seen(), before);
});
finish();
