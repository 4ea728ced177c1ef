// SPDX-License-Identifier: MIT
// Made by bindings/generate.py from doc/sandbox.proto.

/** A number; beyond 2^53 a text, so that no digit is lost. */
export type Int64 = number | string;
/** Bytes as base64. */
export type Base64 = string;
/** As RFC 3339 has it, in UTC. */
export type Time = string;

/** In the details of every error of the service. */
export interface ErrorInfo {
	/** The exact cause: "SESSION_NOT_FOUND", "SESSION_PAUSED", "MAX_SESSIONS", ... */
	Reason: string;
	/** The request field that is wrong, if one is. */
	Field: string;
}

export interface Session {
	ID: string;
	/** creating, active, paused, cold, destroying, failed */
	State: string;
	Mountpoint: string;
	TurnCount: Int64;
	SnapCount: Int64;
	Created?: Time | null;
	Labels: Record<string, string>;
	SpaceUsed: Int64;
	/**
	 * The finer state: also pausing, resuming, rolling_back,
	 * cooling, warming.
	 */
	Phase: string;
	/** What it was made from; "" for an empty one. */
	Base: string;
	/** "session@snapshot" for a fork, else "". */
	Parent: string;
	/** Why it is failed. */
	Why: string;
	Quota: Int64;
	ActiveTools: number;
	Processes: number;
	/** What runs its commands: none, bwrap, gvisor. */
	Runtime: string;
	/** none, outbound, sandbox, host, as it was asked for. */
	Network: string;
	/** Of network outbound: what it may reach, and what not. */
	Allow: string[];
	Deny: string[];
	/** How often something in it was kept from the network, and the last of them. */
	NetworkRefused: Int64;
	NetworkLast: string;
	/**
	 * When MaxSessionDuration is over and it is paused (or destroyed); absent:
	 * never, or it is not active.
	 */
	ExpiresAt?: Time | null;
}

export interface ServerCapabilities {
	Snapshots: boolean;
	Rollback: boolean;
	Pause: boolean;
	StreamingProgress: boolean;
	TierRouting: boolean;
	Fork: boolean;
	Diff: boolean;
	Quota: boolean;
	Isolation: boolean;
	NetworkPolicy: boolean;
	/** overlay, btrfs, zfs, local-disk */
	Storage: string;
	/** gvisor, bwrap, none */
	Runtime: string;
	/** none, namespaces, kernel (a kernel of its own) */
	IsolationLevel: string;
	/** A session has ports of its own that can be exposed. */
	Ports: boolean;
	/** The lists of network outbound are enforced; else why they are not. */
	NetworkLists: boolean;
	NetworkWhy: string;
	/** Why this storage and no other. */
	StorageWhy: string;
	/**
	 * What holds the limits of a session: cgroup2, cgroup1, rlimit (of its user,
	 * with a watch over its memory), none.
	 */
	Limits: string;
	/** The most sessions at a time; 0: any number. */
	ConcurrentSessions: Int64;
	/** Nanoseconds that a session is active at a stretch; 0: for ever. */
	MaxSessionDuration: Int64;
}

export interface CreateSessionRequest {
	/**
	 * A base image ("name@snapshot" on zfs, a name elsewhere); "": the
	 * host's default.
	 */
	BaseSnapshot?: string;
	/**
	 * "": the host makes one. Else a letter or digit, then letters, digits, '.',
	 * '_' and '-', at most 128 bytes, no "..".
	 */
	SessionID?: string;
	/** Bytes; 0: the host's default. */
	Quota?: Int64;
	/** At most 64; keys up to 128 bytes, values up to 4096. */
	Labels?: Record<string, string>;
	/** Start with an empty workspace, whatever the default is. */
	Empty?: boolean;
	/**
	 * none, bwrap, gvisor; "": the host's. One that isolates less than that is
	 * refused.
	 */
	Runtime?: string;
	/**
	 * none, outbound, sandbox, host; "": the host's, or outbound where there are
	 * lists. One that the runtime cannot enforce refuses the session.
	 */
	Network?: string;
	/**
	 * What network outbound lets through: HOST, *.SUFFIX, ADDRESS, ADDRESS/BITS
	 * or *, each with :PORT or :PORT-PORT if need be; no Allow: every public
	 * address. Deny wins.
	 */
	Allow?: string[];
	Deny?: string[];
	Fence?: Int64;
}

