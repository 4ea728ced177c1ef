/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/session/session-rules.h>

#include <stdio.h>
#include <string.h>

#include <base/file.h>
#include <sync/run/run.h>
#include <sync/session/session-hold.h>

#define RULES_MAX (16u << 20)

static void
explain(const struct sb_session *s, size_t k, const char *name, const struct sb_error *why,
	struct sb_error *err)
{
	(void)sb_fail(err, why->code,
		"the exclude rules of session '%s' (%s) cannot be read: %.120s; nothing was "
		"changed. To "
		"begin anew, with both sides kept: sbsync rm --discard --yes %s && sbsync start "
		"--name %s %.150s %.150s",
		s->name, name, why->msg, s->name, s->name, s->pairs[k].local, s->pairs[k].remote);
}

struct sb_rules *
sb_session_rules_load(const struct sb_session *s, int dirfd, size_t k, struct sb_buf *enc,
	struct sb_error *err)
{
	struct sb_buf own = { 0 }, *b = enc ? enc : &own;
	struct sb_rules *rules = NULL;
	struct sb_error why = { 0 };
	char name[32];

	(void)snprintf(name, sizeof name, "root%zu.rules", k);
	if (sb_file_read(dirfd, name, RULES_MAX, b, &why) == 0)
		rules = sb_rules_decode(b->data, b->len, &why);
	sb_buf_free(&own);
	if (!rules)
		explain(s, k, name, &why, err);
	return rules;
}

/* All but .sbsyncignore files and what git tracks, counted. */
static bool
keep_own(enum sb_rules_source src, const char *dir, const char *text, void *arg)
{
	struct sb_session_rules *x = arg;

	(void)dir;
	(void)text;
	if (src == SB_RULES_SBSYNCIGNORE || src == SB_RULES_TRACKED)
		return false;
	x->own[src]++;
	return true;
}

int
sb_session_rules_for_run(const struct sb_session *s, int dirfd, size_t k,
	const struct sb_sync_opts *o, struct sb_session_rules *out, struct sb_error *err)
{
	sb_auto(sb_rules) struct sb_rules *all = sb_session_rules_load(s, dirfd, k, NULL, err);
	int r = 0;

	memset(out, 0, sizeof *out);
	if (!all)
		return err && err->code ? err->code : SB_E_CORRUPT;
	out->rules = sb_rules_filter(all, keep_own, out, err);
	if (!out->rules)
		return SB_E_NOMEM;
	out->extra = (o->exclude && o->exclude[0]) || (o->exclude_from && o->exclude_from[0]);
	if (out->extra)
		r = sb_run_add_rules(o, s->pairs[k].local, out->rules, err);
	if (r < 0) {
		sb_rules_free(out->rules);
		out->rules = NULL;
	}
	return r;
}

/* Those of the session came first in each list; ignore files are all its own. */
static bool
keep_first(enum sb_rules_source src, const char *dir, const char *text, void *arg)
{
	size_t *left = arg;

	(void)dir;
	(void)text;
	if (src == SB_RULES_SBSYNCIGNORE || src == SB_RULES_GITIGNORE ||
		src == SB_RULES_GITEXCLUDE || src == SB_RULES_TRACKED)
		return true;
	return left[src] > 0 && left[src]--;
}

static int
save(int dirfd, size_t k, const struct sb_rules *rules, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	sb_auto(sb_buf) struct sb_buf old = { 0 };
	char name[32];
	int r;

	(void)snprintf(name, sizeof name, "root%zu.rules", k);
	sb_buf_init(&b, RULES_MAX);
	r = sb_rules_encode(rules, &b, err);
	if (r < 0)
		return r;
	if (sb_file_read(dirfd, name, RULES_MAX, &old, NULL) == 0 && old.len == b.len &&
		memcmp(old.data, b.data, b.len) == 0)
		return 0;
	return sb_file_replace(dirfd, name, b.data, b.len, 0600, err);
}

int
sb_session_rules_save(int dirfd, size_t k, const struct sb_session_rules *x, struct sb_error *err)
{
	sb_auto(sb_rules) struct sb_rules *own = NULL;
	size_t left[SB_RULES_SOURCES];

	memcpy(left, x->own, sizeof left);
	own = sb_rules_filter(x->rules, keep_first, left, err);
	return own ? save(dirfd, k, own, err) : SB_E_NOMEM;
}

