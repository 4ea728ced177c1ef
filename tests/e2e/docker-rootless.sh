#!/bin/sh
# SPDX-License-Identifier: MIT
# docker-daemon.sh with containers of a rootless Podman.
. "${SB_TOP_SRCDIR:-.}/tests/lib/rootless.sh"
rootless_run "$0"
docker_engine=podman
. "${SB_TOP_SRCDIR:-.}/tests/e2e/docker-daemon.sh"
