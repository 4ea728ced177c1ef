# SPDX-License-Identifier: MIT
"""A sandbox host: Connect over HTTP/1.1 with JSON."""
import http.client
import json
import os
import socket
import ssl
import struct
import urllib.parse
import uuid
from typing import Any, Dict, Iterator, Optional

from .api import Procedures

SERVICE = "/rpc.v1.SandboxService/"
MESSAGE_MAX = 256 << 20
END, PACKED = 2, 1
# How much longer than the host itself we wait for a call with a timeout.
GRACE_S = 5.0


class HostError(Exception):
    """`code` as Connect has it ("not_found"), `reason` the exact cause ("SESSION_NOT_FOUND"),
    `field` the field of the request that is wrong."""

    def __init__(self, code: str, message: str, details: Any = None):
        super().__init__(message)
        self.code, self.reason, self.field = code, "", ""
        for detail in details or []:
            if detail.get("type") == "rpc.v1.ErrorInfo":
                debug = detail.get("debug") or {}
                self.reason, self.field = debug.get("Reason", ""), debug.get("Field", "")


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: Optional[float]):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _error(status: int, body: bytes) -> HostError:
    try:
        j = json.loads(body)
        return HostError(j.get("code", "unknown"), j.get("message", ""), j.get("details"))
    except (ValueError, AttributeError):
        return HostError("unknown", "HTTP status %d" % status)


def _exactly(response: http.client.HTTPResponse, size: int) -> bytes:
    parts, have = [], 0
    while have < size:
        part = response.read(min(size - have, 1 << 20))
        if not part:
            raise HostError("unavailable", "the stream broke off")
        parts.append(part)
        have += len(part)
    return b"".join(parts)


class Host(Procedures):
    """Each procedure of doc/sandbox.proto as a method: host.create_session(empty=True).
    Thread-safe: every call has a connection of its own."""

    def __init__(self, address: Optional[str] = None, token: Optional[str] = None,
                 ca_file: Optional[str] = None):
        self.address = (address or os.environ.get("SANDBOX_HOST")
                        or "unix:/run/sbhostd/sbhostd.sock")
        self._token = token or os.environ.get("SANDBOX_AUTH_TOKEN")
        self._url = urllib.parse.urlsplit(self.address)
        if self._url.scheme not in ("unix", "http", "https"):
            raise ValueError("address %s: use unix:PATH, http:// or https://" % self.address)
        self._tls = ssl.create_default_context(cafile=ca_file) \
            if self._url.scheme == "https" else None

    def _connect(self, timeout: Optional[float]) -> http.client.HTTPConnection:
        if self._url.scheme == "unix":
            return _UnixConnection(self.address[5:], timeout)
        if self._tls:
            return http.client.HTTPSConnection(self._url.hostname or "", self._url.port,
                                               timeout=timeout, context=self._tls)
        return http.client.HTTPConnection(self._url.hostname or "", self._url.port,
                                          timeout=timeout)

    def _send(self, connection: http.client.HTTPConnection, method: str, kind: str, body: bytes,
              timeout: Optional[float]) -> http.client.HTTPResponse:
        headers = {"Content-Type": kind, "Connect-Protocol-Version": "1"}
        if self._token:
            headers["Authorization"] = "Bearer " + self._token
        if timeout:
            headers["Connect-Timeout-Ms"] = str(int(timeout * 1000))
        connection.request("POST", SERVICE + method, body, headers)
        return connection.getresponse()

    @staticmethod
    def _body(method: str, request: Dict[str, Any]) -> bytes:
        request = {k: v for k, v in request.items() if v is not None}
        if method.startswith("ExecuteTool") and not request.get("ToolCallID"):
            request["ToolCallID"] = str(uuid.uuid4())
        return json.dumps(request).encode()

    def _call(self, method: str, request: Dict[str, Any], timeout: Optional[float]) -> Any:
        connection = self._connect(timeout + GRACE_S if timeout else None)
        try:
            response = self._send(connection, method, "application/json",
                                  self._body(method, request), timeout)
            body = response.read(MESSAGE_MAX + 1)
            if len(body) > MESSAGE_MAX:
                raise HostError("resource_exhausted", "too large an answer")
            if response.status != 200:
                raise _error(response.status, body)
            return json.loads(body)
        except socket.timeout as e:
            raise HostError("deadline_exceeded", "no answer in time") from e
        except (OSError, http.client.HTTPException) as e:
            raise HostError("unavailable", "%s: %s" % (self.address, e)) from e
        finally:
            connection.close()

    def _stream(self, method: str, request: Dict[str, Any], timeout: Optional[float]
                ) -> Iterator[Any]:
        """Messages as they come. Leaving the loop ends the call, in the host, too."""
        connection = self._connect(timeout + GRACE_S if timeout else None)
        body = self._body(method, request)
        try:
            response = self._send(connection, method, "application/connect+json",
                                  struct.pack(">BI", 0, len(body)) + body, timeout)
            if response.status != 200:
                raise _error(response.status, response.read(MESSAGE_MAX))
            while True:
                flags, size = struct.unpack(">BI", _exactly(response, 5))
                if size > MESSAGE_MAX or flags & PACKED:
                    raise HostError("internal", "a message that was not asked for")
                message = json.loads(_exactly(response, size))
                if flags & END:
                    error = message.get("error")
                    if error:
                        raise HostError(error.get("code", "unknown"), error.get("message", ""),
                                        error.get("details"))
                    return
                yield message
        except socket.timeout as e:
            raise HostError("deadline_exceeded", "no answer in time") from e
        except (OSError, http.client.HTTPException) as e:
            raise HostError("unavailable", "%s: %s" % (self.address, e)) from e
        finally:
            connection.close()