export interface CreateSessionResponse {
	Session?: Session | null;
	ServerCapabilities?: ServerCapabilities | null;
}

export interface GetSessionRequest {
	SessionID?: string;
	/** Ask the storage for SpaceUsed now instead of giving the last figure. */
	Measure?: boolean;
}

export interface GetSessionResponse {
	Session?: Session | null;
}

export interface ListSessionsRequest {
	/** All must match; an empty value matches any. */
	Labels?: Record<string, string>;
	/** Any of these; none: all. */
	States?: string[];
	/** Sessions with greater ids only, for the next page. */
	After?: string;
	/** 0: 1000; at most 10000. */
	Limit?: number;
}

export interface ListSessionsResponse {
	/** In order of id. */
	Sessions: Session[];
	/** Give it as After for the next page; "" when there is none. */
	NextAfter: string;
}

export interface SetNetworkPolicyRequest {
	SessionID?: string;
	/** As in CreateSession, but no Allow: nothing is reached any more. */
	Allow?: string[];
	Deny?: string[];
	Fence?: Int64;
}

export interface SetNetworkPolicyResponse {
	/** How many connections that were open are not allowed any more. */
	Cut: Int64;
}

export interface SetLabelsRequest {
	SessionID?: string;
	/** Replaces all there are. */
	Labels?: Record<string, string>;
	Fence?: Int64;
}

export interface SetLabelsResponse {
	Session?: Session | null;
}

export interface PauseSessionRequest {
	SessionID?: string;
	Fence?: Int64;
}

export interface PauseSessionResponse {
}

export interface ResumeSessionRequest {
	SessionID?: string;
	Fence?: Int64;
}

export interface ResumeSessionResponse {
}

export interface DeepPauseSessionRequest {
	SessionID?: string;
	Fence?: Int64;
}

export interface DeepPauseSessionResponse {
}

export interface DeepResumeSessionRequest {
	SessionID?: string;
	Fence?: Int64;
}

export interface DeepResumeSessionResponse {
	Session?: Session | null;
}

export interface DestroySessionRequest {
	SessionID?: string;
	/** Also when snapshots are held. */
	Force?: boolean;
	Fence?: Int64;
}

export interface DestroySessionResponse {
}

export interface ForkRequest {
	SessionID?: string;
	/** "": its present content. */
	SnapshotID?: string;
	/** "": the host makes one. */
	NewSessionID?: string;
	Quota?: Int64;
	/** None: the source's. */
	Labels?: Record<string, string>;
	/** As in CreateSession; none of them: the source's. */
	Runtime?: string;
	Network?: string;
	Allow?: string[];
	Deny?: string[];
	Fence?: Int64;
}

export interface ForkResponse {
	Session?: Session | null;
}

export interface ListToolsRequest {
	/** "": those of any session; by a session's token, its own. */
	SessionID?: string;
}

export interface Tool {
	Name: string;
	/** For a model. */
	Description: string;
	/** A JSON Schema of Params. Parameters that it does not name are refused. */
	InputSchema?: Record<string, unknown> | null;
	/** It changes nothing. */
	ReadOnly: boolean;
	/** What it does depends on what the session may reach. */
	Network: boolean;
}

export interface ListToolsResponse {
	/** In an order that stays. */
	Tools: Tool[];
}

/**
 * What one call may take; 0: the session's limits alone count. What nothing can
 * hold is refused (failed_precondition).
 */
export interface Resources {
	/** Taken where the session has a limit that is no higher. */
	CPUs?: number;
	/** Address space of each process. */
	MemMB?: Int64;
	/** Nanoseconds; 0: the host's limit. */
	Timeout?: Int64;
	/**
	 * Bytes of each stream of a command; 0: 256 KiB; at most 4 MiB. Of a tool that
	 * runs none: of its text; 0: all.
	 */
	MaxOutputBytes?: Int64;
	/** Processes and threads; as CPUs. */
	MaxPIDs?: Int64;
}

