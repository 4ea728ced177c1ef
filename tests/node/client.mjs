// SPDX-License-Identifier: MIT
// Clients of the host under test, which the environment names:
//   SB_SOCKET  path of its unix socket
//   SB_URL, SB_TOKEN  its TCP address and an admin's token
//   SB_STORAGE  zfs or local-disk; SB_BASE  a base image
import assert from "node:assert/strict";
import http from "node:http";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { compressionGzip, createConnectTransport } from "@connectrpc/connect-node";
import { ErrorInfoSchema, SandboxService } from "./gen/sandbox_pb.js";

export const env = process.env;
export const zfs = env.SB_STORAGE === "zfs";
// Every method that some client called.
export const called = new Set();

const note = (next) => (req) => {
  called.add(req.method.name);
  return next(req);
};

function transport(options) {
  return createConnectTransport({
    baseUrl: "http://localhost",
    httpVersion: "1.1",
    useBinaryFormat: false,
    ...options,
    interceptors: [note, ...(options.interceptors ?? [])],
  });
}

// Over the unix socket; as Connect's clients are by default.
export const local = createClient(
  SandboxService,
  transport({ nodeOptions: { socketPath: env.SB_SOCKET } }),
);
// The same, with every message compressed and reads by GET.
export const packed = createClient(
  SandboxService,
  transport({
    nodeOptions: { socketPath: env.SB_SOCKET },
    sendCompression: compressionGzip,
    acceptCompression: [compressionGzip],
    compressMinBytes: 0,
    useHttpGet: true,
  }),
);

export function remote(token) {
  const bearer = (next) => (req) => {
    if (token) req.header.set("Authorization", `Bearer ${token}`);
    return next(req);
  };
  return createClient(SandboxService, transport({ baseUrl: env.SB_URL, interceptors: [bearer] }));
}

// The call must fail with this code and, if given, reason and field of its details.
export async function fails(promise, code, reason, field) {
  let error;
  try {
    await promise;
  } catch (e) {
    error = ConnectError.from(e);
  }
  assert.ok(error, `succeeded instead of failing with ${Code[code]}`);
  assert.equal(Code[error.code], Code[code], error.message);
  const [info] = error.findDetails(ErrorInfoSchema);
  if (reason) assert.equal(info?.reason, reason);
  if (field) assert.equal(info?.field, field);
  return error;
}

export async function collect(stream) {
  const all = [];
  for await (const m of stream) all.push(m);
  return all;
}

// One HTTP request as it is; gives status, headers and body. A broken connection is an error.
export function raw(path, { method = "POST", headers = {}, body } = {}) {
  return new Promise((resolve, reject) => {
    const req = http.request({ socketPath: env.SB_SOCKET, path, method, headers }, (res) => {
      const parts = [];
      res.on("data", (d) => parts.push(d));
      res.on("end", () =>
        resolve({ status: res.statusCode, headers: res.headers, body: Buffer.concat(parts) }),
      );
      res.on("error", reject);
    });
    req.on("error", reject);
    req.end(body);
  });
}
