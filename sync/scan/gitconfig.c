/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/scan/gitconfig.h>

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/cleanup.h>

#define NAME_SIZE 1024

struct gitconfig_reader {
	const char *p, *end;
	char section[NAME_SIZE], sub[NAME_SIZE], name[NAME_SIZE];
	bool has_sub;
	char *value; /* as long as the whole text */
};

/* The next byte, or -1; "\r\n" is one newline, as it is to git. */
static int
get(struct gitconfig_reader *r)
{
	if (r->p == r->end)
		return -1;
	if (*r->p == '\r' && r->p + 1 < r->end && r->p[1] == '\n')
		r->p++;
	return (unsigned char)*r->p++;
}

static void
push(char *name, size_t *n, int c)
{
	if (*n < NAME_SIZE - 1)
		name[(*n)++] = (char)c;
	name[*n] = 0;
}

/* Behind '[', up to and with ']'. */
static void
read_header(struct gitconfig_reader *r)
{
	size_t n = 0, k = 0;
	int c;

	r->section[0] = r->sub[0] = 0;
	r->has_sub = false;
	while ((c = get(r)) >= 0 && c != ']' && c != '\n') {
		if (c == '.' && !r->has_sub) {
			/* [section.sub], the old way: without regard to case. */
			r->has_sub = true;
		} else if (c == '"') {
			r->has_sub = true;
			while ((c = get(r)) >= 0 && c != '"' && c != '\n') {
				if (c == '\\' && (c = get(r)) < 0)
					break;
				push(r->sub, &k, c);
			}
			if (c != '"')
				return;
		} else if (!isspace(c)) {
			push(r->has_sub ? r->sub : r->section, r->has_sub ? &k : &n, tolower(c));
		}
	}
}

/* Behind '=', up to the end of the line; lines that end in a backslash go on. */
static void
read_value(struct gitconfig_reader *r)
{
	bool quoted = false, comment = false;
	size_t n = 0, keep = 0;
	int c;

	while ((c = get(r)) >= 0 && c != '\n') {
		if (comment)
			continue;
		if (!quoted && isspace(c)) {
			if (n)
				r->value[n++] = (char)c;
			continue;
		}
		if (!quoted && (c == ';' || c == '#')) {
			comment = true;
			continue;
		}
		if (c == '"') {
			quoted = !quoted;
			keep = n;
			continue;
		}
		if (c == '\\') {
			c = get(r);
			if (c == '\n')
				continue;
			if (c < 0)
				break;
			c = c == 't' ? '\t' : c == 'b' ? '\b' : c == 'n' ? '\n' : c;
		}
		r->value[n++] = (char)c;
		keep = n;
	}
	r->value[keep] = 0;
}

/* A name from `c` on, and its value. */
static int
read_var(struct gitconfig_reader *r, int c, sb_gitconfig_fn fn, void *arg)
{
	struct sb_gitconfig_var v = { .section = r->section,
		.sub = r->has_sub ? r->sub : NULL,
		.name = r->name };
	size_t n = 0;

	r->name[0] = 0;
	for (; c >= 0 && (isalnum(c) || c == '-'); c = get(r))
		push(r->name, &n, tolower(c));
	while (c == ' ' || c == '\t')
		c = get(r);
	if (c == '=') {
		read_value(r);
		v.value = r->value;
	} else {
		while (c >= 0 && c != '\n')
			c = get(r);
	}
	return *r->section ? fn(&v, arg) : 0;
}

int
sb_gitconfig_read(const char *text, size_t len, sb_gitconfig_fn fn, void *arg, struct sb_error *err)
{
	sb_autofree char *value = malloc(len + 1);
	sb_autofree struct gitconfig_reader *r = calloc(1, sizeof *r);
	int c, ret = 0;

	if (!value || !r)
		return sb_fail(err, SB_E_NOMEM, "git configuration: out of memory");
	r->p = text;
	r->end = text + len;
	r->value = value;
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		r->p += 3;
	while (ret == 0 && (c = get(r)) >= 0) {
		if (isspace(c))
			continue;
		if (c == '[')
			read_header(r);
		else if (isalpha(c))
			ret = read_var(r, c, fn, arg);
		else
			while (c >= 0 && c != '\n')
				c = get(r);
	}
	return ret;
}

size_t
sb_gitconfig_user_files(char out[3][PATH_MAX])
{
	const char *home = getenv("HOME"), *global = getenv("GIT_CONFIG_GLOBAL"),
		   *xdg = getenv("XDG_CONFIG_HOME");
	const char *from[3][2] = { { "/etc/gitconfig", "" }, { NULL, "" }, { global, "" } };
	size_t n = 0;

	if (getenv("GIT_CONFIG_NOSYSTEM"))
		from[0][0] = NULL;
	if (!global) {
		from[1][0] = xdg && *xdg ? xdg : home;
		from[1][1] = xdg && *xdg ? "/git/config" : "/.config/git/config";
		from[2][0] = home;
		from[2][1] = "/.gitconfig";
	}
	for (size_t i = 0; i < 3; i++) {
		int len = from[i][0] && *from[i][0] == '/' ?
			snprintf(out[n], PATH_MAX, "%s%s", from[i][0], from[i][1]) :
			-1;

		n += len > 0 && len < PATH_MAX;
	}
	return n;
}