struct listing {
	struct sb_session_ignored_list *out;
	int code;
	const char *without; /* a pattern that goes; NULL: none */
	size_t gone;
};

static bool
note_pattern(enum sb_rules_source src, const char *dir, const char *text, void *arg)
{
	static const char *const words[] = { "built-in", "file", "gitignore", "sbsyncignore",
		"session", "gitexclude" };
	struct listing *l = arg;

	if (src == SB_RULES_BUILTIN || src == SB_RULES_TRACKED || l->code < 0)
		return true;
	sb_strlist_addf(&l->out->patterns, "%s", text);
	sb_strlist_addf(&l->out->sources, "%s", words[src]);
	sb_strlist_addf(&l->out->dirs, "%s", dir);
	return true;
}

int
sb_session_ignored(const struct sb_session *s, const char *state_dir, size_t k,
	struct sb_session_ignored_list *out, struct sb_error *err)
{
	struct listing l = { .out = out };
	sb_auto(sb_rules) struct sb_rules *all = NULL;
	sb_auto(sb_rules) struct sb_rules *copy = NULL;
	struct sb_session_held h;
	int r = sb_session_hold(state_dir, s->name, false, &h, err);

	memset(out, 0, sizeof *out);
	if (r < 0)
		return r;
	all = sb_session_rules_load(s, h.dirfd, k, NULL, err);
	copy = all ? sb_rules_filter(all, note_pattern, &l, err) : NULL;
	sb_session_let_go(&h);
	r = copy                 ? sb_strlist_check(&out->patterns, err) :
		err && err->code ? err->code :
				   SB_E_NOMEM;
	if (r == 0)
		r = sb_strlist_check(&out->sources, err);
	if (r == 0)
		r = sb_strlist_check(&out->dirs, err);
	if (r < 0)
		sb_session_ignored_free(out);
	return r;
}

void
sb_session_ignored_free(struct sb_session_ignored_list *l)
{
	sb_strlist_free(&l->patterns);
	sb_strlist_free(&l->sources);
	sb_strlist_free(&l->dirs);
}

static bool
keep_others(enum sb_rules_source src, const char *dir, const char *text, void *arg)
{
	struct listing *l = arg;

	(void)dir;
	if ((src != SB_RULES_COMMAND && src != SB_RULES_FROM_FILE) || strcmp(text, l->without) != 0)
		return true;
	l->gone++;
	return false;
}

static int
change_one(const struct sb_session *s, int dirfd, size_t k, const char *pattern, bool add,
	size_t *gone, struct sb_error *err)
{
	struct listing l = { .without = pattern };
	sb_auto(sb_rules) struct sb_rules *all = sb_session_rules_load(s, dirfd, k, NULL, err);
	/* A pattern that is there already is set anew: the last one counts. */
	sb_auto(sb_rules) struct sb_rules *next =
		all ? sb_rules_filter(all, keep_others, &l, err) : NULL;
	int r = next ? 0 : err && err->code ? err->code : SB_E_NOMEM;

	if (r == 0 && add)
		r = sb_rules_add(next, SB_RULES_COMMAND, pattern, err);
	*gone += l.gone;
	return r < 0 ? r : save(dirfd, k, next, err);
}

int
sb_session_ignore(const struct sb_session *s, const char *state_dir, const char *pattern, bool add,
	struct sb_error *err)
{
	struct sb_session_held h;
	size_t gone = 0;
	int r = pattern[0] ? sb_session_hold(state_dir, s->name, false, &h, err) :
			     sb_fail(err, SB_E_INVAL, "an empty pattern excludes nothing");

	if (r < 0)
		return r;
	for (size_t k = 0; r == 0 && k < s->n_pairs; k++)
		r = change_one(s, h.dirfd, k, pattern, add, &gone, err);
	sb_session_let_go(&h);
	if (r == 0 && !add && !gone)
		r = sb_fail(err, SB_E_NOTFOUND,
			"'%s' is no pattern of session '%s': sbsync ignore list %s shows them; "
			"those "
			"of ignore files are changed there",
			pattern, s->name, s->name);
	return r;
}
