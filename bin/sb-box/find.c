/* SPDX-License-Identifier: MIT */
/* Tells whether a program could be started here, by the rules of execvp. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper.h"

#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"

/* 0, or the code that a command ends with whose program cannot be started. */
static int
look_at(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == EACCES ? SB_HELPER_NOEXEC : SB_HELPER_NOTFOUND;
	return S_ISREG(st.st_mode) && access(path, X_OK) == 0 ? 0 : SB_HELPER_NOEXEC;
}

int
helper_main_find(int argc, char **argv)
{
	const char *dirs = getenv("PATH"), *name = argc > 1 ? argv[1] : "";
	int worst = SB_HELPER_NOTFOUND;

	if (strchr(name, '/'))
		return look_at(name);
	for (dirs = dirs ? dirs : PATH_DEFAULT; *dirs && *name;) {
		size_t len = strcspn(dirs, ":");
		char path[4096];
		int code = SB_HELPER_NOTFOUND;

		if (snprintf(path, sizeof path, "%.*s/%s", len ? (int)len : 1, len ? dirs : ".",
			    name) < (int)sizeof path)
			code = look_at(path);
		if (code == 0)
			return 0;
		if (code == SB_HELPER_NOEXEC)
			worst = code;
		dirs += len + (dirs[len] == ':');
	}
	return worst;
}
