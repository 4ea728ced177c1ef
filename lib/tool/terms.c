/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <tool/terms.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/strlist.h>
#include <sb/log.h>
#include <tool/environ.h>
#include <tool/words.h>

struct term {
	char id[SB_TERMS_ID];
	struct sb_proc *proc;
	unsigned users; /* calls under way, and one for the table */
};

struct sb_terms {
	const struct sb_roots *roots;
	pthread_mutex_t mu;
	struct term *v[SB_TERMS_MAX];
	unsigned last; /* number of the newest */
};

struct sb_terms *
sb_terms_new(const struct sb_roots *roots, struct sb_error *err)
{
	struct sb_terms *t = calloc(1, sizeof *t);

	if (!t) {
		sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	t->roots = roots;
	(void)pthread_mutex_init(&t->mu, NULL);
	return t;
}

static void
let_go(struct sb_terms *t, struct term *term)
{
	bool last;

	(void)pthread_mutex_lock(&t->mu);
	last = --term->users == 0;
	(void)pthread_mutex_unlock(&t->mu);
	if (last) {
		sb_proc_free(term->proc);
		free(term);
	}
}

void
sb_terms_free(struct sb_terms *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < SB_TERMS_MAX; i++)
		if (t->v[i])
			sb_proc_kill(t->v[i]->proc);
	for (size_t i = 0; i < SB_TERMS_MAX; i++)
		if (t->v[i])
			let_go(t, t->v[i]);
	(void)pthread_mutex_destroy(&t->mu);
	free(t);
}

/* With `take`, it leaves the table and the table's share of it is the caller's. */
static struct term *
get(struct sb_terms *t, const char *id, bool take, struct sb_error *err)
{
	struct term *found = NULL;
	char shown[80];

	(void)pthread_mutex_lock(&t->mu);
	for (size_t i = 0; !found && i < SB_TERMS_MAX; i++)
		if (t->v[i] && strcmp(t->v[i]->id, id) == 0) {
			found = t->v[i];
			if (take)
				t->v[i] = NULL;
			else
				found->users++;
		}
	(void)pthread_mutex_unlock(&t->mu);
	if (!found)
		sb_fail(err, SB_E_TERMINAL_NOT_FOUND, "there is no terminal '%s'",
			sb_escape(id, strlen(id), shown, sizeof shown));
	return found;
}

static int
put(struct sb_terms *t, struct term *term, struct sb_error *err)
{
	int r = SB_E_LIMIT;

	(void)pthread_mutex_lock(&t->mu);
	for (size_t i = 0; r < 0 && i < SB_TERMS_MAX; i++)
		if (!t->v[i]) {
			(void)snprintf(term->id, sizeof term->id, "term-%u", ++t->last);
			term->users = 1;
			t->v[i] = term;
			r = 0;
		}
	(void)pthread_mutex_unlock(&t->mu);
	return r < 0 ? sb_fail(err, r, "%d terminals are open: release one first", SB_TERMS_MAX) :
		       0;
}

static struct sb_proc *
start(struct sb_terms *t, const struct sb_terms_spec *spec, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist argv = { 0 };
	sb_auto(sb_strlist) struct sb_strlist env = { 0 };
	sb_auto(sb_roots_resolved) struct sb_roots_resolved cwd = { .fd = -1 };
	struct sb_proc_opts o = SB_PROC_OPTS_INIT;
	int r = sb_words_split(spec->command ? spec->command : "", &argv, err);

	sb_strlist_add_all(&argv, spec->args);
	if (r == 0)
		r = sb_strlist_check(&argv, err);
	if (r == 0)
		r = sb_environ_build(true, spec->env, &env, err);
	if (r == 0)
		r = sb_roots_resolve(t->roots, spec->cwd ? spec->cwd : ".", &cwd, err);
	if (r < 0)
		return NULL;
	o.argv = (const char *const *)argv.v;
	o.env = env.n ? (const char *const *)env.v : (const char *const[]){ NULL };
	o.cwd = cwd.path;
	o.captured = true;
	o.window = spec->window < 0                ? SB_TERMS_WINDOW :
		spec->window > SB_TERMS_WINDOW_MAX ? SB_TERMS_WINDOW_MAX :
						     (size_t)spec->window;
	return sb_proc_start(&o, err);
}

int
sb_terms_create(struct sb_terms *t, const struct sb_terms_spec *spec, char out_id[SB_TERMS_ID],
	struct sb_error *err)
{
	struct sb_error own = { 0 };
	struct term *term = calloc(1, sizeof *term);
	int r;

	if (!err)
		err = &own;
	if (!term)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	term->proc = start(t, spec, err);
	r = term->proc ? put(t, term, err) : err->code;
	if (r < 0) {
		sb_proc_free(term->proc);
		free(term);
		return r;
	}
	/* Only one that is released already could be gone by now, and nobody knows its name yet. */
	memcpy(out_id, term->id, sizeof term->id);
	return 0;
}

int
sb_terms_output(struct sb_terms *t, const char *id, struct sb_buf *out, bool *truncated,
	bool *ended, struct sb_proc_exit *how, struct sb_error *err)
{
	struct term *term = get(t, id, false, err);

	if (!term)
		return SB_E_TERMINAL_NOT_FOUND;
	*ended = sb_proc_wait(term->proc, NULL, sb_now_ms(), how, NULL) != SB_E_TIMEOUT;
	*truncated = sb_proc_text(term->proc, out);
	let_go(t, term);
	return sb_buf_check(out, "a terminal's output", err);
}

int
sb_terms_wait(struct sb_terms *t, const char *id, const struct sb_cancel *cancel, sb_deadline d,
	struct sb_proc_exit *out, struct sb_error *err)
{
	struct term *term = get(t, id, false, err);
	int r;

	if (!term)
		return SB_E_TERMINAL_NOT_FOUND;
	r = sb_proc_wait(term->proc, cancel, d, out, err);
	let_go(t, term);
	return r;
}

int
sb_terms_kill(struct sb_terms *t, const char *id, struct sb_error *err)
{
	struct term *term = get(t, id, false, err);

	if (!term)
		return SB_E_TERMINAL_NOT_FOUND;
	sb_proc_kill(term->proc);
	let_go(t, term);
	return 0;
}

int
sb_terms_release(struct sb_terms *t, const char *id, struct sb_error *err)
{
	struct term *term = get(t, id, true, err);

	if (!term)
		return SB_E_TERMINAL_NOT_FOUND;
	sb_proc_kill(term->proc);
	let_go(t, term);
	return 0;
}
