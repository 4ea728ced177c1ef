#!/bin/sh
# SPDX-License-Identifier: MIT
# The sandbox host on storage overlay, on XFS.
. "${SB_TOP_SRCDIR:-.}/tests/lib/hoststorage.sh"

host_on overlay xfs
