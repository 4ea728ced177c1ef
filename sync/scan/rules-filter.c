/* SPDX-License-Identifier: MIT */
/* Goes through the patterns of a rule set and copies those that are wanted. */
#include "config.h"

#include <sync/scan/rules-priv.h>

#include <stdlib.h>
#include <stdlib.h>
#include <string.h>

struct copying {
	struct sb_rules *to;
	sb_rules_keep_fn keep;
	void *arg;
};

/* One list, oldest pattern first: blocks hang on each other from the newest on. */
static int
copy_list(const struct copying *c, const struct sb_rule_block *b, enum sb_rules_source src,
	const char *dir, size_t dir_len, struct sb_error *err)
{
	int r = b ? copy_list(c, b->prev, src, dir, dir_len, err) : 0;

	for (size_t i = 0; b && r == 0 && i < b->n; i++) {
		char text[SB_RULE_TEXT_MAX + 1];
		const char *at = b->v[i].text;
		uint16_t len = b->v[i].len;

		memcpy(text, at, len);
		text[len] = '\0';
		if (c->keep(src, dir, text, c->arg))
			r = sb_rules_add_texts(c->to, src, dir, dir_len, &at, &len, 1, err);
	}
	return r;
}

static int
copy_tracked(const struct copying *c, const struct sb_rules_tracked *t, struct sb_error *err)
{
	sb_autofree const char **v = t ? malloc((t->n + 1) * sizeof *v) : NULL;
	size_t n = 0;

	if (!t)
		return 0;
	if (!v)
		return sb_fail(err, SB_E_NOMEM, "exclude rules: out of memory");
	for (size_t i = 0; i < t->n; i++)
		if (c->keep(SB_RULES_TRACKED, "", t->v[i], c->arg))
			v[n++] = t->v[i];
	return n ? sb_rules_set_tracked(c->to, v, n, err) : 0;
}

struct sb_rules *
sb_rules_filter(struct sb_rules *from, sb_rules_keep_fn keep, void *arg, struct sb_error *err)
{
	sb_auto(sb_rules) struct sb_rules *to = sb_rules_new(err);
	struct copying c = { .to = to, .keep = keep, .arg = arg };
	int r;

	if (!to)
		return NULL;
	(void)pthread_rwlock_rdlock(&from->mu);
	to->fold = from->fold;
	r = copy_list(&c, from->command, SB_RULES_COMMAND, "", 0, err);
	if (r == 0)
		r = copy_list(&c, from->from_file, SB_RULES_FROM_FILE, "", 0, err);
	if (r == 0)
		r = copy_list(&c, from->builtin, SB_RULES_BUILTIN, "", 0, err);
	for (size_t i = 0; i < from->n_buckets; i++)
		for (const struct sb_rules_dir *d = from->buckets[i]; d && r == 0; d = d->next) {
			for (size_t k = 0; r == 0 && k < SB_RULES_FILES; k++)
				r = copy_list(&c, d->files[k], sb_rules_source_of(k), d->path,
					d->len, err);
		}
	if (r == 0)
		r = copy_tracked(&c, from->tracked, err);
	(void)pthread_rwlock_unlock(&from->mu);
	return r < 0 ? NULL : sb_steal(&to);
}
