/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_TOOLSPEC_H
#define SB_HOST_TOOLSPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include <sb/error.h>

/*
 * What a tool is called, what it is for and which parameters it takes: the one table that calls are
 * checked by, that ListTools tells and that a model reads.
 */
enum sb_toolspec_type {
	SB_TOOLSPEC_TEXT,
	SB_TOOLSPEC_INT,
	SB_TOOLSPEC_BOOL, /* false where it is not given */
	SB_TOOLSPEC_TEXTS /* a list; a single text counts as a list of one */
};

#define SB_TOOLSPEC_TEXTS_MAX 1000 /* items of a list */

struct sb_toolspec_param {
	const char *name;  /* NULL ends the list */
	const char *alias; /* another generation's name, taken but not told; may be NULL */
	enum sb_toolspec_type type;
	bool required;
	bool not_empty;        /* TEXT: "" is refused */
	int64_t min, max, def; /* INT: the bounds, and what counts when it is not given */
	const char *help;
};

struct sb_toolspec {
	const char *name;
	const char *alias; /* may be NULL */
	const char *help;
	bool reads;   /* it changes nothing */
	bool network; /* what it does depends on what the session may reach */
	const struct sb_toolspec_param *params;
};

/* In the order they are told in; an entry without a name ends it. */
extern const struct sb_toolspec sb_toolspec_table[];

/* By name or alias; NULL: there is no such tool. */
const struct sb_toolspec *sb_toolspec_find(const char *name);
/* The value of a parameter among those given, under its name or its alias; NULL: it is not given.
 */
const json_t *sb_toolspec_value(const struct sb_toolspec_param *p, const json_t *given);
/*
 * Checks an object of parameters: nothing unknown, nothing twice, nothing required missing, types
 * and bounds. A null counts as not given. SB_E_INVAL; messages begin with `tool`, the name that
 * the caller used.
 */
int sb_toolspec_check(const struct sb_toolspec *t, const char *tool, const json_t *given,
	struct sb_error *err);
/* The JSON Schema of its parameters. A new reference; NULL: no memory. */
json_t *sb_toolspec_schema(const struct sb_toolspec *t);

#endif