export interface ExecuteToolRequest {
	SessionID?: string;
	/** Required, at most 256 bytes. */
	ToolCallID?: string;
	ToolName?: string;
	Params?: Record<string, unknown>;
	Resources?: Resources;
	/** The text comes as ContentBlocks instead of Content. */
	WantBlocks?: boolean;
	/**
	 * Where it works, relative to the workspace and without "..": what relative
	 * paths begin at, and where commands start. "": the workspace itself.
	 */
	Dir?: string;
	Fence?: Int64;
}

export interface ContentBlock {
	/** text, thinking, image, tool_call */
	Type: string;
	Text: string;
	TextSignature: string;
	Thinking: string;
	ThinkingSignature: string;
	Redacted: boolean;
	ImageData: Base64;
	ImageMimeType: string;
	ToolCallID: string;
	ToolCallName: string;
	ToolCallArguments?: Record<string, unknown> | null;
	ThoughtSignature: string;
}

export interface ExecuteToolResponse {
	SessionID: string;
	ToolCallID: string;
	ToolName: string;
	Content: string;
	ContentBlocks: ContentBlock[];
	/** Of the snapshot taken after the call, or "". */
	SnapshotID: string;
	/** 128+n for a signal, 124 for a timeout. */
	ExitCode?: number | null;
	/** 1: in the host, 2: in the runtime. */
	Tier: number;
	/** Nanoseconds. */
	Duration: Int64;
	/** The tool failed (a missing file, a bad parameter, an exit other than 0). */
	IsError: boolean;
	TimedOut: boolean;
	OOMKilled: boolean;
	/** The output was longer than its limit or than a message. */
	Truncated: boolean;
	/** Why there is no snapshot although one was due. */
	SnapshotError: string;
	/** A repeated call: the result is the first one's. */
	Replayed: boolean;
}

export interface ToolProgress {
	Content: string;
	/** From stderr. */
	IsError: boolean;
}

export interface ExecuteToolStreamResponse {
	Progress?: ToolProgress | null;
	Response?: ExecuteToolResponse | null;
}

export interface TurnCompleteRequest {
	SessionID?: string;
	Fence?: Int64;
}

export interface TurnCompleteResponse {
	SnapshotID: string;
	TurnNumber: Int64;
	SpaceUsed: Int64;
	/**
	 * Nothing changed in this turn: SnapshotID is the last snapshot, and none
	 * was taken.
	 */
	Unchanged: boolean;
	/** Processes had files open: they stood still while what changed was copied. */
	Live: boolean;
	/** Of the snapshot; absent where none was taken. */
	CreatedAt?: Time | null;
}

export interface CreateSnapshotRequest {
	SessionID?: string;
	/**
	 * A letter or digit, then letters, digits, '.', '_' and '-'; at most 255
	 * bytes. Names as turn, tool and fork snapshots have them are refused.
	 */
	Name?: string;
	Fence?: Int64;
}

export interface CreateSnapshotResponse {
	SnapshotID: string;
	/** Always 0. */
	TurnNumber: Int64;
	SpaceUsed: Int64;
	/** It is the same as the snapshot before it. */
	Unchanged: boolean;
	Live: boolean;
	CreatedAt?: Time | null;
}

export interface ListSnapshotsRequest {
	SessionID?: string;
}

export interface Snapshot {
	Name: string;
	Dataset: string;
	Used: Int64;
	Refer: Int64;
	CreatedAt?: Time | null;
	Holds: number;
	/** turn, named, tool, fork */
	Kind: string;
	Turn: Int64;
	/** Sessions made from it. */
	Forks: number;
	/** The snapshot it came after; "": none. */
	Parent: string;
	/** The workspace stands on it. */
	Current: boolean;
}

export interface ListSnapshotsResponse {
	/** Oldest first. */
	Snapshots: Snapshot[];
}

export interface RollbackSessionRequest {
	SessionID?: string;
	SnapshotID?: string;
	/** Kill running tools instead of refusing. */
	KillTools?: boolean;
	/** Remove the snapshots that are newer, instead of keeping them as a branch. */
	DropLater?: boolean;
	Fence?: Int64;
}

export interface RollbackSessionResponse {
	/** The box could not take the new workspace: the next command gets a new box. */
	BoxRestarted: boolean;
	/** Newer snapshots. */
	Kept: Int64;
	Dropped: Int64;
}

