/* SPDX-License-Identifier: MIT */
/* The configuration as it counts, for people, in the form that a file of it has. */
#include "config.h"

#include <bin/sbhostd/hostd.h>

#include <stddef.h>
#include <string.h>

struct unit {
	const char *name;
	uint64_t factor;
};

/* A number with the largest unit that divides it. */
static void
print_in(FILE *f, uint64_t v, const struct unit *units)
{
	while (v % units->factor != 0)
		units++;
	(void)fprintf(f, "%llu%s\n", (unsigned long long)(v / units->factor), v ? units->name : "");
}

/* Text between double quotes where YAML could read something else in it. */
static void
print_text(FILE *f, const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/._-";

	if (s[0] && strspn(s, plain) == strlen(s)) {
		(void)fprintf(f, "%s\n", s);
		return;
	}
	(void)fputc('"', f);
	for (; *s; s++)
		(void)fprintf(f, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
	(void)fputs("\"\n", f);
}

/* False: it has no value. */
static bool
has_value(const struct sb_opt *o, const void *at)
{
	switch (o->kind) {
	case SB_OPT_STRING: return *(const char *const *)at != NULL;
	case SB_OPT_LIST: return ((const struct sb_opt_list *)at)->n > 0;
	default: return true;
	}
}

static void
print_value(FILE *f, const struct sb_opt *o, const void *at)
{
	static const struct unit sizes[] = { { "G", 1 << 30 }, { "M", 1 << 20 }, { "K", 1 << 10 },
		{ "", 1 } };
	static const struct unit times[] = { { "d", 86400000 }, { "h", 3600000 }, { "m", 60000 },
		{ "s", 1000 }, { "ms", 1 } };
	const struct sb_opt_list *l = at;

	switch (o->kind) {
	case SB_OPT_FLAG: (void)fputs(*(const bool *)at ? "true\n" : "false\n", f); break;
	case SB_OPT_COUNT: (void)fprintf(f, "%d\n", *(const int *)at); break;
	case SB_OPT_STRING: print_text(f, *(const char *const *)at); break;
	case SB_OPT_INT: (void)fprintf(f, "%lld\n", (long long)*(const int64_t *)at); break;
	case SB_OPT_SIZE: print_in(f, *(const uint64_t *)at, sizes); break;
	case SB_OPT_TIME: print_in(f, (uint64_t) * (const int64_t *)at, times); break;
	case SB_OPT_CHOICE: (void)fprintf(f, "%s\n", o->choices[*(const int *)at]); break;
	case SB_OPT_LIST:
		(void)fputc('\n', f);
		for (size_t i = 0; i < l->n; i++) {
			(void)fputs("  - ", f);
			print_text(f, l->v[i]);
		}
		break;
	}
}

int
hostd_config_print(const struct hostd_config *c, FILE *f)
{
	for (const struct sb_opt *o = hostd_opts; o->name; o++) {
		const void *at = (const char *)c + o->offset;

		/* What is no setting. */
		if (at == (const void *)&c->config_file || at == (const void *)&c->check ||
			at == (const void *)&c->help || at == (const void *)&c->version ||
			at == (const void *)&c->completion || at == (const void *)&c->show_config)
			continue;
		if (has_value(o, at)) {
			(void)fprintf(f, "%s: ", o->name);
			print_value(f, o, at);
		} else {
			(void)fprintf(f, "# %s:\n", o->name);
		}
	}
	for (size_t i = 0; i < c->n_tokens; i++)
		(void)fprintf(f, "# token %s, role %s\n",
			c->tokens[i].name ? c->tokens[i].name : "",
			c->tokens[i].role ? c->tokens[i].role : "");
	return fflush(f) == 0 && !ferror(f) ? 0 : -1;
}
