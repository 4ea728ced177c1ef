// SPDX-License-Identifier: MIT
// The TypeScript client against a real host; prints one line for each thing that held.
import { ConnectError, SandboxHost, type Session } from "sbsync-client";

const host = new SandboxHost();
const bad = new SandboxHost({ address: "unix:/nowhere/sock" });

async function fails(what: Promise<unknown>): Promise<string> {
	try {
		await what;
		return "no error";
	} catch (e) {
		if (!(e instanceof ConnectError)) return String(e);
		return `${e.code} ${e.reason} ${e.field}`.trim();
	}
}

const made = await host.createSession({ SessionID: "ts", Empty: true, Labels: { a: "b" } });
const session: Session = made.Session!;
console.log("session", session.ID, session.State, session.Labels.a);

const cmd = 'echo "out\ntwo"; echo err >&2';
const call = { SessionID: "ts", ToolName: "bash", Params: { cmd } };
const done = await host.executeTool(call);
console.log("tool", done.ExitCode, done.Content.split("\n")[0], done.Content.includes("err"));

let out = "", code: number | null | undefined = -1;
for await (const m of host.executeToolStream(call)) {
	if (m.Progress) out += m.Progress.Content;
	if (m.Response) code = m.Response.ExitCode;
}
console.log("stream", code, JSON.stringify(out.split("\n").sort().join(" ").trim()));

console.log("fails", await fails(host.getSession({ SessionID: "none" })));
console.log("fails", await fails(host.createSession({ SessionID: "../x" })));
console.log("fails", await fails(host.createSession({ Quota: "many" })));
console.log("fails", (await fails(bad.healthCheck())).split(" ")[0]);

// An aborted call ends in the host, too.
const abort = new AbortController();
const slow = { SessionID: "ts", ToolName: "bash", Params: { cmd: "echo $$ >pid; sleep 600" } };
const hangs = fails(host.executeTool(slow, { signal: abort.signal }));
for (;;) {
	const s = await host.getSession({ SessionID: "ts" });
	if (s.Session!.ActiveTools > 0) break;
}
abort.abort();
console.log("abort", await hangs);
for (;;) {
	const s = await host.getSession({ SessionID: "ts" });
	if (s.Session!.ActiveTools === 0) break;
}
console.log("ended in the host");
console.log("timeout", await fails(host.executeTool(slow, { timeoutMs: 200 })));

// Leaving the loop of a stream ends it.
const events = host.streamEvents({});
for await (const e of events) {
	console.log("event", e.Kind);
	break;
}
const big = await host.executeTool({
	SessionID: "ts", ToolName: "bash", Params: { cmd: "head -c 200000 /dev/zero | tr '\\0' x" },
});
console.log("big", big.Content.length >= 200000);
await host.destroySession({ SessionID: "ts" });
console.log("left", (await host.listSessions({})).Sessions.length);
host.close();
