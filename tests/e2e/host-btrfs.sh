#!/bin/sh
# SPDX-License-Identifier: MIT
# The sandbox host on storage btrfs.
. "${SB_TOP_SRCDIR:-.}/tests/lib/hoststorage.sh"

host_on btrfs btrfs
