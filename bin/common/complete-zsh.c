/* SPDX-License-Identifier: MIT */
/* Completion for zsh: what _arguments takes, from the tables. */
#include "config.h"

#include <bin/common/complete-priv.h>

#include <string.h>

/* Text of a specification within single quotes: [, ] and : mean something there. */
static void
print_text(FILE *f, const char *s)
{
	for (; *s; s++)
		if (*s == '\'')
			(void)fputs("'\\''", f);
		else if (strchr("[]:\\", *s))
			(void)fprintf(f, "\\%c", *s);
		else
			(void)fputc(*s, f);
}

/* ":MESSAGE:ACTION" */
static void
print_place(FILE *f, const char *message, const struct complete_place *p, const char *program)
{
	(void)fputc(':', f);
	print_text(f, message);
	(void)fputc(':', f);
	switch (p->kind) {
	case COMPLETE_NOTHING: (void)fputc(' ', f); break;
	case COMPLETE_FILE: (void)fputs("_files", f); break;
	case COMPLETE_DIR: (void)fputs("_files -/", f); break;
	case COMPLETE_COMMAND: (void)fputs("_command_names -e", f); break;
	case COMPLETE_NAME: (void)fprintf(f, "_%s_names", program); break;
	case COMPLETE_WORDS: (void)fprintf(f, "(%s)", p->words); break;
	}
}

/* A specification of an option: '(-n --dry-run)'{-n,--dry-run}'[help]:VALUE:ACTION'. */
static void
print_option(FILE *f, const struct sb_opt *o, const char *program)
{
	struct complete_place v = complete_value(o);
	bool again = o->kind == SB_OPT_LIST || o->kind == SB_OPT_COUNT;

	(void)fputs(" \\\n\t\t\t", f);
	if (o->letter && again)
		(void)fprintf(f, "'*'{-%c,--%s%s}'[", o->letter, o->name, o->value ? "=" : "");
	else if (o->letter)
		(void)fprintf(f, "'(-%c --%s)'{-%c,--%s%s}'[", o->letter, o->name, o->letter,
			o->name, o->value ? "=" : "");
	else
		(void)fprintf(f, "'%s--%s%s[", again ? "*" : "", o->name, o->value ? "=" : "");
	print_text(f, o->help);
	(void)fputc(']', f);
	if (o->value)
		print_place(f, o->value, &v, program);
	(void)fputc('\'', f);
}

static void
print_options(FILE *f, const struct sb_opt *opts, const char *program)
{
	for (const struct sb_opt *o = opts; o && o->name; o++)
		print_option(f, o, program);
}

static void
print_verbs(FILE *f, const char *variable, const struct sb_cmd *const *verbs)
{
	(void)fprintf(f, "\tlocal -a %s=(", variable);
	for (const struct sb_cmd *const *v = verbs; *v; v++) {
		(void)fprintf(f, "\n\t\t'%s:", (*v)->name);
		print_text(f, (*v)->help);
		(void)fputc('\'', f);
	}
	(void)fputs(")\n", f);
}

/* One verb's branch. Behind the operands of a verb that runs a command there are its words. */
static void
print_verb(FILE *f, const char *before, const struct sb_cmd *c, const char *program)
{
	struct complete_place places[COMPLETE_OPERANDS];
	int n = complete_operands(c->args, places, COMPLETE_OPERANDS);

	(void)fprintf(f, "\t'%s%s') _arguments -s%s", before, c->name,
		c->max_args < 0 ? " -S" : "");
	print_options(f, c->opts, program);
	for (int i = 0; i < n; i++) {
		(void)fputs(" \\\n\t\t\t'", f);
		if (places[i].repeats)
			(void)fputc('*', f);
		else
			(void)fprintf(f, "%d:", i + 1);
		print_place(f, c->args, &places[i], program);
		(void)fputc('\'', f);
	}
	(void)fputs(" ;;\n", f);
}

static void
print_names(FILE *f, const struct complete_program *p)
{
	if (!p->names)
		return;
	(void)fprintf(f, "_%s_names()\n{\n\tlocal -a names\n", p->name);
	if (p->group)
		(void)fprintf(f,
			"\tif [[ $inside == %s ]]; then\n\t\tnames=(${(f)\"$(%s)\"})\n"
			"\telse\n\t\tnames=(${(f)\"$(%s)\"})\n\tfi\n",
			p->group, p->inside_names, p->names);
	else
		(void)fprintf(f, "\tnames=(${(f)\"$(%s)\"})\n", p->names);
	(void)fputs("\tcompadd -a names\n}\n\n", f);
}

/* The verb is the first word; inside a group, words and CURRENT move on once more. */
static void
print_walk(FILE *f, const struct complete_program *p)
{
	print_verbs(f, "verbs", p->verbs);
	if (p->group)
		print_verbs(f, "inner", p->inside);
	(void)fputs("\tlocal curcontext=$curcontext context state state_descr line inside verb\n"
		    "\ttypeset -A opt_args\n"
		    "\t_arguments -C '1: :->verb' '*:: :->rest'\n"
		    "\tcase $state in\n\tverb) _describe -t verbs verb verbs; return ;;\n"
		    "\trest) verb=$words[1] ;;\n\t*) return 1 ;;\n\tesac\n",
		f);
	if (p->group) {
		(void)fprintf(f,
			"\tif [[ $verb == %s ]]; then\n\t\tinside=%s\n\t\t_arguments -C -s",
			p->group, p->group);
		print_options(f, p->options, p->name);
		(void)fputs(" \\\n\t\t\t'1: :->verb' '*:: :->rest'\n"
			    "\t\tcase $state in\n"
			    "\t\tverb) _describe -t verbs verb inner; return ;;\n"
			    "\t\trest) verb=\"$inside $words[1]\" ;;\n"
			    "\t\t*) return 1 ;;\n\t\tesac\n\tfi\n",
			f);
	}
	(void)fputs("\tcase $verb in\n", f);
	for (const struct sb_cmd *const *v = p->verbs; *v; v++)
		if (!p->group || strcmp(p->group, (*v)->name) != 0)
			print_verb(f, "", *v, p->name);
	for (const struct sb_cmd *const *v = p->inside; v && *v; v++) {
		char group[64];

		(void)snprintf(group, sizeof group, "%s ", p->group);
		print_verb(f, group, *v, p->name);
	}
	(void)fputs("\tesac\n", f);
}

void
complete_zsh(FILE *f, const struct complete_program *p)
{
	(void)fprintf(f, "#compdef %s\n# Made from the tables of options of %s.\n\n", p->name,
		p->name);
	print_names(f, p);
	(void)fprintf(f, "_%s()\n{\n", p->name);
	if (p->verbs) {
		print_walk(f, p);
	} else {
		(void)fputs("\t_arguments -s", f);
		print_options(f, p->options, p->name);
		(void)fputc('\n', f);
	}
	/* Autoloaded, the file is the function's body; sourced, it says what the function is for.
	 */
	(void)fprintf(f,
		"}\n\nif [[ $funcstack[1] == _%s ]]; then\n\t_%s \"$@\"\nelse\n"
		"\tcompdef _%s %s\nfi\n",
		p->name, p->name, p->name, p->name);
}
