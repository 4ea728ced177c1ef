#!/bin/sh
# SPDX-License-Identifier: MIT
# docker.sh with containers of a rootless Podman; the whole suite with SB_PROVIDER_FULL=1.
. "${SB_TOP_SRCDIR:-.}/tests/lib/rootless.sh"
rootless_run "$0"
docker_some=yes
. "${SB_TOP_SRCDIR:-.}/tests/provider/docker.sh"
