/* SPDX-License-Identifier: MIT */
/* Runs the checks of the conformance suite and reports each (declared in sb/conform.h). */
#include "config.h"

#include <conform/conform-priv.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <base/path.h>

static const struct sb_conform_check *const tables[] = { sb_conform_life_checks,
	sb_conform_keep_checks, sb_conform_sync_checks, sb_conform_launch_checks,
	sb_conform_tools_checks, sb_conform_limits_checks };
#define N_TABLES (sizeof tables / sizeof *tables)
#define NAMES_MAX 128

int
sb_conform_skip(struct sb_error *err, const char *why)
{
	sb_fail(err, SB_E_UNSUPPORTED, "%s", why);
	return SB_CONFORM_SKIP_CHECK;
}

int
sb_conform_must_fail(int got, int want, const char *what, const struct sb_error *why,
	struct sb_error *err)
{
	if (got == want)
		return 0;
	if (want == 0)
		return sb_fail(err, got, "%s: %s", what, why->msg);
	if (got >= 0)
		return broken(err, "%s: succeeded, must fail with %s", what, sb_code_name(want));
	return broken(err, "%s: failed with %s (%s), must be %s", what, sb_code_name(got), why->msg,
		sb_code_name(want));
}

/* Whatever a check left is removed: first as the contract says, then for good. */
static int
clean_up(struct sb_conform *c, struct sb_error *err)
{
	int r = 0;

	while (c->open) {
		struct sb_conform_sandbox *b = c->open;
		struct sb_error why = { 0 };

		c->open = b->next;
		if (!b->gone && b->prepared.state.sandbox_id) {
			int code = sb_conform_destroy(b, true, &why);

			if (code < 0 && r == 0)
				r = sb_fail(err, code, "clean up: %s", why.msg);
		}
		sb_prepared_free(&b->prepared);
		sb_profile_free(&b->profile);
		free(b);
	}
	return r;
}

static int
make_dir(struct sb_conform *c, const char *name, struct sb_error *err)
{
	(void)snprintf(c->dir, sizeof c->dir, "%s/%s", c->o->work_dir, name);
	return mkdir(c->dir, 0755) < 0 ? sb_fail_errno(err, "%s", c->dir) : 0;
}

static void
remove_dir(const struct sb_conform *c, const char *name)
{
	int fd = open(c->o->work_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		(void)sb_path_remove_tree(fd, name, NULL);
	sb_cleanup_close_(&fd);
}

static void
report(const struct sb_conform *c, const char *name, enum sb_conform_result what, const char *text)
{
	if (c->o->report)
		c->o->report(name, what, text, c->o->arg);
}

/* Runs one check. 1: it failed. */
static int
run_check(struct sb_conform *c, const struct sb_conform_check *k)
{
	struct sb_error why = { 0 }, after = { 0 };
	int r = make_dir(c, k->name, &why), cleaned;

	c->made = 0;
	if (r == 0)
		r = k->run(c, &why);
	cleaned = clean_up(c, &after);
	remove_dir(c, k->name);
	/* A failure to clean up is one of its own, or comes on top. */
	if (cleaned < 0 && r == 0) {
		why = after;
		r = cleaned;
	} else if (cleaned < 0 && r < 0) {
		struct sb_error first = why;

		(void)sb_fail(&why, r, "%s; then %s", first.msg, after.msg);
	}
	if (r < 0)
		report(c, k->name, SB_CONFORM_FAILED, why.msg);
	else
		report(c, k->name, r == SB_CONFORM_SKIP_CHECK ? SB_CONFORM_SKIPPED : SB_CONFORM_OK,
			r == SB_CONFORM_SKIP_CHECK ? why.msg : NULL);
	return r < 0;
}

static bool
is_wanted(const struct sb_conform_opts *o, const char *name)
{
	if (!o->only || !o->only[0])
		return true;
	for (const char *const *w = o->only; *w; w++)
		if (strncmp(name, *w, strlen(*w)) == 0)
			return true;
	return false;
}

static int
begin(struct sb_conform *c, const struct sb_conform_opts *given, struct sb_conform_opts *o,
	struct sb_error *err)
{
	memcpy(o, given, given->size < sizeof *o ? given->size : sizeof *o);
	c->o = o;
	c->call_ms = o->timeout_ms > 0 ? o->timeout_ms : CONFORM_MS;
	if (!o->profile || !o->work_dir)
		return sb_fail(err, SB_E_INVAL,
			"the suite needs a profile and a directory to work in");
	return 0;
}

int
sb_conform_run(const struct sb_conform_opts *given, struct sb_error *err)
{
	struct sb_conform_opts o = SB_CONFORM_OPTS_INIT;
	struct sb_conform c = { 0 };
	int failed = 0, r = begin(&c, given, &o, err);

	if (r < 0)
		return r;
	/* Without these there is nothing to try the rest on. */
	failed += run_check(&c, &sb_conform_life_checks[0]);
	if (failed)
		return failed;
	c.caps = (struct sb_capabilities)SB_CAPABILITIES_INIT;
	(void)sb_provider_capabilities(o.provider, o.profile, &c.caps, NULL);
	for (size_t t = 0; t < N_TABLES; t++)
		for (const struct sb_conform_check *k = tables[t]; k->name; k++)
			if (k != &sb_conform_life_checks[0] && is_wanted(&o, k->name))
				failed += run_check(&c, k);
	return failed;
}

int
sb_conform_step(const struct sb_conform_opts *given, const char *step, const char *file,
	struct sb_error *err)
{
	struct sb_conform_opts o = SB_CONFORM_OPTS_INIT;
	struct sb_conform c = { 0 };
	int r = begin(&c, given, &o, err);

	return r < 0 ? r : sb_conform_life_step(&c, step, file, err);
}

const char *const *
sb_conform_names(void)
{
	static const char *names[NAMES_MAX];
	size_t n = 0;

	for (size_t t = 0; t < N_TABLES; t++)
		for (const struct sb_conform_check *k = tables[t]; k->name && n + 1 < NAMES_MAX;
			k++)
			names[n++] = k->name;
	return names;
}

const char *
sb_conform_about(const char *name)
{
	for (size_t t = 0; t < N_TABLES; t++)
		for (const struct sb_conform_check *k = tables[t]; k->name; k++)
			if (strcmp(k->name, name) == 0)
				return k->about;
	return "";
}
