#!/bin/sh
# SPDX-License-Identifier: MIT
# docker.sh with containers of a real Docker daemon; the whole suite with SB_PROVIDER_FULL=1.
docker_engine=docker
docker_some=yes
. "${SB_TOP_SRCDIR:-.}/tests/provider/docker.sh"