export interface DiffSnapshotsRequest {
	SessionID?: string;
	From?: string;
	/** "": now. */
	To?: string;
	/** 0: 10000; at most 20000. */
	Limit?: number;
	/** With Old and New of files and symlinks. */
	Content?: boolean;
}

export interface Change {
	/** added, removed, modified, renamed */
	Kind: string;
	/** file, directory, symlink, other */
	Type: string;
	Path: string;
	/** The old path of a renamed one. */
	From: string;
	/** The exact bytes, when Path or From is not UTF-8. */
	RawPath: Base64;
	RawFrom: Base64;
	/** What was and is in the file, or the symlink's target; missing where it was not there. */
	Old: Base64;
	New: Base64;
	/** Why it was not read: more than 1 MiB, more than 8 MiB in all, another kind of file. */
	Unread: string;
}

export interface DiffSnapshotsResponse {
	/** Sorted by path. */
	Changes: Change[];
	/** There are more than Limit. */
	More: boolean;
}

export interface DeleteSnapshotRequest {
	SessionID?: string;
	SnapshotID?: string;
	Fence?: Int64;
}

export interface DeleteSnapshotResponse {
}

export interface HoldSnapshotRequest {
	SessionID?: string;
	SnapshotID?: string;
	Tag?: string;
	Fence?: Int64;
}

export interface HoldSnapshotResponse {
}

export interface ReleaseSnapshotRequest {
	SessionID?: string;
	SnapshotID?: string;
	Tag?: string;
	Fence?: Int64;
}

export interface ReleaseSnapshotResponse {
}

export interface LaunchProcessRequest {
	SessionID?: string;
	Binary?: string;
	Args?: string[];
	Env?: Record<string, string>;
	/**
	 * A port it will listen on, at 127.0.0.1; 0: none. Others reach it, and
	 * nobody else's, at Address. Until it answers the process is starting.
	 */
	ExposePort?: number;
	Resources?: Resources;
	/**
	 * Nanoseconds; with a port: answer when it does, or after this time. 0: at
	 * once; at most 10 minutes.
	 */
	ReadyTimeout?: Int64;
	Fence?: Int64;
}

export interface LaunchProcessResponse {
	ProcessID: string;
	/** Where the port is reached, or "". */
	Address: string;
	/** starting, running, exited */
	Status: string;
}

export interface KillProcessRequest {
	SessionID?: string;
	ProcessID?: string;
	/** 0: SIGTERM. */
	Signal?: number;
	Fence?: Int64;
}

export interface KillProcessResponse {
}

export interface GetProcessStatusRequest {
	SessionID?: string;
	ProcessID?: string;
}

export interface GetProcessStatusResponse {
	Status: string;
	ExitCode?: number | null;
}

export interface ListProcessesRequest {
	SessionID?: string;
}

export interface Process {
	ProcessID: string;
	Binary: string;
	Status: string;
	ExitCode?: number | null;
	Address: string;
	Started?: Time | null;
	Ended?: Time | null;
	/** Bytes written so far. */
	StdoutBytes: Int64;
	StderrBytes: Int64;
	/** That it exposes; 0: none. */
	Port: number;
}

export interface ListProcessesResponse {
	/** Oldest first. */
	Processes: Process[];
}

export interface StreamProcessLogsRequest {
	SessionID?: string;
	ProcessID?: string;
	/** stdout, stderr; "": both. */
	Stream?: string;
	/** Byte to begin with; only with one stream. */
	Offset?: Int64;
	/** Go on until the process ends. */
	Follow?: boolean;
}

export interface StreamProcessLogsResponse {
	Stream: string;
	Data: Base64;
	/** Of the byte after Data: Offset to go on with. */
	Offset: Int64;
}

export interface HealthCheckRequest {
}

export interface PoolSpace {
	Size: Int64;
	Allocated: Int64;
	Free: Int64;
	/** 0..1 */
	Capacity: number;
	/** 0..1; absent: unknown. */
	Fragmentation?: number | null;
}

