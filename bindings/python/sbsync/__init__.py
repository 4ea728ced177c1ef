# SPDX-License-Identifier: MIT
"""Clients of sbsync with nothing but the standard library.

Host: a sandbox host (sbhostd). Sync: sync sessions, by the sbsync command.
"""
from .host import Host, HostError
from .sync import Sync, SyncError

__all__ = ["Host", "HostError", "Sync", "SyncError"]
__version__ = "0.1.0"
