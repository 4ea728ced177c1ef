// SPDX-License-Identifier: MIT
// The client of a sandbox host: Connect over HTTP/1.1 with JSON, by what node has itself.
import { randomUUID } from "node:crypto";
import http from "node:http";
import https from "node:https";

import { METHODS } from "./api.js";

export { METHODS };

const SERVICE = "/rpc.v1.SandboxService/";
const MESSAGE_MAX = 256 << 20;
const END = 2; // flag of a stream's last envelope
const PACKED = 1;

/** What a call failed with: `code` as Connect has it ("not_found"), `reason` the exact cause. */
export class ConnectError extends Error {
	constructor(code, message, details = [], cause) {
		super(message, cause ? { cause } : undefined);
		this.name = "ConnectError";
		this.code = code;
		this.reason = "";
		this.field = "";
		for (const d of Array.isArray(details) ? details : [])
			if (d?.type === "rpc.v1.ErrorInfo" && d.debug) {
				this.reason = d.debug.Reason ?? d.debug.reason ?? "";
				this.field = d.debug.Field ?? d.debug.field ?? "";
			}
	}
}

function fromJson(text, fallback) {
	try {
		const j = JSON.parse(text);
		return new ConnectError(j.code ?? "unknown", j.message ?? fallback, j.details);
	} catch {
		return new ConnectError("unknown", fallback);
	}
}

function parse(bytes) {
	try {
		return JSON.parse(bytes.toString("utf8"));
	} catch (cause) {
		throw new ConnectError("internal", "the host's message is not JSON", [], cause);
	}
}

function gone(error, options) {
	if (error instanceof ConnectError) return error;
	if (options.signal?.aborted) return new ConnectError("canceled", "canceled", [], error);
	return new ConnectError("unavailable", error.message, [], error);
}

class Client {
	#opts;
	#agent;
	#token;

	constructor(opts = {}) {
		const address = opts.address ?? process.env.SANDBOX_HOST ??
			"unix:/run/sbhostd/sbhostd.sock";
		this.#token = opts.token ?? process.env.SANDBOX_AUTH_TOKEN;
		if (address.startsWith("unix:")) {
			this.#opts = { module: http, socketPath: address.slice(5), host: "localhost" };
		} else {
			const url = new URL(address);
			if (url.protocol !== "http:" && url.protocol !== "https:")
				throw new TypeError(`address ${address}: use unix:PATH, http:// or https://`);
			this.#opts = {
				module: url.protocol === "https:" ? https : http,
				host: url.hostname.replace(/^\[|\]$/g, ""),
				port: url.port || undefined,
				ca: opts.ca,
			};
		}
		this.#agent = new this.#opts.module.Agent({ keepAlive: true });
	}

	/** Ends the connections that are kept; calls that run go on. */
	close() {
		this.#agent.destroy();
	}

	#send(method, type, body, options) {
		const { module, ...where } = this.#opts;
		const headers = {
			"content-type": type,
			"content-length": body.length,
			"connect-protocol-version": "1",
		};
		if (this.#token) headers.authorization = `Bearer ${this.#token}`;
		if (options.timeoutMs) headers["connect-timeout-ms"] = String(options.timeoutMs);
		return new Promise((resolve, reject) => {
			const request = module.request({
				...where, method: "POST", path: SERVICE + method, headers,
				agent: this.#agent, signal: options.signal,
			});
			request.on("response", resolve).on("error", reject).end(body);
		});
	}

	async unary(method, message, options) {
		const body = Buffer.from(JSON.stringify(message));
		const parts = [];
		let size = 0;
		try {
			const response = await this.#send(method, "application/json", body, options);
			for await (const part of response) {
				size += part.length;
				if (size > MESSAGE_MAX)
					throw new ConnectError("resource_exhausted", "too large an answer");
				parts.push(part);
			}
			const bytes = Buffer.concat(parts);
			if (response.statusCode !== 200)
				throw fromJson(bytes.toString("utf8"), `HTTP status ${response.statusCode}`);
			return parse(bytes);
		} catch (error) {
			throw gone(error, options);
		}
	}

	async *stream(method, message, options) {
		const text = Buffer.from(JSON.stringify(message));
		const head = Buffer.alloc(5);
		head.writeUInt32BE(text.length, 1);
		let response;
		let ended = false;
		try {
			response = await this.#send(method, "application/connect+json",
				Buffer.concat([head, text]), options);
			if (response.statusCode !== 200) {
				const parts = [];
				for await (const part of response) parts.push(part);
				throw fromJson(Buffer.concat(parts).toString("utf8"),
					`HTTP status ${response.statusCode}`);
			}
			for await (const [flags, bytes] of envelopes(response)) {
				if (flags & PACKED)
					throw new ConnectError("internal", "a packed message was not asked for");
				if (flags & END) {
					ended = true;
					const end = parse(bytes);
					if (end.error)
						throw fromJson(JSON.stringify(end.error), "the call failed");
					return;
				}
				yield parse(bytes);
			}
			throw new ConnectError("unavailable", "the stream broke off");
		} catch (error) {
			throw gone(error, options);
		} finally {
			if (!ended) response?.destroy();
		}
	}
}

/* The messages of a stream, whatever pieces they come in. */
async function* envelopes(response) {
	let parts = [];
	let have = 0;
	let need = 5;
	let flags = -1;
	for await (const part of response) {
		parts.push(part);
		have += part.length;
		while (have >= need) {
			const all = parts.length === 1 ? parts[0] : Buffer.concat(parts);
			const piece = all.subarray(0, need);
			parts = [all.subarray(need)];
			have -= need;
			if (flags < 0) {
				flags = piece[0];
				need = piece.readUInt32BE(1);
				if (need > MESSAGE_MAX)
					throw new ConnectError("resource_exhausted", "too large a message");
			} else {
				yield [flags, piece];
				flags = -1;
				need = 5;
			}
		}
	}
}

/** A sandbox host, with a method for each procedure of doc/sandbox.proto. */
export class SandboxHost {
	constructor(opts) {
		const client = new Client(opts);
		const named = (name, request) =>
			name.startsWith("ExecuteTool") && !request.ToolCallID ?
				{ ...request, ToolCallID: randomUUID() } : request;
		for (const [key, [name, streams]] of Object.entries(METHODS))
			this[key] = streams ?
				(request = {}, options = {}) =>
					client.stream(name, named(name, request), options) :
				(request = {}, options = {}) =>
					client.unary(name, named(name, request), options);
		Object.defineProperty(this, "close", { value: () => client.close() });
	}
}