export interface HealthCheckResponse {
	/** healthy, degraded, unhealthy */
	Status: string;
	PoolState: string;
	SessionCount: Int64;
	ActiveTools: Int64;
	/** Nanoseconds. */
	Uptime: Int64;
	/** Why it is not healthy. */
	Errors: string[];
	PoolSpace?: PoolSpace | null;
	Processes: Int64;
	Version: string;
	/** overlay, btrfs, zfs, local-disk; and why this one. */
	Storage: string;
	StorageWhy: string;
	/** The most sessions (0: any number), and how many more fit (0 then, too). */
	MaxSessions: Int64;
	FreeSessions: Int64;
	/** Of the machine. */
	CPUs: Int64;
	MemMB: Int64;
	MemFreeMB: Int64;
}

export interface GetCapabilitiesRequest {
}

export interface GetCapabilitiesResponse {
	ServerCapabilities?: ServerCapabilities | null;
}

export interface ListBasesRequest {
}

export interface ListBasesResponse {
	Bases: string[];
}

export interface StreamEventsRequest {
	/** "": of every session, and of the host. */
	SessionID?: string;
	/** Prefixes of kinds ("session.", "snapshot.created"); none: all. */
	Kinds?: string[];
	/**
	 * Begin behind this Seq with what is still remembered; 0: from now on. What
	 * is forgotten ends the stream with data_loss.
	 */
	After?: Int64;
}

export interface StreamEventsResponse {
	Seq: Int64;
	Time?: Time | null;
	/**
	 * stream.started, session.created, session.state, session.destroyed,
	 * session.expired, session.forked, session.rolled_back, snapshot.created, snapshot.deleted,
	 * tool.done, process.started, process.ready, process.exited, health,
	 * network.policy, and network.allow, network.deny, network.cut, network.error
	 * for each decision about its network, whose Subject is a JSON object with
	 * kind, name, address, port, verdict, rule and left_out
	 */
	Kind: string;
	SessionID: string;
	/** Snapshot, process, tool call or other session it is about, or "". */
	Subject: string;
	/** Of the session after it. */
	State: string;
}

export interface IssueSessionTokenRequest {
	SessionID?: string;
	/** Nanoseconds; 0: one hour; at most 30 days. */
	TTL?: Int64;
	Fence?: Int64;
}

export interface IssueSessionTokenResponse {
	Token: string;
	ExpiresAt?: Time | null;
}

export interface SshAccess {
	ID: string;
	CreatedAt?: Time | null;
	ExpiresAt?: Time | null;
}

export interface CreateSshAccessRequest {
	SessionID?: string;
	/** Nanoseconds; 0: one hour; at most 30 days. */
	TTL?: Int64;
	Fence?: Int64;
}

export interface CreateSshAccessResponse {
	Token: string;
	Access?: SshAccess | null;
}

export interface ListSshAccessRequest {
	SessionID?: string;
	Fence?: Int64;
}

export interface ListSshAccessResponse {
	Accesses: SshAccess[];
}

export interface RevokeSshAccessRequest {
	SessionID?: string;
	/** Empty: all of the session. */
	AccessID?: string;
	Fence?: Int64;
}

export interface RevokeSshAccessResponse {
}

/** What every call takes besides its request. */
export interface CallOptions {
	/** Ends the call, here and in the host. */
	signal?: AbortSignal;
	/** Milliseconds; told to the host. */
	timeoutMs?: number;
}

/** One answer, or a ConnectError. */
export type Unary<Request, Answer> =
	(request?: Request, options?: CallOptions) => Promise<Answer>;
/** Messages as they come; leaving the loop ends the call. */
export type Streaming<Request, Answer> =
	(request?: Request, options?: CallOptions) => AsyncGenerator<Answer, void, void>;

