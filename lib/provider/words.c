/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sb/sandbox.h>

#include <string.h>

#include <base/buf.h>

#define WORDS_TEXT_MAX 512

/* The message names the text and every word that would have been right. */
static int
parse(const char *s, const char *const *words, const char *what, int code, int *out,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf all = { 0 };
	char text[128];

	for (int i = 0; s && words[i]; i++)
		if (strcmp(words[i], s) == 0) {
			*out = i;
			return 0;
		}
	sb_buf_init(&all, WORDS_TEXT_MAX);
	for (int i = 0; words[i]; i++)
		sb_buf_addf(&all, "%s%s", i ? ", " : "", words[i]);
	return sb_fail(err, code, "%s \"%s\" is not known: use %s", what,
		sb_escape(s ? s : "", s ? strlen(s) : 0, text, sizeof text),
		all.failed ? "another" : (const char *)all.data);
}

#define WORD(name, text) text,
#define WORDS_DEFINE(noun, NOUN, MAP, what, code) \
	static const char *const noun##_all[] = { MAP(WORD) NULL }; \
	const char *sb_##noun##_name(enum sb_##noun v) \
	{ \
		return (unsigned)v < SB_##NOUN##_COUNT ? noun##_all[v] : "?"; \
	} \
	int sb_##noun##_parse(const char *s, enum sb_##noun *out, struct sb_error *err) \
	{ \
		int v = 0, r = parse(s, noun##_all, what, code, &v, err); \
\
		if (r == 0) \
			*out = (enum sb_##noun)v; \
		return r; \
	} \
	const char *const *sb_##noun##_words(void) \
	{ \
		return noun##_all; \
	}

WORDS_DEFINE(backend, BACKEND, SB_BACKEND_MAP, "backend", SB_E_BACKEND_INVALID)
WORDS_DEFINE(sync_mode, SYNC_MODE, SB_SYNC_MODE_MAP, "sync mode", SB_E_INVAL)
WORDS_DEFINE(persist, PERSIST, SB_PERSIST_MAP, "persistence", SB_E_INVAL)
WORDS_DEFINE(when, WHEN, SB_WHEN_MAP, "sync reason", SB_E_INVAL)
WORDS_DEFINE(way, WAY, SB_WAY_MAP, "sync direction", SB_E_INVAL)
WORDS_DEFINE(life, LIFE, SB_LIFE_MAP, "state", SB_E_INVAL)
WORDS_DEFINE(perm_op, PERM_OP, SB_PERM_OP_MAP, "operation", SB_E_INVAL)
WORDS_DEFINE(decision, DECISION, SB_DECISION_MAP, "decision", SB_E_INVAL)
WORDS_DEFINE(perm_mode, PERM_MODE, SB_PERM_MODE_MAP, "permission mode", SB_E_INVAL)

#define BIT(name) (1u << SB_LIFE_##name)

/* Where each state may lead. From `destroyed` and `stopped` a session may be started again. */
static const unsigned next_of[SB_LIFE_COUNT] = {
	[SB_LIFE_CREATING] =
		BIT(READY) | BIT(FOUND) | BIT(PREPARED) | BIT(DESTROYED) | BIT(STOPPED),
	[SB_LIFE_READY] = BIT(PREPARED) | BIT(CREATING) | BIT(DESTROYED),
	[SB_LIFE_FOUND] = BIT(PREPARED) | BIT(CREATING) | BIT(UNSYNCED) | BIT(DESTROYED),
	[SB_LIFE_PREPARED] =
		BIT(CREATING) | BIT(ACTIVE) | BIT(STOPPING) | BIT(STOPPED) | BIT(DESTROYED),
	[SB_LIFE_ACTIVE] = BIT(STOPPING) | BIT(UNSYNCED),
	[SB_LIFE_STOPPING] = BIT(UNSYNCED) | BIT(STOPPED) | BIT(DESTROYED),
	[SB_LIFE_UNSYNCED] = BIT(STOPPING) | BIT(ACTIVE) | BIT(STOPPED) | BIT(DESTROYED),
	[SB_LIFE_STOPPED] =
		BIT(CREATING) | BIT(PREPARED) | BIT(ACTIVE) | BIT(STOPPING) | BIT(DESTROYED),
	[SB_LIFE_DESTROYED] = BIT(CREATING),
};

bool
sb_life_allows(enum sb_life from, enum sb_life to)
{
	if ((unsigned)from >= SB_LIFE_COUNT || (unsigned)to >= SB_LIFE_COUNT)
		return false;
	return from == to || (next_of[from] & (1u << to));
}

int
sb_call_check(const struct sb_call *call, const char *what, struct sb_error *err)
{
	return call ? sb_check_alive(call->cancel, call->deadline, what, err) : 0;
}

struct sb_call
sb_call_within(const struct sb_call *call, int64_t ms)
{
	struct sb_call c = SB_CALL_INIT;

	if (call)
		c = *call;
	c.deadline = sb_deadline_min(c.deadline, sb_deadline_in(ms));
	return c;
}
