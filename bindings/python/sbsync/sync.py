# SPDX-License-Identifier: MIT
"""Sync sessions, by the sbsync command with --json."""
import json
import subprocess
from typing import Any, Dict, List, Optional

# Exit statuses of sbsync.
DONE, FAILED, USAGE, CONFLICTS, LOCKED, BRAKE = range(6)


class SyncError(Exception):
    """`status` is the exit status (4: locked, 5: refused for safety), `result` what --json said."""

    def __init__(self, status: int, message: str, result: Any = None):
        super().__init__(message)
        self.status, self.result = status, result


class Sync:
    """Sync sessions of this user. Options are given as sbsync has them: ("--exclude", "*.o")."""

    def __init__(self, command: str = "sbsync", env: Optional[Dict[str, str]] = None):
        self._command, self._env = command, env

    def _run(self, verb: str, *words: str, timeout: Optional[float] = None) -> Any:
        done = subprocess.run([self._command, verb, "--json", *words], env=self._env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=timeout, check=False)
        lines = [json.loads(x) for x in done.stdout.decode().splitlines() if x.strip()]
        result = lines if verb == "log" else lines[0] if lines else None
        if done.returncode not in (DONE, CONFLICTS):
            said = done.stderr.decode(errors="replace").strip().splitlines()
            message = said[-1] if said else "sbsync %s failed" % verb
            raise SyncError(done.returncode, message.replace("sbsync: ", "", 1), result)
        return result

    def start(self, local: str, remote: str, *options: str, name: Optional[str] = None,
              timeout: Optional[float] = None) -> Dict[str, Any]:
        """Opens a session and brings what is local there."""
        named = ("--name", name) if name else ()
        return self._run("start", *named, *options, "--", local, remote, timeout=timeout)

    def sync(self, session: str, *options: str, timeout: Optional[float] = None
             ) -> Dict[str, Any]:
        """Both ways. Conflicts are no error: they are in the result's "conflicts"."""
        return self._run("sync", *options, "--", session, timeout=timeout)

    def stop(self, session: str, *options: str, timeout: Optional[float] = None
             ) -> Dict[str, Any]:
        """Brings the work back and ends the session."""
        return self._run("stop", *options, "--", session, timeout=timeout)

    def undo(self, session: str, *options: str) -> Dict[str, Any]:
        """Takes the last sync back."""
        return self._run("undo", *options, "--", session)

    def diff(self, session: str, *options: str) -> Dict[str, Any]:
        """What a sync would do now, in "changes"."""
        return self._run("diff", *options, "--", session)

    def status(self, session: str) -> Dict[str, Any]:
        return self._run("status", "--", session)

    def sessions(self) -> List[Dict[str, Any]]:
        return self._run("ls")

    def conflicts(self, session: str) -> List[Dict[str, Any]]:
        return self._run("conflicts", "--", session)

    def log(self, session: str) -> List[Dict[str, Any]]:
        return self._run("log", "--", session)
