/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/opt.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <sb/log.h>

/* A parse under way. */
struct parse {
	const struct sb_opt *opts;
	int argc;
	char **argv;
	int i; /* the word being read */
	int n; /* operands so far, at argv[1..n] */
	void *values;
	struct sb_error *err;
};

/* How the user wrote an option, and what it was given. */
struct use {
	const struct sb_opt *opt;
	const char *value; /* NULL: none */
	char typed[64];    /* "--port" or "-p" */
};

struct unit {
	const char *name;
	uint64_t factor;
};

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)
#define TIB (GIB * 1024)

static const struct unit sizes[] = {
	{ "", 1 },
	{ "B", 1 },
	{ "K", KIB },
	{ "KiB", KIB },
	{ "KB", 1000 },
	{ "M", MIB },
	{ "MiB", MIB },
	{ "MB", 1000000 },
	{ "G", GIB },
	{ "GiB", GIB },
	{ "GB", 1000000000 },
	{ "T", TIB },
	{ "TiB", TIB },
	{ "TB", 1000000000000 },
	{ NULL, 0 },
};

static const struct unit times[] = {
	{ "", 1000 },
	{ "ms", 1 },
	{ "s", 1000 },
	{ "m", 60000 },
	{ "min", 60000 },
	{ "h", 3600000 },
	{ "d", 86400000 },
	{ NULL, 0 },
};

/*
 * Digits, perhaps a point and more digits, a unit; exact, rounded down. A fraction of
 * what cannot be divided ("1.5" bytes) is refused.
 */
static bool
parse_quantity(const char *s, const struct unit *units, uint64_t max, uint64_t *out)
{
	unsigned __int128 v = 0;
	uint64_t scale = 1;
	bool point = false;
	bool digits = false;

	for (; (*s >= '0' && *s <= '9') || (*s == '.' && !point && digits); s++) {
		if (*s == '.') {
			point = true;
			digits = false;
			continue;
		}
		digits = true;
		v = v * 10 + (unsigned)(*s - '0');
		scale *= point ? 10 : 1;
		if (v > UINT64_MAX || scale > UINT64_C(1000000000000000000))
			return false;
	}
	if (!digits)
		return false;
	while (units->name && strcasecmp(units->name, s))
		units++;
	if (!units->name || (point && units->factor == 1))
		return false;
	v = v * units->factor / scale;
	if (v > max)
		return false;
	*out = (uint64_t)v;
	return true;
}

bool
sb_opt_size(const char *s, uint64_t *out)
{
	return parse_quantity(s, sizes, UINT64_MAX, out);
}

bool
sb_opt_time(const char *s, int64_t *out_ms)
{
	uint64_t ms;

	if (!parse_quantity(s, times, INT64_MAX, &ms))
		return false;
	*out_ms = (int64_t)ms;
	return true;
}

static bool
takes_value(const struct sb_opt *o)
{
	return o->kind != SB_OPT_FLAG && o->kind != SB_OPT_COUNT;
}

static int
bad_value(struct parse *p, const struct use *u, const char *must)
{
	char shown[128];

	return sb_fail(p->err, SB_E_USAGE, "%s \"%s\": must be %s", u->typed,
		sb_escape(u->value, strlen(u->value), shown, sizeof shown), must);
}

static int
set_int(struct parse *p, const struct use *u, int64_t *to)
{
	const struct sb_opt *o = u->opt;
	bool any = !o->min && !o->max;
	char must[96];

	if (sb_str_to_i64(u->value, any ? INT64_MIN : o->min, any ? INT64_MAX : o->max, to))
		return 0;
	if (any)
		return bad_value(p, u, "a whole number");
	(void)snprintf(must, sizeof must, "a whole number from %lld to %lld", (long long)o->min,
		(long long)o->max);
	return bad_value(p, u, must);
}

