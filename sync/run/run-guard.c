/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/run/run-guard.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <base/file.h>
#include <base/path.h>
#include <sync/scan/gitconfig.h>

static ssize_t
read_beginning(const char *path, char *buf, size_t size, void *arg)
{
	const struct sb_replica *rep = arg;
	sb_autoclose int fd = *path == '/' ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) :
		rep->rootfd < 0            ? -1 :
				  sb_path_open(rep->rootfd, path, O_RDONLY | O_NONBLOCK, 0, NULL);

	return fd < 0 ? -1 : sb_file_read_full(fd, buf, size, NULL);
}

const struct sb_guard_files *
sb_run_guard_files(struct sb_run_guard *g, const struct sb_replica *rep)
{
	const char *home = getenv("HOME");

	for (size_t i = 0, n = sb_gitconfig_user_files(g->config_paths); i <= n; i++)
		g->configs[i] = i < n ? g->config_paths[i] : NULL;
	g->files = (struct sb_guard_files){ .root = rep->root,
		.real_root = realpath(rep->root, g->real_root) ? g->real_root : NULL,
		.home = home,
		.git_configs = g->configs,
		.read = read_beginning,
		.arg = (void *)rep };
	return &g->files;
}
