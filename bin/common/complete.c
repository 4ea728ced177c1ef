/* SPDX-License-Identifier: MIT */
/* What an option's value and a verb's operands can be, as --help calls them. */
#include "config.h"

#include <bin/common/complete.h>

#include <ctype.h>
#include <string.h>

#include <bin/common/complete-priv.h>

const char *const complete_shells[] = { "bash", "zsh", "fish", NULL };

struct known {
	const char *word;
	enum complete_kind kind;
};

/* Names of values and operands that say what they are; any other can be anything. */
static const struct known known[] = {
	{ "FILE", COMPLETE_FILE },
	{ "PATH", COMPLETE_FILE },
	{ "SRC", COMPLETE_FILE },
	{ "DST", COMPLETE_FILE },
	{ "LOCAL", COMPLETE_FILE },
	{ "REMOTE", COMPLETE_FILE },
	{ "ARG", COMPLETE_FILE },
	{ "DIR", COMPLETE_DIR },
	{ "CMD", COMPLETE_COMMAND },
	{ "COMMAND", COMPLETE_COMMAND },
	{ "SESSION", COMPLETE_NAME },
	{ "ID", COMPLETE_NAME },
};

static enum complete_kind
kind_of(const char *word, size_t len)
{
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (strlen(known[i].word) == len && memcmp(known[i].word, word, len) == 0)
			return known[i].kind;
	return COMPLETE_NOTHING;
}

static void
add_word(struct complete_place *p, const char *word, size_t len)
{
	size_t used = strlen(p->words);

	if (used + len + 2 > sizeof p->words)
		return;
	if (used)
		p->words[used++] = ' ';
	memcpy(p->words + used, word, len);
	p->words[used + len] = '\0';
	p->kind = COMPLETE_WORDS;
}

struct complete_place
complete_value(const struct sb_opt *o)
{
	struct complete_place p = { COMPLETE_NOTHING, "", false };

	if (o->kind == SB_OPT_CHOICE)
		for (const char *const *c = o->choices; *c; c++)
			add_word(&p, *c, strlen(*c));
	else if (o->value && strcmp(o->value, "ID") != 0)
		p.kind = kind_of(o->value, strlen(o->value));
	return p;
}

/* Words in small letters stand for themselves and all in the first place; the others count up. */
int
complete_operands(const char *args, struct complete_place *out, int max)
{
	bool literal = false;
	int n = 0;

	for (const char *s = args ? args : ""; *s;) {
		const char *begin = s;
		size_t len;

		while (isalnum((unsigned char)*s) || (s > begin && (*s == '_' || *s == '-')))
			s++;
		len = (size_t)(s - begin);
		if (len == 0) {
			s++;
		} else if (islower((unsigned char)*begin)) {
			if (!literal) {
				memset(&out[0], 0, sizeof out[0]);
				n = n > 0 ? n : 1;
				literal = true;
			}
			add_word(&out[0], begin, len);
		} else if (n < max) {
			bool repeats = strncmp(s, "...", 3) == 0 || strncmp(s, "]...", 4) == 0;

			out[n] = (struct complete_place){ kind_of(begin, len), "", repeats };
			n++;
		}
	}
	return n;
}

void
complete_quote(FILE *f, const char *s, const char *escaped)
{
	(void)fputc('\'', f);
	for (; *s; s++)
		if (*s == '\'')
			(void)fputs(escaped, f);
		else
			(void)fputc(*s, f);
	(void)fputc('\'', f);
}

void
complete_print(FILE *f, const struct complete_program *p, enum complete_shell shell)
{
	switch (shell) {
	case COMPLETE_BASH: complete_bash(f, p); break;
	case COMPLETE_ZSH: complete_zsh(f, p); break;
	case COMPLETE_FISH: complete_fish(f, p); break;
	}
}