/** The procedures of a sandbox host. */
export interface SandboxService {
	/** Sessions. A session is a workspace with a life of its own. */
	createSession: Unary<CreateSessionRequest, CreateSessionResponse>;
	getSession: Unary<GetSessionRequest, GetSessionResponse>;
	listSessions: Unary<ListSessionsRequest, ListSessionsResponse>;
	setLabels: Unary<SetLabelsRequest, SetLabelsResponse>;
	/**
	 * Replaces what a session with network outbound may reach, at once. Not by
	 * the session's own token.
	 */
	setNetworkPolicy: Unary<SetNetworkPolicyRequest, SetNetworkPolicyResponse>;
	/** No new tool starts, running ones end, processes are frozen. */
	pauseSession: Unary<PauseSessionRequest, PauseSessionResponse>;
	resumeSession: Unary<ResumeSessionRequest, ResumeSessionResponse>;
	/** To cold storage, with its snapshots; nothing of it stays on the host. */
	deepPauseSession: Unary<DeepPauseSessionRequest, DeepPauseSessionResponse>;
	/** Back from there, on any host that uses it. Not by a session's own token. */
	deepResumeSession: Unary<DeepResumeSessionRequest, DeepResumeSessionResponse>;
	destroySession: Unary<DestroySessionRequest, DestroySessionResponse>;
	/** A new session from a snapshot of another, or from its present content. */
	fork: Unary<ForkRequest, ForkResponse>;
	/** The tools that sessions have, with the schema of their parameters. */
	listTools: Unary<ListToolsRequest, ListToolsResponse>;
	/**
	 * A call is known by its session and ToolCallID: repeated within five
	 * minutes, it gives the first result again instead of running twice.
	 */
	executeTool: Unary<ExecuteToolRequest, ExecuteToolResponse>;
	/** Progress as it comes; the last message has Response. */
	executeToolStream: Streaming<ExecuteToolRequest, ExecuteToolStreamResponse>;
	/**
	 * Snapshots. On a host without them TurnComplete does nothing and answers
	 * zeros; the others fail with failed_precondition.
	 */
	turnComplete: Unary<TurnCompleteRequest, TurnCompleteResponse>;
	createSnapshot: Unary<CreateSnapshotRequest, CreateSnapshotResponse>;
	listSnapshots: Unary<ListSnapshotsRequest, ListSnapshotsResponse>;
	/** Everything after the snapshot is gone, later snapshots too. */
	rollbackSession: Unary<RollbackSessionRequest, RollbackSessionResponse>;
	diffSnapshots: Unary<DiffSnapshotsRequest, DiffSnapshotsResponse>;
	deleteSnapshot: Unary<DeleteSnapshotRequest, DeleteSnapshotResponse>;
	/** A held snapshot is neither deleted nor dropped by retention or rollback. */
	holdSnapshot: Unary<HoldSnapshotRequest, HoldSnapshotResponse>;
	releaseSnapshot: Unary<ReleaseSnapshotRequest, ReleaseSnapshotResponse>;
	/** Processes that live on in a session. */
	launchProcess: Unary<LaunchProcessRequest, LaunchProcessResponse>;
	killProcess: Unary<KillProcessRequest, KillProcessResponse>;
	getProcessStatus: Unary<GetProcessStatusRequest, GetProcessStatusResponse>;
	listProcesses: Unary<ListProcessesRequest, ListProcessesResponse>;
	/** Output of a process; with Follow until it ends. */
	streamProcessLogs: Streaming<StreamProcessLogsRequest, StreamProcessLogsResponse>;
	/** The host. */
	healthCheck: Unary<HealthCheckRequest, HealthCheckResponse>;
	getCapabilities: Unary<GetCapabilitiesRequest, GetCapabilitiesResponse>;
	listBases: Unary<ListBasesRequest, ListBasesResponse>;
	/** What happens, from now on. The first message has Kind "stream.started". */
	streamEvents: Streaming<StreamEventsRequest, StreamEventsResponse>;
	/** A bearer token that works for one session only. */
	issueSessionToken: Unary<IssueSessionTokenRequest, IssueSessionTokenResponse>;
	/**
	 * A token for "ssh TOKEN@host" into one session and nothing else, where the host serves SSH. It
	 * is told once; what is kept is its digest.
	 */
	createSshAccess: Unary<CreateSshAccessRequest, CreateSshAccessResponse>;
	/** Those that are good, oldest first. */
	listSshAccess: Unary<ListSshAccessRequest, ListSshAccessResponse>;
	/** Ends connections that came in by it, too. */
	revokeSshAccess: Unary<RevokeSshAccessRequest, RevokeSshAccessResponse>;
}

/** Their names on the wire, and whether they answer with a stream. */
export declare const METHODS: {
	readonly [name in keyof SandboxService]: readonly [string, boolean];
};
