/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/session/session-rules.h>

#include <stdio.h>

#include <base/file.h>

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
