# SPDX-License-Identifier: MIT
# Made by bindings/generate.py from doc/sandbox.proto.
"""The messages and procedures of a sandbox host."""
from typing import Any, Dict, Iterator, List, Optional, TypedDict


class ErrorInfo(TypedDict, total=False):
    # In the details of every error of the service.
    # The exact cause: "SESSION_NOT_FOUND", "SESSION_PAUSED", "MAX_SESSIONS", ...
    Reason: str
    # The request field that is wrong, if one is.
    Field: str


class Session(TypedDict, total=False):
    ID: str
    # creating, active, paused, cold, destroying, failed
    State: str
    Mountpoint: str
    TurnCount: int
    SnapCount: int
    Created: Optional[str]
    Labels: Dict[str, str]
    SpaceUsed: int
    # The finer state: also pausing, resuming, rolling_back,
    # cooling, warming.
    Phase: str
    # What it was made from; "" for an empty one.
    Base: str
    # "session@snapshot" for a fork, else "".
    Parent: str
    # Why it is failed.
    Why: str
    Quota: int
    ActiveTools: int
    Processes: int
    # What runs its commands: none, bwrap, gvisor.
    Runtime: str
    # none, outbound, sandbox, host, as it was asked for.
    Network: str
    # Of network outbound: what it may reach, and what not.
    Allow: List[str]
    Deny: List[str]
    # How often something in it was kept from the network, and the last of them.
    NetworkRefused: int
    NetworkLast: str
    # When MaxSessionDuration is over and it is paused (or destroyed); absent:
    # never, or it is not active.
    ExpiresAt: Optional[str]


class ServerCapabilities(TypedDict, total=False):
    Snapshots: bool
    Rollback: bool
    Pause: bool
    StreamingProgress: bool
    TierRouting: bool
    Fork: bool
    Diff: bool
    Quota: bool
    Isolation: bool
    NetworkPolicy: bool
    # overlay, btrfs, zfs, local-disk
    Storage: str
    # gvisor, bwrap, none
    Runtime: str
    # none, namespaces, kernel (a kernel of its own)
    IsolationLevel: str
    # A session has ports of its own that can be exposed.
    Ports: bool
    # The lists of network outbound are enforced; else why they are not.
    NetworkLists: bool
    NetworkWhy: str
    # Why this storage and no other.
    StorageWhy: str
    # What holds the limits of a session: cgroup2, cgroup1, rlimit (of its user,
    # with a watch over its memory), none.
    Limits: str
    # The most sessions at a time; 0: any number.
    ConcurrentSessions: int
    # Nanoseconds that a session is active at a stretch; 0: for ever.
    MaxSessionDuration: int


class CreateSessionResponse(TypedDict, total=False):
    Session: "Session"
    ServerCapabilities: "ServerCapabilities"


class GetSessionResponse(TypedDict, total=False):
    Session: "Session"


class ListSessionsResponse(TypedDict, total=False):
    # In order of id.
    Sessions: List["Session"]
    # Give it as After for the next page; "" when there is none.
    NextAfter: str


class SetNetworkPolicyResponse(TypedDict, total=False):
    # How many connections that were open are not allowed any more.
    Cut: int


class SetLabelsResponse(TypedDict, total=False):
    Session: "Session"


class PauseSessionResponse(TypedDict, total=False):
    pass


class ResumeSessionResponse(TypedDict, total=False):
    pass


class DeepPauseSessionResponse(TypedDict, total=False):
    pass


class DeepResumeSessionResponse(TypedDict, total=False):
    Session: "Session"


class DestroySessionResponse(TypedDict, total=False):
    pass


class ForkResponse(TypedDict, total=False):
    Session: "Session"


class Tool(TypedDict, total=False):
    Name: str
    # For a model.
    Description: str
    # A JSON Schema of Params. Parameters that it does not name are refused.
    InputSchema: Optional[Dict[str, Any]]
    # It changes nothing.
    ReadOnly: bool
    # What it does depends on what the session may reach.
    Network: bool


class ListToolsResponse(TypedDict, total=False):
    # In an order that stays.
    Tools: List["Tool"]


class Resources(TypedDict, total=False):
    # What one call may take; 0: the session's limits alone count. What nothing can
    # hold is refused (failed_precondition).
    # Taken where the session has a limit that is no higher.
    CPUs: float
    # Address space of each process.
    MemMB: int
    # Nanoseconds; 0: the host's limit.
    Timeout: int
    # Bytes of each stream of a command; 0: 256 KiB; at most 4 MiB. Of a tool that
    # runs none: of its text; 0: all.
    MaxOutputBytes: int
    # Processes and threads; as CPUs.
    MaxPIDs: int


