/* SPDX-License-Identifier: MIT */
/* Completion for bash: a function that knows the tables, and the walk over the words typed. */
#include "config.h"

#include <bin/common/complete-priv.h>

#include <string.h>

/*
 * The walk. NAME stands for the name of the program, which makes the functions' names. Bash cuts
 * words at = and :, which is undone first. What is offered is never evaluated.
 */
static const char *const walk[] = {
	"_NAME_value()",
	"{",
	"	local o",
	"	for o in \"${opts[@]}\"; do",
	"		[[ $o == \"$1:\"* ]] && value=${o#*:} && return 0",
	"	done",
	"	return 1",
	"}",
	"",
	"_NAME_words()",
	"{",
	"	local w",
	"	while IFS= read -r w; do",
	"		[[ $w == \"$cur\"* ]] && COMPREPLY+=(\"$w\")",
	"	done",
	"}",
	"",
	"_NAME_offer()",
	"{",
	"	case $1 in",
	"	@file) compopt -o filenames 2>/dev/null",
	"		mapfile -t COMPREPLY < <(compgen -f -- \"$cur\") ;;",
	"	@dir) compopt -o filenames 2>/dev/null",
	"		mapfile -t COMPREPLY < <(compgen -d -- \"$cur\") ;;",
	"	@command) mapfile -t COMPREPLY < <(compgen -c -- \"$cur\") ;;",
	"	@name) _NAME_words < <(eval \"$names\") ;;",
	"	'' | @any) ;;",
	"	*) _NAME_words < <(printf '%s\\n' ${1//,/ }) ;;",
	"	esac",
	"}",
	"",
	"_NAME()",
	"{",
	"	local cur=${COMP_WORDS[COMP_CWORD]} IFS=$' \\t\\n' value= names= verbs= more=",
	"	local opt= verb= rest= n=0 i w join= opts=() places=() before=()",
	"	COMPREPLY=()",
	"	for ((i = 1; i < COMP_CWORD; i++)); do",
	"		w=${COMP_WORDS[i]}",
	"		if [[ -n $join || ($w == [=:] && ${#before[@]} -gt 0) ]]; then",
	"			before[-1]+=$w",
	"		else",
	"			before+=(\"$w\")",
	"		fi",
	"		[[ $w == [=:] ]] && join=y || join=",
	"	done",
	"	if [[ $cur == [=:] && ${#before[@]} -gt 0 ]]; then",
	"		before[-1]+=$cur",
	"		cur=",
	"		join=y",
	"	fi",
	"	_NAME_table ''",
	"	for w in \"${before[@]}\"; do",
	"		if [[ -n $opt ]]; then",
	"			opt=",
	"		elif [[ -n $rest || $w != -?* ]]; then",
	"			if [[ -n $verbs ]]; then",
	"				verb+=${verb:+ }$w",
	"				verbs=",
	"				_NAME_table \"$verb\" || return 0",
	"			else",
	"				n=$((n + 1))",
	"				rest=$more",
	"			fi",
	"		elif [[ $w == -- ]]; then",
	"			rest=y",
	"		elif [[ $w == --*= ]]; then",
	"			opt=${w%=}",
	"		elif [[ $w == --*=* ]]; then",
	"			:",
	"		elif [[ $w == --* ]]; then",
	"			_NAME_value \"$w\" && opt=$w",
	"		else",
	"			_NAME_value \"-${w: -1}\" && opt=-${w: -1}",
	"		fi",
	"	done",
	"	if [[ -n $opt ]]; then",
	"		_NAME_value \"$opt\" && _NAME_offer \"$value\"",
	"	elif [[ $cur == -* && -z $rest ]]; then",
	"		_NAME_words < <(printf '%s\\n' \"${opts[@]%%:*}\")",
	"	elif [[ -n $verbs ]]; then",
	"		_NAME_words < <(printf '%s\\n' $verbs)",
	"	elif [[ -n $join ]]; then",
	"		:",
	"	else",
	"		[[ $n -lt ${#places[@]} ]] || n=$((${#places[@]} - 1))",
	"		[[ $n -ge 0 ]] && _NAME_offer \"${places[n]}\"",
	"	fi",
	"	return 0",
	"}",
	"",
	"complete -F _NAME NAME",
	NULL,
};

