#!/bin/sh
# SPDX-License-Identifier: MIT
# The sandbox host on storage overlay, on ext4.
. "${SB_TOP_SRCDIR:-.}/tests/lib/hoststorage.sh"

host_on overlay ext4