class ContentBlock(TypedDict, total=False):
    # text, thinking, image, tool_call
    Type: str
    Text: str
    TextSignature: str
    Thinking: str
    ThinkingSignature: str
    Redacted: bool
    ImageData: str
    ImageMimeType: str
    ToolCallID: str
    ToolCallName: str
    ToolCallArguments: Optional[Dict[str, Any]]
    ThoughtSignature: str


class ExecuteToolResponse(TypedDict, total=False):
    SessionID: str
    ToolCallID: str
    ToolName: str
    Content: str
    ContentBlocks: List["ContentBlock"]
    # Of the snapshot taken after the call, or "".
    SnapshotID: str
    # 128+n for a signal, 124 for a timeout.
    ExitCode: Optional[int]
    # 1: in the host, 2: in the runtime.
    Tier: int
    # Nanoseconds.
    Duration: int
    # The tool failed (a missing file, a bad parameter, an exit other than 0).
    IsError: bool
    TimedOut: bool
    OOMKilled: bool
    # The output was longer than its limit or than a message.
    Truncated: bool
    # Why there is no snapshot although one was due.
    SnapshotError: str
    # A repeated call: the result is the first one's.
    Replayed: bool


class ToolProgress(TypedDict, total=False):
    Content: str
    # From stderr.
    IsError: bool


class ExecuteToolStreamResponse(TypedDict, total=False):
    Progress: "ToolProgress"
    Response: "ExecuteToolResponse"


class TurnCompleteResponse(TypedDict, total=False):
    SnapshotID: str
    TurnNumber: int
    SpaceUsed: int
    # Nothing changed in this turn: SnapshotID is the last snapshot, and none
    # was taken.
    Unchanged: bool
    # Processes had files open: they stood still while what changed was copied.
    Live: bool
    # Of the snapshot; absent where none was taken.
    CreatedAt: Optional[str]


class CreateSnapshotResponse(TypedDict, total=False):
    SnapshotID: str
    # Always 0.
    TurnNumber: int
    SpaceUsed: int
    # It is the same as the snapshot before it.
    Unchanged: bool
    Live: bool
    CreatedAt: Optional[str]


class Snapshot(TypedDict, total=False):
    Name: str
    Dataset: str
    Used: int
    Refer: int
    CreatedAt: Optional[str]
    Holds: int
    # turn, named, tool, fork
    Kind: str
    Turn: int
    # Sessions made from it.
    Forks: int
    # The snapshot it came after; "": none.
    Parent: str
    # The workspace stands on it.
    Current: bool


class ListSnapshotsResponse(TypedDict, total=False):
    # Oldest first.
    Snapshots: List["Snapshot"]


class RollbackSessionResponse(TypedDict, total=False):
    # The box could not take the new workspace: the next command gets a new box.
    BoxRestarted: bool
    # Newer snapshots.
    Kept: int
    Dropped: int


class Change(TypedDict, total=False):
    # added, removed, modified, renamed
    Kind: str
    # file, directory, symlink, other
    Type: str
    Path: str
    # The old path of a renamed one.
    From: str
    # The exact bytes, when Path or From is not UTF-8.
    RawPath: str
    RawFrom: str
    # What was and is in the file, or the symlink's target; missing where it was not there.
    Old: str
    New: str
    # Why it was not read: more than 1 MiB, more than 8 MiB in all, another kind of file.
    Unread: str


class DiffSnapshotsResponse(TypedDict, total=False):
    # Sorted by path.
    Changes: List["Change"]
    # There are more than Limit.
    More: bool


class DeleteSnapshotResponse(TypedDict, total=False):
    pass


class HoldSnapshotResponse(TypedDict, total=False):
    pass


class ReleaseSnapshotResponse(TypedDict, total=False):
    pass


class LaunchProcessResponse(TypedDict, total=False):
    ProcessID: str
    # Where the port is reached, or "".
    Address: str
    # starting, running, exited
    Status: str


class KillProcessResponse(TypedDict, total=False):
    pass


class GetProcessStatusResponse(TypedDict, total=False):
    Status: str
    ExitCode: Optional[int]


