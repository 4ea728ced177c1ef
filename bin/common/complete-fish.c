/* SPDX-License-Identifier: MIT */
/* Completion for fish: one line for each option of each verb. */
#include "config.h"

#include <bin/common/complete-priv.h>

#include <string.h>

#define QUOTE "\\'"

static void
print_text(FILE *f, const char *s)
{
	complete_quote(f, s, QUOTE);
}

/* "complete -c PROGRAM -n CONDITION": at that verb, perhaps with so many operands before. */
static void
print_begin(FILE *f, const char *program, const char *verb, int place, bool repeats)
{
	(void)fprintf(f, "complete -c %s", program);
	if (!verb)
		return;
	(void)fprintf(f, " -n \"__%s_at '%s'", program, verb);
	if (place >= 0)
		(void)fprintf(f, " %s %d", repeats ? "-ge" : "-eq", place);
	(void)fputc('"', f);
}

/* What to offer: -F lets file names through, which nothing else does (-f). */
static void
print_offer(FILE *f, const struct complete_place *p, const char *names)
{
	switch (p->kind) {
	case COMPLETE_NOTHING: break;
	case COMPLETE_FILE: (void)fputs(" -F", f); break;
	case COMPLETE_DIR: (void)fputs(" -a '(__fish_complete_directories)'", f); break;
	case COMPLETE_COMMAND: (void)fputs(" -a '(__fish_complete_command)'", f); break;
	case COMPLETE_NAME:
		if (names)
			(void)fprintf(f, " -a '(%s)'", names);
		break;
	case COMPLETE_WORDS: (void)fprintf(f, " -a '%s'", p->words); break;
	}
}

static void
print_options(FILE *f, const char *program, const char *verb, const struct sb_opt *opts)
{
	for (const struct sb_opt *o = opts; o && o->name; o++) {
		struct complete_place v = complete_value(o);

		print_begin(f, program, verb, -1, false);
		(void)fprintf(f, " -l %s", o->name);
		if (o->letter)
			(void)fprintf(f, " -s %c", o->letter);
		if (o->value)
			(void)fputs(v.kind == COMPLETE_FILE ? " -r" : " -x", f);
		if (o->value)
			print_offer(f, &v, NULL);
		(void)fputs(" -d ", f);
		print_text(f, o->help);
		(void)fputc('\n', f);
	}
}

static void
print_verb(FILE *f, const struct complete_program *p, const char *group, const struct sb_cmd *c,
	const char *names)
{
	struct complete_place places[COMPLETE_OPERANDS];
	int n = complete_operands(c->args, places, COMPLETE_OPERANDS);
	char verb[128];

	(void)snprintf(verb, sizeof verb, "%s%s%s", group ? group : "", group ? " " : "", c->name);
	print_begin(f, p->name, group ? group : "", -1, false);
	(void)fprintf(f, " -a %s -d ", c->name);
	print_text(f, c->help);
	(void)fputc('\n', f);
	print_options(f, p->name, verb, c->opts);
	for (int i = 0; i < n; i++) {
		if (places[i].kind == COMPLETE_NOTHING)
			continue;
		print_begin(f, p->name, verb, i, places[i].repeats);
		print_offer(f, &places[i], names);
		(void)fputc('\n', f);
	}
}

/*
 * __PROGRAM_at VERB [-eq|-ge N]: is that the verb of the command line, with so many operands? Knows
 * which options have their value in the next word. The verb of a group is two words.
 */
static void
print_walk(FILE *f, const struct complete_program *p)
{
	(void)fprintf(f, "function __%s_at\n\tset -l with", p->name);
	for (const struct sb_cmd *const *v = p->verbs; *v; v++)
		for (const struct sb_opt *o = (*v)->opts; o && o->name; o++)
			if (o->value && o->letter)
				(void)fprintf(f, " %s:-%c %s:--%s", (*v)->name, o->letter,
					(*v)->name, o->name);
			else if (o->value)
				(void)fprintf(f, " %s:--%s", (*v)->name, o->name);
	for (const struct sb_opt *o = p->group ? p->options : NULL; o && o->name; o++)
		if (o->value && o->letter)
			(void)fprintf(f, " %s:-%c %s:--%s", p->group, o->letter, p->group, o->name);
		else if (o->value)
			(void)fprintf(f, " %s:--%s", p->group, o->name);
	(void)fprintf(f,
		"\n\tset -l verb\n\tset -l n 0\n\tset -l skip\n\tset -l rest\n"
		"\tset -l words (commandline -opc)\n"
		"\tfor w in $words[2..-1]\n"
		"\t\tif test -n \"$skip\"\n\t\t\tset skip\n"
		"\t\telse if test -z \"$rest\"; and test \"$w\" = --\n\t\t\tset rest y\n"
		"\t\telse if test -z \"$rest\"; and string match -q -- '-?*' \"$w\"\n"
		"\t\t\tcontains -- \"$verb[1]:$w\" $with; and set skip y\n"
		"\t\telse if test -z \"$verb\"; or test \"$verb\" = '%s'\n"
		"\t\t\tset -a verb $w\n"
		"\t\telse\n\t\t\tset n (math $n + 1)\n\t\tend\n\tend\n"
		"\ttest \"$verb\" = \"$argv[1]\"; or return 1\n"
		"\ttest (count $argv) -lt 3; or test $n $argv[2] $argv[3]\nend\n\n",
		p->group ? p->group : "-");
}

void
complete_fish(FILE *f, const struct complete_program *p)
{
	(void)fprintf(f, "# %s: completion for fish, made from its tables of options.\n", p->name);
	if (p->verbs)
		print_walk(f, p);
	(void)fprintf(f, "complete -c %s -f\n", p->name);
	if (!p->verbs) {
		print_options(f, p->name, NULL, p->options);
		return;
	}
	for (const struct sb_cmd *const *v = p->verbs; *v; v++)
		print_verb(f, p, NULL, *v, p->names);
	if (p->group)
		print_options(f, p->name, p->group, p->options);
	for (const struct sb_cmd *const *v = p->inside; v && *v; v++)
		print_verb(f, p, p->group, *v, p->inside_names);
}
