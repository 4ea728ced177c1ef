/* SPDX-License-Identifier: MIT */
/* Options that fingers know from rsync: what stands for them here. */
#include "config.h"

#include <string.h>

#include <bin/sbsync/sbsync.h>

static const struct {
	const char *option, *instead;
} habits[] = {
	{ "-a", "is not needed: modes, times and links are always kept, owners never" },
	{ "--archive", "is not needed: modes, times and links are always kept, owners never" },
	{ "-r", "is not needed: directories are always synced with all that is in them" },
	{ "-t", "is not needed: times are always kept" },
	{ "-u", "is not there: a session tells an edit from an older file; see sbsync start" },
	{ "-z", "is not needed: what is sent is compressed as the link is worth it (--compress)" },
	{ "-P", "is --progress always; a transfer that was cut goes on by itself" },
	{ "-H", "is not needed: hard links are always kept" },
	{ "-S", "is not needed: holes in files are kept" },
	{ "-A", "is --acls" },
	{ "-X", "is --xattrs" },
	{ "-o", "is not there: files belong to whoever runs the sync on each side" },
	{ "--include", "is --exclude '!PATTERN', behind the --exclude it makes an exception of" },
	{ "--delete", "is what mirror does; --max-delete says how much may go" },
	{ "--partial", "is not needed: a transfer that was cut goes on by itself" },
	{ "--chmod", "is not there: modes are kept, without set-id bits from a sandbox" },
	{ "--group", "is not there: files belong to whoever runs the sync on each side" },
};

const char *
habit_of(const char *message, const char **out_option)
{
	const char *said = strstr(message, "unknown option ");

	if (!said)
		return NULL;
	said += strlen("unknown option ");
	for (size_t i = 0; i < sizeof habits / sizeof habits[0]; i++) {
		size_t n = strlen(habits[i].option);

		if (strncmp(said, habits[i].option, n) == 0 &&
			!strchr("-_", said[n] ? said[n] : '.') && strcspn(said, ":;, =") == n) {
			*out_option = habits[i].option;
			return habits[i].instead;
		}
	}
	return NULL;
}
