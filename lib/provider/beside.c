/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <provider/beside.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/str.h>

char *
sb_beside_program(const char *name)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	self[n > 0 ? n : 0] = '\0';
	for (int level = 0; level < 2; level++) {
		char *slash = strrchr(self, '/');
		char *path;

		if (!slash || (level == 1 && strcmp(slash, "/.libs") != 0))
			break;
		*slash = '\0';
		path = sb_str_printf("%s/%s", self, name);
		if (!path || access(path, X_OK) == 0)
			return path;
		free(path);
	}
	return strdup(name);
}
