// SPDX-License-Identifier: MIT
import type { SandboxService } from "./api.js";

export * from "./api.js";

export interface HostOptions {
	/** unix:PATH, http://HOST:PORT or https://...; else $SANDBOX_HOST, else the service's socket. */
	address?: string;
	/** Bearer token; else $SANDBOX_AUTH_TOKEN. */
	token?: string;
	/** Authorities for https (PEM) instead of the usual ones. */
	ca?: string | Buffer;
}

/** What a call failed with. */
export declare class ConnectError extends Error {
	/** As Connect has it: "not_found", "failed_precondition", "unavailable", ... */
	code: string;
	/** The exact cause ("SESSION_NOT_FOUND"), "" when the host told none. */
	reason: string;
	/** The field of the request that is wrong, or "". */
	field: string;
}

/**
 * A sandbox host, with a method for each procedure. A tool call without ToolCallID gets one of its
 * own; give one to be able to ask again for the same call's result.
 */
export declare class SandboxHost implements SandboxService {
	constructor(options?: HostOptions);
	/** Ends the connections that are kept. */
	close(): void;
}
export interface SandboxHost extends SandboxService {}