static int
set_size(struct parse *p, const struct use *u, uint64_t *to)
{
	const struct sb_opt *o = u->opt;
	bool any = !o->min && !o->max;
	uint64_t v = 0;
	char must[128];

	if (!sb_opt_size(u->value, &v))
		return bad_value(p, u, "a size such as 4096, 10K, 1.5M or 2GiB");
	if (!any && (v < (uint64_t)o->min || v > (uint64_t)o->max)) {
		(void)snprintf(must, sizeof must, "from %lld to %lld bytes", (long long)o->min,
			(long long)o->max);
		return bad_value(p, u, must);
	}
	*to = v;
	return 0;
}

static int
set_time(struct parse *p, const struct use *u, int64_t *to)
{
	const struct sb_opt *o = u->opt;
	bool any = !o->min && !o->max;
	int64_t v = 0;
	char must[128];

	if (!sb_opt_time(u->value, &v))
		return bad_value(p, u, "a time such as 30, 30s, 5m, 250ms or 2h");
	if (!any && (v < o->min || v > o->max)) {
		(void)snprintf(must, sizeof must, "from %lldms to %lldms", (long long)o->min,
			(long long)o->max);
		return bad_value(p, u, must);
	}
	*to = v;
	return 0;
}

static int
set_choice(struct parse *p, const struct use *u, int *to)
{
	const char *const *c = u->opt->choices;
	char must[256] = "one of";
	size_t at = strlen(must);

	for (int i = 0; c[i]; i++) {
		if (!strcmp(c[i], u->value)) {
			*to = i;
			return 0;
		}
		if (at < sizeof must)
			at += (size_t)snprintf(must + at, sizeof must - at, "%s %s", i ? "," : "",
				c[i]);
	}
	return bad_value(p, u, must);
}

static int
append(struct parse *p, const struct use *u, struct sb_opt_list *to)
{
	const char **v = reallocarray(to->v, to->n + 2, sizeof *v);

	if (!v)
		return sb_fail(p->err, SB_E_NOMEM, "%s: out of memory", u->typed);
	to->v = v;
	to->v[to->n++] = u->value;
	to->v[to->n] = NULL;
	return 0;
}

void
sb_opt_list_free(struct sb_opt_list *l)
{
	free(l->v);
	*l = (struct sb_opt_list){ 0 };
}

void
sb_opt_lists_free(const struct sb_opt *opts, void *values)
{
	for (; opts->name; opts++)
		if (opts->kind == SB_OPT_LIST)
			sb_opt_list_free((struct sb_opt_list *)((char *)values + opts->offset));
}

static int
store(struct parse *p, const struct use *u)
{
	void *to = (char *)p->values + u->opt->offset;
	int *count = to;

	switch (u->opt->kind) {
	case SB_OPT_FLAG: *(bool *)to = true; return 0;
	case SB_OPT_COUNT: *count += *count < INT_MAX; return 0;
	case SB_OPT_STRING: *(const char **)to = u->value; return 0;
	case SB_OPT_INT: return set_int(p, u, to);
	case SB_OPT_SIZE: return set_size(p, u, to);
	case SB_OPT_TIME: return set_time(p, u, to);
	case SB_OPT_CHOICE: return set_choice(p, u, to);
	case SB_OPT_LIST: return append(p, u, to);
	}
	return sb_fail(p->err, SB_E_USAGE, "%s: unknown kind", u->typed);
}

/* The value in the next word, which is used up. */
static int
next_value(struct parse *p, struct use *u)
{
	if (p->i + 1 >= p->argc)
		return sb_fail(p->err, SB_E_USAGE, "%s needs a value: %s %s", u->typed, u->typed,
			u->opt->value ? u->opt->value : "VALUE");
	u->value = p->argv[++p->i];
	return 0;
}

/*
 * Words that differ by one insertion, deletion, change or swap of neighbours are easily
 * mistyped.
 */
