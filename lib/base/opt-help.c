/* SPDX-License-Identifier: MIT */
/* Prints --help of a program and of its verbs from the option tables of base/opt.h. */
#include "config.h"

#include <base/opt.h>

#include <string.h>

#define WIDTH 80
/* Where the explanations start. */
#define HELP_COLUMN 28

/* The columns of `len` bytes of text: bytes that continue a UTF-8 character take none. */
static size_t
columns(const char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)s[i] & 0xc0) != 0x80;
	return n;
}

/* How many bytes of `s` fit into `room` columns, whole characters. */
static size_t
bytes_for(const char *s, size_t len, size_t room)
{
	size_t i = 0;
	size_t n = 0;

	for (; i < len; i++) {
		n += ((unsigned char)s[i] & 0xc0) != 0x80;
		if (n > room)
			break;
	}
	return i;
}

/* A page being written: where the line stands and where the next one starts. */
struct page {
	FILE *f;
	size_t at;
	size_t indent;
};

static void
new_line(struct page *p)
{
	(void)fputc('\n', p->f);
	p->at = 0;
}

static void
pad_to(struct page *p, size_t column)
{
	for (; p->at < column; p->at++)
		(void)fputc(' ', p->f);
}

/* One word, on the next line if it does not fit; cut where not even a line is enough. */
static void
put_word(struct page *p, const char *word, size_t len)
{
	size_t space = p->at > p->indent;

	if (p->at > p->indent && p->at + space + columns(word, len) > WIDTH) {
		new_line(p);
		space = 0;
	}
	pad_to(p, p->at < p->indent ? p->indent : p->at + space);
	while (len) {
		size_t n = bytes_for(word, len, WIDTH - p->at);

		(void)fwrite(word, 1, n, p->f);
		p->at += columns(word, n);
		word += n;
		len -= n;
		if (len) {
			new_line(p);
			pad_to(p, p->indent);
		}
	}
}

/* The words of one line of text. */
static void
put_words(struct page *p, const char *s, size_t len)
{
	while (len) {
		const char *space = memchr(s, ' ', len);
		size_t n = space ? (size_t)(space - s) : len;

		if (n)
			put_word(p, s, n);
		n += space != NULL;
		s += n;
		len -= n;
	}
}

/* Text of several lines, each wrapped under its own beginning. */
static void
put_text(FILE *f, const char *s)
{
	while (*s) {
		size_t len = strcspn(s, "\n");
		size_t indent = strspn(s, " ");
		struct page p = { .f = f, .indent = indent < WIDTH / 2 ? indent : WIDTH / 2 };

		put_words(&p, s, len);
		new_line(&p);
		s += len + (s[len] == '\n');
	}
}

/*
 * What stands on the left is in `left`; the explanation goes beside it, or below when it
 * is long.
 */
static void
put_row(FILE *f, const char *left, const char *help)
{
	struct page p = { .f = f, .indent = 2 };

	put_words(&p, left, strlen(left));
	if (p.at + 2 > HELP_COLUMN)
		new_line(&p);
	p.indent = HELP_COLUMN;
	put_words(&p, help ? help : "", help ? strlen(help) : 0);
	new_line(&p);
}

/* " auto|always|never" */
static void
join_choices(const char *const *choices, char *out, size_t size)
{
	size_t at = 0;

	for (int i = 0; choices[i] && at < size; i++)
		at += (size_t)snprintf(out + at, size - at, "%c%s", i ? '|' : ' ', choices[i]);
}

/* "-p, --port N"; choices stand for themselves where the value has no name. */
static void
option_left(const struct sb_opt *o, char *out, size_t size)
{
	char letter[5] = "";
	char value[160] = "";

	if (o->letter)
		(void)snprintf(letter, sizeof letter, "-%c, ", o->letter);
	if (o->value)
		(void)snprintf(value, sizeof value, " %s", o->value);
	else if (o->kind == SB_OPT_CHOICE)
		join_choices(o->choices, value, sizeof value);
	(void)snprintf(out, size, "%s--%s%s", letter, o->name, value);
}

static void
put_usage_line(FILE *f, const char *program, const char *verb, const char *rest, const char *args)
{
	struct page p = { .f = f, .indent = 0 };

	put_word(&p, "Usage:", 6);
	p.indent = 7;
	put_words(&p, program, strlen(program));
	if (verb)
		put_words(&p, verb, strlen(verb));
	put_words(&p, rest, strlen(rest));
	if (args)
		put_words(&p, args, strlen(args));
	new_line(&p);
}

void
sb_opt_print_help(FILE *f, const char *program, const struct sb_cmd *cmd)
{
	bool any = cmd->opts && cmd->opts->name;

	put_usage_line(f, program, cmd->name, any ? "[OPTION]..." : "", cmd->args);
	if (cmd->help) {
		(void)fputc('\n', f);
		put_text(f, cmd->help);
	}
	if (any)
		(void)fputs("\nOptions:\n", f);
	for (const struct sb_opt *o = cmd->opts; any && o->name; o++) {
		char left[256];

		option_left(o, left, sizeof left);
		put_row(f, left, o->help);
	}
	if (cmd->details) {
		(void)fputc('\n', f);
		put_text(f, cmd->details);
	}
}

void
sb_opt_print_usage(FILE *f, const char *program, const char *summary,
	const struct sb_cmd *const *cmds)
{
	put_usage_line(f, program, "COMMAND", "[OPTION]...", "[ARG]...");
	if (summary) {
		(void)fputc('\n', f);
		put_text(f, summary);
	}
	(void)fputs("\nCommands:\n", f);
	for (; *cmds; cmds++) {
		char left[256];

		(void)snprintf(left, sizeof left, "%s %s", (*cmds)->name,
			(*cmds)->args ? (*cmds)->args : "");
		put_row(f, left, (*cmds)->help);
	}
	(void)fprintf(f, "\nMore about one command: %s COMMAND --help\n", program);
}
