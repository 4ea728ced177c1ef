#!/bin/sh
# SPDX-License-Identifier: MIT
# Deep pause and deep resume on storage btrfs.
SB_COLD_STORAGE=btrfs SB_COLD_FS=btrfs
export SB_COLD_STORAGE SB_COLD_FS
exec sh "${SB_TOP_SRCDIR:-.}/tests/e2e/host-cold.sh" "$@"