/* A line of the walk; in what the shell has as names, - is _. */
static void
print_line(FILE *f, const char *line, const char *name)
{
	for (const char *at; (at = strstr(line, "NAME")) != NULL; line = at + 4)
		(void)fprintf(f, "%.*s%s", (int)(at - line), line, name);
	(void)fprintf(f, "%s\n", line);
}

static void
print_place(FILE *f, const struct complete_place *p)
{
	static const char *const marks[] = { "@any", "@file", "@dir", "@command", "@name" };

	if (p->kind != COMPLETE_WORDS) {
		(void)fputs(marks[p->kind], f);
		return;
	}
	for (const char *s = p->words; *s; s++)
		(void)fputc(*s == ' ' ? ',' : *s, f);
}

/* Each as "--name:PLACE" if it takes a value. */
static void
print_options(FILE *f, const struct sb_opt *opts)
{
	(void)fputs("\t\topts=(", f);
	for (const struct sb_opt *o = opts; o && o->name; o++) {
		struct complete_place v = complete_value(o);

		for (int letter = 0; letter < (o->letter ? 2 : 1); letter++) {
			if (o != opts || letter)
				(void)fputs("\n\t\t\t", f);
			if (letter)
				(void)fprintf(f, "-%c", o->letter);
			else
				(void)fprintf(f, "--%s", o->name);
			if (o->value) {
				(void)fputc(':', f);
				print_place(f, &v);
			}
		}
	}
	(void)fputs(")\n", f);
}

static void
print_verbs(FILE *f, const struct sb_cmd *const *verbs)
{
	(void)fputs("\t\tverbs='", f);
	for (const struct sb_cmd *const *v = verbs; *v; v++)
		(void)fprintf(f, "%s%s", v == verbs ? "" : " ", (*v)->name);
	(void)fputs("'\n", f);
}

static void
print_verb(FILE *f, const char *before, const struct sb_cmd *c, const char *names)
{
	struct complete_place places[COMPLETE_OPERANDS];
	int n = complete_operands(c->args, places, COMPLETE_OPERANDS);

	(void)fprintf(f, "\t'%s%s')\n", before, c->name);
	print_options(f, c->opts);
	(void)fputs("\t\tplaces=(", f);
	for (int i = 0; i < n; i++) {
		if (i)
			(void)fputc(' ', f);
		print_place(f, &places[i]);
	}
	/* The last one stands for all behind it. */
	(void)fputs(n && !places[n - 1].repeats ? " @any)\n" : ")\n", f);
	if (c->max_args < 0)
		(void)fputs("\t\tmore=y\n", f);
	if (names)
		(void)fprintf(f, "\t\tnames='%s'\n", names);
	(void)fputs("\t\t;;\n", f);
}

void
complete_bash(FILE *f, const struct complete_program *p)
{
	char group[64];

	(void)fprintf(f, "# %s: completion for bash, made from its tables of options.\n", p->name);
	(void)fprintf(f, "_%s_table()\n{\n\tcase $1 in\n\t'')\n", p->name);
	if (p->verbs)
		print_verbs(f, p->verbs);
	else
		print_options(f, p->options);
	(void)fputs("\t\t;;\n", f);
	for (const struct sb_cmd *const *v = p->verbs; v && *v; v++) {
		if (!p->group || strcmp(p->group, (*v)->name) != 0) {
			print_verb(f, "", *v, p->names);
			continue;
		}
		(void)fprintf(f, "\t'%s')\n", p->group);
		print_options(f, p->options);
		print_verbs(f, p->inside);
		(void)fputs("\t\t;;\n", f);
	}
	if (p->group)
		(void)snprintf(group, sizeof group, "%s ", p->group);
	for (const struct sb_cmd *const *v = p->inside; v && *v; v++)
		print_verb(f, group, *v, p->inside_names);
	(void)fputs("\t*) return 1 ;;\n\tesac\n}\n\n", f);
	for (const char *const *l = walk; *l; l++)
		print_line(f, *l, p->name);
}
