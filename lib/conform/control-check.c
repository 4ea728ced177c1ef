/* SPDX-License-Identifier: MIT */
/* Runs the checks of controls and reports each. */
#include "config.h"

#include <sb/control-check.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/random.h>
#include <base/str.h>
#include <conform/control-check-priv.h>

#define CHECK_MS 60000
#define NAMES_MAX 64

static const struct sb_control_check_row *const tables[] = { sb_control_check_life_rows,
	sb_control_check_process_rows, sb_control_check_state_rows };
#define N_TABLES (sizeof tables / sizeof *tables)

struct sb_control_call
sb_control_check_call(const struct sb_control_check *k)
{
	return (struct sb_control_call){ .deadline = sb_deadline_in(k->ms) };
}

int
sb_control_check_make(struct sb_control_check *k, struct sb_control_create_opts *o,
	struct sb_control_sandbox *out, struct sb_error *err)
{
	struct sb_control_call call = sb_control_check_call(k);
	sb_auto(sb_strlist) struct sb_strlist labels = { 0 };
	int r;

	sb_strlist_addf(&labels, "sbcheck=%s", k->label);
	sb_strlist_add_all(&labels, o->labels);
	o->labels = (const char *const *)labels.v;
	r = sb_strlist_check(&labels, err);
	if (r == 0)
		r = sb_control_create(k->c, o, &call, out, err);
	o->labels = NULL;
	if (r == 0 && !sb_strlist_has(sb_strlist_borrow(&k->made), out->id))
		sb_strlist_add(&k->made, out->id);
	return r;
}

int
sb_control_check_plain(struct sb_control_check *k, struct sb_control_sandbox *out,
	struct sb_error *err)
{
	struct sb_control_create_opts o = SB_CONTROL_CREATE_OPTS_INIT;
	int r = sb_control_check_make(k, &o, out, err);

	return r < 0 ? sb_wrap(err, r, "create") : r;
}

void
sb_control_check_key(struct sb_control_check *k, char out[64])
{
	(void)snprintf(out, 64, "sbcheck/%s/%u", k->label, k->keys++);
}

int
sb_control_check_count(struct sb_control_check *k, size_t *out, struct sb_error *err)
{
	struct sb_control_call call = sb_control_check_call(k);
	struct sb_control_filter f = SB_CONTROL_FILTER_INIT;
	char label[64];
	const char *labels[] = { label, NULL };
	struct sb_control_sandbox *v;
	int r;

	(void)snprintf(label, sizeof label, "sbcheck=%s", k->label);
	f.labels = labels;
	r = sb_control_list(k->c, &f, &call, &v, out, err);
	if (r < 0)
		return sb_wrap(err, r, "list");
	sb_control_list_free(v, *out);
	return 0;
}

int
sb_control_check_wait(struct sb_control_check *k, const char *id, struct sb_control_process *p,
	struct sb_error *err)
{
	struct sb_control_call call = sb_control_check_call(k);
	char process[SB_CONTROL_ID_MAX + 1];

	(void)snprintf(process, sizeof process, "%s", p->id);
	while (p->status != SB_CONTROL_EXITED) {
		int r = sb_control_status(k->c, id, process, &call, p, err);

		if (r < 0)
			return sb_wrap(err, r, "status");
		if (sb_deadline_passed(call.deadline))
			return broken(err, "process %s is still %s", process,
				sb_control_status_name(p->status));
		if (p->status != SB_CONTROL_EXITED)
			(void)poll(NULL, 0, 20);
	}
	return 0;
}

int
sb_control_check_launch(struct sb_control_check *k, const struct sb_control_launch_opts *o,
	struct sb_error *err)
{
	struct sb_control_call call = sb_control_check_call(k);
	struct sb_control_process p = { 0 };
	int r = sb_control_launch(k->c, o, &call, &p, err);

	if (r < 0)
		return sb_wrap(err, r, "launch");
	if (!p.id[0])
		return broken(err, "a launched process has no id");
	r = sb_control_check_wait(k, o->sandbox, &p, err);
	if (r < 0)
		return r;
	return p.has_exit ? p.exit_code : broken(err, "process %s exited without a code", p.id);
}

int
sb_control_check_sh(struct sb_control_check *k, const char *id, const char *script,
	struct sb_error *err)
{
	const char *args[] = { "-c", script, NULL };
	struct sb_control_launch_opts o = SB_CONTROL_LAUNCH_OPTS_INIT;