class Process(TypedDict, total=False):
    ProcessID: str
    Binary: str
    Status: str
    ExitCode: Optional[int]
    Address: str
    Started: Optional[str]
    Ended: Optional[str]
    # Bytes written so far.
    StdoutBytes: int
    StderrBytes: int
    # That it exposes; 0: none.
    Port: int


class ListProcessesResponse(TypedDict, total=False):
    # Oldest first.
    Processes: List["Process"]


class StreamProcessLogsResponse(TypedDict, total=False):
    Stream: str
    Data: str
    # Of the byte after Data: Offset to go on with.
    Offset: int


class PoolSpace(TypedDict, total=False):
    Size: int
    Allocated: int
    Free: int
    # 0..1
    Capacity: float
    # 0..1; absent: unknown.
    Fragmentation: Optional[float]


class HealthCheckResponse(TypedDict, total=False):
    # healthy, degraded, unhealthy
    Status: str
    PoolState: str
    SessionCount: int
    ActiveTools: int
    # Nanoseconds.
    Uptime: int
    # Why it is not healthy.
    Errors: List[str]
    PoolSpace: "PoolSpace"
    Processes: int
    Version: str
    # overlay, btrfs, zfs, local-disk; and why this one.
    Storage: str
    StorageWhy: str
    # The most sessions (0: any number), and how many more fit (0 then, too).
    MaxSessions: int
    FreeSessions: int
    # Of the machine.
    CPUs: int
    MemMB: int
    MemFreeMB: int


class GetCapabilitiesResponse(TypedDict, total=False):
    ServerCapabilities: "ServerCapabilities"


class ListBasesResponse(TypedDict, total=False):
    Bases: List[str]


class StreamEventsResponse(TypedDict, total=False):
    Seq: int
    Time: Optional[str]
    # stream.started, session.created, session.state, session.destroyed,
    # session.expired, session.forked, session.rolled_back, snapshot.created, snapshot.deleted,
    # tool.done, process.started, process.ready, process.exited, health,
    # network.policy, and network.allow, network.deny, network.cut, network.error
    # for each decision about its network, whose Subject is a JSON object with
    # kind, name, address, port, verdict, rule and left_out
    Kind: str
    SessionID: str
    # Snapshot, process, tool call or other session it is about, or "".
    Subject: str
    # Of the session after it.
    State: str


class IssueSessionTokenResponse(TypedDict, total=False):
    Token: str
    ExpiresAt: Optional[str]


class SshAccess(TypedDict, total=False):
    ID: str
    CreatedAt: Optional[str]
    ExpiresAt: Optional[str]


class CreateSshAccessResponse(TypedDict, total=False):
    Token: str
    Access: "SshAccess"


class ListSshAccessResponse(TypedDict, total=False):
    Accesses: List["SshAccess"]


class RevokeSshAccessResponse(TypedDict, total=False):
    pass