static bool
is_near(const char *a, size_t na, const char *b)
{
	size_t nb = strlen(b);
	size_t i = 0;

	while (i < na && i < nb && a[i] == b[i])
		i++;
	if (na < 2 || (na == nb && i == na))
		return false;
	if (na == nb + 1)
		return !memcmp(a + i + 1, b + i, nb - i);
	if (na + 1 == nb)
		return !memcmp(a + i, b + i + 1, na - i);
	if (na != nb)
		return false;
	if (i + 1 < na && a[i] == b[i + 1] && a[i + 1] == b[i] &&
		!memcmp(a + i + 2, b + i + 2, na - i - 2))
		return true;
	return !memcmp(a + i + 1, b + i + 1, na - i - 1);
}

static int
unknown_long(struct parse *p, const char *name, size_t len)
{
	char shown[128];

	(void)sb_escape(name, len, shown, sizeof shown);
	for (const struct sb_opt *o = p->opts; o->name; o++)
		if (is_near(name, len, o->name))
			return sb_fail(p->err, SB_E_USAGE,
				"unknown option --%s: did you mean --%s?", shown, o->name);
	return sb_fail(p->err, SB_E_USAGE, "unknown option --%s: see --help", shown);
}

static int
parse_long(struct parse *p, const char *name)
{
	size_t len = strcspn(name, "=");
	struct use u = { .opt = p->opts, .value = name[len] ? name + len + 1 : NULL };
	int r = 0;

	while (u.opt->name && (strncmp(u.opt->name, name, len) || u.opt->name[len]))
		u.opt++;
	if (!u.opt->name)
		return unknown_long(p, name, len);
	(void)snprintf(u.typed, sizeof u.typed, "--%s", u.opt->name);
	if (u.value && !takes_value(u.opt))
		return sb_fail(p->err, SB_E_USAGE, "%s takes no value", u.typed);
	if (!u.value && takes_value(u.opt))
		r = next_value(p, &u);
	return r < 0 ? r : store(p, &u);
}

static int
parse_letters(struct parse *p, const char *letters)
{
	while (*letters) {
		struct use u = { .opt = p->opts };
		char shown[8];
		int r = 0;

		while (u.opt->name && u.opt->letter != *letters)
			u.opt++;
		if (!u.opt->name)
			return sb_fail(p->err, SB_E_USAGE, "unknown option -%s: see --help",
				sb_escape(letters, 1, shown, sizeof shown));
		(void)snprintf(u.typed, sizeof u.typed, "-%c", *letters++);
		if (takes_value(u.opt) && *letters) {
			u.value = letters;
			letters += strlen(letters);
		} else if (takes_value(u.opt)) {
			r = next_value(p, &u);
		}
		if (r >= 0)
			r = store(p, &u);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * Puts the word at `i` behind the operands there are. What it changes places with was
 * read already.
 */
static void
add_operand(struct parse *p, int i)
{
	char *word = p->argv[i];

	p->argv[i] = p->argv[++p->n];
	p->argv[p->n] = word;
}

int
sb_opt_parse(const struct sb_opt *opts, int argc, char **argv, bool stop_at_operand, void *values,
	char ***out_args, int *out_n, struct sb_error *err)
{
	struct parse p = { .opts = opts,
		.argc = argc,
		.argv = argv,
		.i = 1,
		.values = values,
		.err = err };
	bool only_operands = false;

	for (; p.i < argc; p.i++) {
		const char *word = argv[p.i];
		int r = 0;

		if (only_operands || word[0] != '-' || !word[1]) {
			add_operand(&p, p.i);
			only_operands = only_operands || stop_at_operand;
		} else if (!strcmp(word, "--")) {
			only_operands = true;
		} else if (word[1] == '-') {
			r = parse_long(&p, word + 2);
		} else {
			r = parse_letters(&p, word + 1);
		}
		if (r < 0)
			return r;
	}
	*out_args = argv + (argc > 0 ? 1 : 0);
	*out_n = p.n;
	return 0;
}
