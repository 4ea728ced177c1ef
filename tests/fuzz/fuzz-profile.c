/* SPDX-License-Identifier: MIT */
/*
 * Profiles. What is accepted has words of the contract only, and can be copied; a mistake names its
 * file and line.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <provider/profiles.h>
#include <provider/provider.h>

#include "fuzz.h"

static void
on_mistake(const char *file, size_t line, const char *text, void *arg)
{
	FUZZ_CHECK(file[0] && line > 0 && text[0]);
	(*(size_t *)arg)++;
}

static void
check_profile(const struct sb_profile *p)
{
	sb_auto(sb_profile) struct sb_profile copy = { 0 };

	FUZZ_CHECK(p->name && (unsigned)p->backend < SB_BACKEND_COUNT &&
		(unsigned)p->sync_mode < SB_SYNC_MODE_COUNT);
	FUZZ_CHECK((unsigned)p->persist < SB_PERSIST_COUNT &&
		(unsigned)p->permissions < SB_PERM_MODE_COUNT);
	for (size_t i = 0; i < p->env.n; i++)
		FUZZ_CHECK(strchr(p->env.v[i], '='));
	for (size_t i = 0; i < p->n_hooks; i++)
		FUZZ_CHECK(p->hooks[i].event && p->hooks[i].argv.n);
	FUZZ_CHECK(sb_profile_copy(p, &copy, NULL) == 0 && strcmp(copy.name, p->name) == 0);
}

/* What a user is asked to consent to is plain lines of text. */
static void
check_effects(const struct sb_profiles *ps)
{
	sb_autofree char *text = sb_profiles_effects_of(ps, ps->user_file, NULL);

	for (const char *p = text; p && *p; p++)
		FUZZ_CHECK((unsigned char)*p >= 0x20 || *p == '\n');
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sb_profiles_opts o = SB_PROFILES_OPTS_INIT;
	struct sb_profiles *ps;
	struct sb_error err = { 0 };
	size_t mistakes = 0;
	char path[64];
	int fd = memfd_create("profiles", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		return 0;
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	o.user_file = path;
	o.on_mistake = on_mistake;
	o.mistake_arg = &mistakes;
	ps = sb_profiles_load(&o, &err);
	FUZZ_CHECK(ps || (err.code < 0 && err.msg[0]));
	FUZZ_CHECK(!ps || mistakes == 0);
	for (size_t i = 0; ps && i < sb_profiles_count(ps); i++)
		check_profile(sb_profiles_at(ps, i, NULL, NULL));
	if (ps)
		check_effects(ps);
	sb_profiles_free(ps);
	(void)close(fd);
	return 0;
}
