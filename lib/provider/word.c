/* SPDX-License-Identifier: MIT */
/* The words of the sandbox contract: one table for every enumeration of sb/sandbox.h. */
#include "config.h"

#include <sb/sandbox.h>

#include <string.h>

#include <base/buf.h>

#define WORDS_TEXT_MAX 512
#define WORD(name, text) text,
#define WORDS(MAP) \
	(const char *const[]) \
	{ \
		MAP(WORD) NULL \
	}

static const struct {
	const char *what; /* for messages */
	int code;         /* of a text that is none of the words */
	int n;
	const char *const *v;
} lists[] = {
	[SB_WORDS_BACKEND] = { "backend", SB_E_BACKEND_INVALID, SB_BACKEND_COUNT,
		WORDS(SB_BACKEND_MAP) },
	[SB_WORDS_SYNC_MODE] = { "sync mode", SB_E_INVAL, SB_SYNC_MODE_COUNT,
		WORDS(SB_SYNC_MODE_MAP) },
	[SB_WORDS_PERSIST] = { "persistence", SB_E_INVAL, SB_PERSIST_COUNT, WORDS(SB_PERSIST_MAP) },
	[SB_WORDS_WHEN] = { "sync reason", SB_E_INVAL, SB_WHEN_COUNT, WORDS(SB_WHEN_MAP) },
	[SB_WORDS_WAY] = { "sync direction", SB_E_INVAL, SB_WAY_COUNT, WORDS(SB_WAY_MAP) },
	[SB_WORDS_LIFE] = { "state", SB_E_INVAL, SB_LIFE_COUNT, WORDS(SB_LIFE_MAP) },
	[SB_WORDS_PERM_OP] = { "operation", SB_E_INVAL, SB_PERM_OP_COUNT, WORDS(SB_PERM_OP_MAP) },
	[SB_WORDS_DECISION] = { "decision", SB_E_INVAL, SB_DECISION_COUNT, WORDS(SB_DECISION_MAP) },
	[SB_WORDS_PERM_MODE] = { "permission mode", SB_E_INVAL, SB_PERM_MODE_COUNT,
		WORDS(SB_PERM_MODE_MAP) },
};

const char *
sb_word_name(enum sb_words list, int value)
{
	return value >= 0 && value < lists[list].n ? lists[list].v[value] : "?";
}

/* The message names the text and every word that would have been right. */
int
sb_word_parse(enum sb_words list, const char *s, int *out, struct sb_error *err)
{
	const char *const *words = lists[list].v;
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
	return sb_fail(err, lists[list].code, "%s \"%s\" is not known: use %s", lists[list].what,
		sb_escape(s ? s : "", s ? strlen(s) : 0, text, sizeof text),
		all.failed ? "another" : (const char *)all.data);
}

const char *const *
sb_word_all(enum sb_words list)
{
	return lists[list].v;
}
