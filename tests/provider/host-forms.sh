#!/bin/sh
# SPDX-License-Identifier: MIT
# The host provider in all its forms against a part of the conformance suite: each runtime, with the
# host in the process itself and a sandbox host (sbhostd) elsewhere.
FORMS=1
. "${SB_TOP_SRCDIR:-.}/tests/provider/host.sh"