class Procedures:
    """Each takes the fields of its request by name; the others are not sent."""

    def _call(self, method: str, request: Dict[str, Any], timeout: Optional[float]) -> Any:
        raise NotImplementedError

    def _stream(
        self, method: str, request: Dict[str, Any], timeout: Optional[float]
    ) -> Iterator[Any]:
        raise NotImplementedError

    def create_session(
        self,
        *,
        base_snapshot: Optional[str] = None,
        session_id: Optional[str] = None,
        quota: Optional[int] = None,
        labels: Optional[Dict[str, str]] = None,
        empty: Optional[bool] = None,
        runtime: Optional[str] = None,
        network: Optional[str] = None,
        allow: Optional[List[str]] = None,
        deny: Optional[List[str]] = None,
        fence: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> CreateSessionResponse:
        """Sessions. A session is a workspace with a life of its own."""
        request = {
            "BaseSnapshot": base_snapshot,
            "SessionID": session_id,
            "Quota": quota,
            "Labels": labels,
            "Empty": empty,
            "Runtime": runtime,
            "Network": network,
            "Allow": allow,
            "Deny": deny,
            "Fence": fence,
        }
        return self._call("CreateSession", request, timeout)

    def get_session(
        self,
        *,
        session_id: Optional[str] = None,
        measure: Optional[bool] = None,
        timeout: Optional[float] = None,
    ) -> GetSessionResponse:
        request = {
            "SessionID": session_id,
            "Measure": measure,
        }
        return self._call("GetSession", request, timeout)

    def list_sessions(
        self,
        *,
        labels: Optional[Dict[str, str]] = None,
        states: Optional[List[str]] = None,
        after: Optional[str] = None,
        limit: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> ListSessionsResponse:
        request = {
            "Labels": labels,
            "States": states,
            "After": after,
            "Limit": limit,
        }
        return self._call("ListSessions", request, timeout)

    def set_labels(
        self,
        *,
        session_id: Optional[str] = None,
        labels: Optional[Dict[str, str]] = None,
        fence: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> SetLabelsResponse:
        request = {
            "SessionID": session_id,
            "Labels": labels,
            "Fence": fence,
        }
        return self._call("SetLabels", request, timeout)

    def set_network_policy(
        self,
        *,
        session_id: Optional[str] = None,
        allow: Optional[List[str]] = None,
        deny: Optional[List[str]] = None,
        fence: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> SetNetworkPolicyResponse:
        """Replaces what a session with network outbound may reach, at once. Not by
        the session's own token."""
        request = {
            "SessionID": session_id,
            "Allow": allow,
            "Deny": deny,
            "Fence": fence,
        }
        return self._call("SetNetworkPolicy", request, timeout)

    def pause_session(
        self,
        *,
        session_id: Optional[str] = None,
        fence: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> PauseSessionResponse:
        """No new tool starts, running ones end, processes are frozen."""
        request = {
            "SessionID": session_id,
            "Fence": fence,
        }
        return self._call("PauseSession", request, timeout)

    def resume_session(
        self,
        *,
        session_id: Optional[str] = None,
        fence: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> ResumeSessionResponse:
        request = {
            "SessionID": session_id,
            "Fence": fence,
        }
        return self._call("ResumeSession", request, timeout)

    def deep_pause_session(
        self,
        *,
        session_id: Optional[str] = None,
        fence: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> DeepPauseSessionResponse:
        """To cold storage, with its snapshots; nothing of it stays on the host."""
        request = {
            "SessionID": session_id,
            "Fence": fence,
        }
        return self._call("DeepPauseSession", request, timeout)

    def deep_resume_session(
        self,
        *,
        session_id: Optional[str] = None,
        fence: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> DeepResumeSessionResponse:
        """Back from there, on any host that uses it. Not by a session's own token."""
        request = {
            "SessionID": session_id,
            "Fence": fence,
        }
        return self._call("DeepResumeSession", request, timeout)

    def destroy_session(
        self,
        *,
        session_id: Optional[str] = None,
        force: Optional[bool] = None,
        fence: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> DestroySessionResponse:
        request = {
            "SessionID": session_id,
            "Force": force,
            "Fence": fence,
        }
        return self._call("DestroySession", request, timeout)

    def fork(
        self,
        *,
        session_id: Optional[str] = None,
        snapshot_id: Optional[str] = None,
        new_session_id: Optional[str] = None,
        quota: Optional[int] = None,
        labels: Optional[Dict[str, str]] = None,
        runtime: Optional[str] = None,
        network: Optional[str] = None,
        allow: Optional[List[str]] = None,
        deny: Optional[List[str]] = None,
        fence: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> ForkResponse:
        """A new session from a snapshot of another, or from its present content."""
        request = {
            "SessionID": session_id,
            "SnapshotID": snapshot_id,
            "NewSessionID": new_session_id,
            "Quota": quota,
            "Labels": labels,
            "Runtime": runtime,
            "Network": network,
            "Allow": allow,
            "Deny": deny,
            "Fence": fence,
        }
        return self._call("Fork", request, timeout)

    def list_tools(
        self,
        *,
        session_id: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> ListToolsResponse:
        """The tools that sessions have, with the schema of their parameters."""
        request = {
            "SessionID": session_id,
        }
        return self._call("ListTools", request, timeout)

    def execute_tool(
        self,
        *,
        session_id: Optional[str] = None,
        tool_call_id: Optional[str] = None,
        tool_name: Optional[str] = None,
        params: Optional[Dict[str, Any]] = None,
        resources: Optional["Resources"] = None,
        want_blocks: Optional[bool] = None,
        dir: Optional[str] = None,
        fence: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> ExecuteToolResponse:
        """A call is known by its session and ToolCallID: repeated within five
        minutes, it gives the first result again instead of running twice."""
        request = {
            "SessionID": session_id,
            "ToolCallID": tool_call_id,
            "ToolName": tool_name,
            "Params": params,
            "Resources": resources,
            "WantBlocks": want_blocks,
            "Dir": dir,
            "Fence": fence,
        }
        return self._call("ExecuteTool", request, timeout)

    def execute_tool_stream(
        self,
        *,
        session_id: Optional[str] = None,
        tool_call_id: Optional[str] = None,
        tool_name: Optional[str] = None,
        params: Optional[Dict[str, Any]] = None,
        resources: Optional["Resources"] = None,
        want_blocks: Optional[bool] = None,
        dir: Optional[str] = None,
        fence: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> Iterator[ExecuteToolStreamResponse]:
        """Progress as it comes; the last message has Response."""
        request = {
            "SessionID": session_id,
            "ToolCallID": tool_call_id,
            "ToolName": tool_name,
            "Params": params,
            "Resources": resources,
            "WantBlocks": want_blocks,
            "Dir": dir,
            "Fence": fence,
        }
        return self._stream("ExecuteToolStream", request, timeout)

    def turn_complete(
        self,
        *,
        session_id: Optional[str] = None,
        fence: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> TurnCompleteResponse:
        """Snapshots. On a host without them TurnComplete does nothing and answers
        zeros; the others fail with failed_precondition."""
        request = {
            "SessionID": session_id,
            "Fence": fence,
        }
        return self._call("TurnComplete", request, timeout)

    def create_snapshot(
        self,
        *,
        session_id: Optional[str] = None,
        name: Optional[str] = None,
        fence: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> CreateSnapshotResponse:
        request = {
            "SessionID": session_id,
            "Name": name,
            "Fence": fence,
        }
        return self._call("CreateSnapshot", request, timeout)

    def list_snapshots(
        self,
        *,
        session_id: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> ListSnapshotsResponse:
        request = {
            "SessionID": session_id,
        }
        return self._call("ListSnapshots", request, timeout)

    def rollback_session(
        self,
        *,
        session_id: Optional[str] = None,
        snapshot_id: Optional[str] = None,
        kill_tools: Optional[bool] = None,
        drop_later: Optional[bool] = None,
        fence: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> RollbackSessionResponse:
        """Everything after the snapshot is gone, later snapshots too."""
        request = {
            "SessionID": session_id,
            "SnapshotID": snapshot_id,
            "KillTools": kill_tools,
            "DropLater": drop_later,
            "Fence": fence,
        }
        return self._call("RollbackSession", request, timeout)

    def diff_snapshots(
        self,
        *,
        session_id: Optional[str] = None,
        from_: Optional[str] = None,
        to: Optional[str] = None,
        limit: Optional[int] = None,
        content: Optional[bool] = None,
        timeout: Optional[float] = None,
    ) -> DiffSnapshotsResponse:
        request = {
            "SessionID": session_id,
            "From": from_,
            "To": to,
            "Limit": limit,
            "Content": content,
        }
        return self._call("DiffSnapshots", request, timeout)

    def delete_snapshot(
        self,
        *,
        session_id: Optional[str] = None,
        snapshot_id: Optional[str] = None,
        fence: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> DeleteSnapshotResponse:
        request = {
            "SessionID": session_id,
            "SnapshotID": snapshot_id,
            "Fence": fence,
        }
        return self._call("DeleteSnapshot", request, timeout)

    def hold_snapshot(
        self,
        *,
        session_id: Optional[str] = None,
        snapshot_id: Optional[str] = None,
        tag: Optional[str] = None,
        fence: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> HoldSnapshotResponse:
        """A held snapshot is neither deleted nor dropped by retention or rollback."""
        request = {
            "SessionID": session_id,
            "SnapshotID": snapshot_id,
            "Tag": tag,
            "Fence": fence,
        }
        return self._call("HoldSnapshot", request, timeout)

    def release_snapshot(
        self,
        *,
        session_id: Optional[str] = None,
        snapshot_id: Optional[str] = None,
        tag: Optional[str] = None,
        fence: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> ReleaseSnapshotResponse:
        request = {
            "SessionID": session_id,
            "SnapshotID": snapshot_id,
            "Tag": tag,
            "Fence": fence,
        }
        return self._call("ReleaseSnapshot", request, timeout)

    def launch_process(
        self,
        *,
        session_id: Optional[str] = None,
        binary: Optional[str] = None,
        args: Optional[List[str]] = None,
        env: Optional[Dict[str, str]] = None,
        expose_port: Optional[int] = None,
        resources: Optional["Resources"] = None,
        ready_timeout: Optional[int] = None,
        fence: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> LaunchProcessResponse:
        """Processes that live on in a session."""
        request = {
            "SessionID": session_id,
            "Binary": binary,
            "Args": args,
            "Env": env,
            "ExposePort": expose_port,
            "Resources": resources,
            "ReadyTimeout": ready_timeout,
            "Fence": fence,
        }
        return self._call("LaunchProcess", request, timeout)

    def kill_process(
        self,
        *,
        session_id: Optional[str] = None,
        process_id: Optional[str] = None,
        signal: Optional[int] = None,
        fence: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> KillProcessResponse:
        request = {
            "SessionID": session_id,
            "ProcessID": process_id,
            "Signal": signal,
            "Fence": fence,
        }
        return self._call("KillProcess", request, timeout)

    def get_process_status(
        self,
        *,
        session_id: Optional[str] = None,
        process_id: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> GetProcessStatusResponse:
        request = {
            "SessionID": session_id,
            "ProcessID": process_id,
        }
        return self._call("GetProcessStatus", request, timeout)

    def list_processes(
        self,
        *,
        session_id: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> ListProcessesResponse:
        request = {
            "SessionID": session_id,
        }
        return self._call("ListProcesses", request, timeout)

    def stream_process_logs(
        self,
        *,
        session_id: Optional[str] = None,
        process_id: Optional[str] = None,
        stream: Optional[str] = None,
        offset: Optional[int] = None,
        follow: Optional[bool] = None,
        timeout: Optional[float] = None,
    ) -> Iterator[StreamProcessLogsResponse]:
        """Output of a process; with Follow until it ends."""
        request = {
            "SessionID": session_id,
            "ProcessID": process_id,
            "Stream": stream,
            "Offset": offset,
            "Follow": follow,
        }
        return self._stream("StreamProcessLogs", request, timeout)

    def health_check(
        self,
        *,
        timeout: Optional[float] = None,
    ) -> HealthCheckResponse:
        """The host."""
        request = {
        }
        return self._call("HealthCheck", request, timeout)

    def get_capabilities(
        self,
        *,
        timeout: Optional[float] = None,
    ) -> GetCapabilitiesResponse:
        request = {
        }
        return self._call("GetCapabilities", request, timeout)

    def list_bases(
        self,
        *,
        timeout: Optional[float] = None,
    ) -> ListBasesResponse:
        request = {
        }
        return self._call("ListBases", request, timeout)

    def stream_events(
        self,
        *,
        session_id: Optional[str] = None,
        kinds: Optional[List[str]] = None,
        after: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> Iterator[StreamEventsResponse]:
        """What happens, from now on. The first message has Kind "stream.started"."""
        request = {
            "SessionID": session_id,
            "Kinds": kinds,
            "After": after,
        }
        return self._stream("StreamEvents", request, timeout)

    def issue_session_token(
        self,
        *,
        session_id: Optional[str] = None,
        ttl: Optional[int] = None,
        fence: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> IssueSessionTokenResponse:
        """A bearer token that works for one session only."""
        request = {
            "SessionID": session_id,
            "TTL": ttl,
            "Fence": fence,
        }
        return self._call("IssueSessionToken", request, timeout)

    def create_ssh_access(
        self,
        *,
        session_id: Optional[str] = None,
        ttl: Optional[int] = None,
        fence: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> CreateSshAccessResponse:
        """A token for "ssh TOKEN@host" into one session and nothing else, where the host serves SSH. It
        is told once; what is kept is its digest."""
        request = {
            "SessionID": session_id,
            "TTL": ttl,
            "Fence": fence,
        }
        return self._call("CreateSshAccess", request, timeout)

    def list_ssh_access(
        self,
        *,
        session_id: Optional[str] = None,
        fence: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> ListSshAccessResponse:
        """Those that are good, oldest first."""
        request = {
            "SessionID": session_id,
            "Fence": fence,
        }
        return self._call("ListSshAccess", request, timeout)

    def revoke_ssh_access(
        self,
        *,
        session_id: Optional[str] = None,
        access_id: Optional[str] = None,
        fence: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> RevokeSshAccessResponse:
        """Ends connections that came in by it, too."""
        request = {
            "SessionID": session_id,
            "AccessID": access_id,
            "Fence": fence,
        }
        return self._call("RevokeSshAccess", request, timeout)
