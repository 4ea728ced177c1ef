/* SPDX-License-Identifier: MIT */
#ifndef SB_DOCKER_PRIV_H
#define SB_DOCKER_PRIV_H

#include <stdatomic.h>

#include <base/buf.h>
#include <base/strlist.h>
#include <docker/cli.h>
#include <sb/docker.h>

SB_CLEANUP_VALUE(sb_docker_list, sb_docker_list_free)

#define SB_DOCKER_OUTPUT_MAX (16u << 20)

struct sb_docker {
	struct sb_cli cli;
	bool sbx;
	_Atomic int era; /* enum sb_docker_era */
	_Atomic bool probed;
	_Atomic bool warned;  /* that it is old */
	_Atomic bool proxies; /* of era B: "docker sandbox network proxy" is there */
};

/*
 * The clean absolute path of an agent's file, by a reference as sb_docker_extra_workspace takes; ""
 * for what is no local file. A new string.
 */
char *sb_docker_agent_file(const char *agent, sb_docker_lookup_fn alias, void *arg);

#endif
