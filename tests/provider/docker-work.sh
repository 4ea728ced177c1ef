#!/bin/sh
# SPDX-License-Identifier: MIT
# The second part of docker.sh: syncs, launches, tools.
docker_work=yes
. "${SB_TOP_SRCDIR:-.}/tests/provider/docker.sh"