	o.sandbox = id;
	o.binary = "sh";
	o.args = args;
	return sb_control_check_launch(k, &o, err);
}

int
sb_control_check_sh_is(struct sb_control_check *k, const char *id, const char *script, int want,
	struct sb_error *err)
{
	int r = sb_control_check_sh(k, id, script, err);

	if (r >= 0 && r != want)
		return broken(err, "'%s' exits with %d, must be %d", script, r, want);
	return r < 0 ? r : 0;
}

int
sb_control_check_fails(int got, int want, const char *what, const struct sb_error *why,
	struct sb_error *err)
{
	if (got == want)
		return 0;
	if (got >= 0)
		return broken(err, "%s: succeeded, must fail with %s", what, sb_code_name(want));
	return broken(err, "%s: failed with %s (%s), must be %s", what, sb_code_name(got), why->msg,
		sb_code_name(want));
}

int
sb_control_check_skip(struct sb_error *err, const char *why)
{
	(void)sb_fail(err, SB_E_UNSUPPORTED, "%s", why);
	return SB_CONTROL_CHECK_SKIP;
}

/* Whatever a check made is removed. */
static int
clean_up(struct sb_control_check *k, struct sb_error *err)
{
	int r = 0;

	for (size_t i = 0; i < k->made.n; i++) {
		struct sb_control_call call = sb_control_check_call(k);
		int one = sb_control_destroy(k->c, k->made.v[i], true, &call, r < 0 ? NULL : err);

		if (one < 0 && one != SB_E_SANDBOX_NOT_FOUND && r == 0)
			r = sb_wrap(err, one, "clean up");
	}
	sb_strlist_free(&k->made);
	return r;
}

static void
report(const struct sb_control_check *k, const char *name, int r, const char *text)
{
	if (!k->o->report)
		return;
	if (r < 0)
		k->o->report(name, SB_CONFORM_FAILED, text, k->o->arg);
	else if (r == SB_CONTROL_CHECK_SKIP)
		k->o->report(name, SB_CONFORM_SKIPPED, text, k->o->arg);
	else
		k->o->report(name, SB_CONFORM_OK, NULL, k->o->arg);
}

/* 1: it failed. */
static int
run_check(struct sb_control_check *k, const struct sb_control_check_row *row)
{
	struct sb_error why = { 0 }, after = { 0 };
	int r = row->run(k, &why), cleaned = clean_up(k, &after);

	if (cleaned < 0 && r >= 0) {
		why = after;
		r = cleaned;
	}
	report(k, row->name, r, why.msg);
	return r < 0;
}

static bool
is_wanted(const struct sb_control_check_opts *o, const char *name)
{
	if (!o->only || !o->only[0])
		return true;
	for (const char *const *w = o->only; *w; w++)
		if (sb_str_starts(name, *w))
			return true;
	return false;
}

int
sb_control_check_run(const struct sb_control_check_opts *given, struct sb_error *err)
{
	struct sb_control_check_opts o = SB_CONTROL_CHECK_OPTS_INIT;
	struct sb_control_check k = { .o = &o, .caps = SB_CONTROL_CAPS_INIT };
	uint8_t raw[8];
	int failed = 0, r;

	memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
	k.c = o.control;
	k.ms = o.timeout_ms > 0 ? o.timeout_ms : CHECK_MS;
	r = sb_random(raw, sizeof raw, err);
	if (r < 0)
		return r;
	(void)sb_str_hex(raw, sizeof raw, k.label);
	/* Without these there is nothing to try the rest on. */
	if (run_check(&k, &sb_control_check_life_rows[0]))
		return 1;
	for (size_t t = 0; t < N_TABLES; t++)
		for (const struct sb_control_check_row *row = tables[t]; row->name; row++)
			if (row != &sb_control_check_life_rows[0] && is_wanted(&o, row->name))
				failed += run_check(&k, row);
	return failed;
}

const char *const *
sb_control_check_names(void)
{
	static const char *names[NAMES_MAX];
	size_t n = 0;

	for (size_t t = 0; t < N_TABLES; t++)
		for (const struct sb_control_check_row *row = tables[t];
			row->name && n + 1 < NAMES_MAX; row++)
			names[n++] = row->name;
	return names;
}

const char *
sb_control_check_about(const char *name)
{
	for (size_t t = 0; t < N_TABLES; t++)
		for (const struct sb_control_check_row *row = tables[t]; row->name; row++)
			if (strcmp(row->name, name) == 0)
				return row->about;
	return "";
}
