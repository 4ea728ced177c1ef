#!/bin/sh
# SPDX-License-Identifier: MIT
# The Connect client of npm against sbhostd on a real pool; see rpc-node.sh.
SB_RPC_STORAGE=zfs exec "${SB_TOP_SRCDIR:-.}/tests/e2e/rpc-node.sh"
