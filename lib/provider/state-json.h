/* SPDX-License-Identifier: MIT */
#ifndef SB_PROVIDER_STATE_JSON_H
#define SB_PROVIDER_STATE_JSON_H

#include <jansson.h>

#include <sb/state.h>

/* One table serves free, copy, encode and decode. */
enum state_kind {
	STATE_TEXT,  /* char * */
	STATE_TEXTS, /* struct sb_strlist */
	STATE_WORD,  /* an enum; `words` */
	STATE_I64,   /* int64_t, left out when 0 */
	STATE_U64,   /* uint64_t, as a decimal text: JSON numbers of some readers are doubles */
	STATE_INT,   /* int, left out when -1 */
	STATE_BOOL,  /* left out when false */
	STATE_JSON,  /* char *: the text of a JSON object */
};

struct state_field {
	const char *name; /* NULL ends the table */
	enum state_kind kind;
	size_t at;
	const char *const *(*words)(void);
};

extern const struct state_field sb_state_fields[];

/* Texts that are no UTF-8 are {"hex": "..."}. NULL: no memory. */
json_t *sb_state_json_text(const char *s);
json_t *sb_state_json_texts(const char *const *v);
/* And back: a new text, NULL when `v` is none (or no memory). */
char *sb_state_json_get_text(const json_t *v);
/* Adds a list of texts to `out`. SB_E_CORRUPT. */
int sb_state_json_get_texts(const json_t *v, struct sb_strlist *out, struct sb_error *err);
/* The state as an object, as sb_state_encode writes it. */
json_t *sb_state_json(const struct sb_state *s, struct sb_error *err);

#endif
