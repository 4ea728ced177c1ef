/* SPDX-License-Identifier: MIT */
/* What answers of a sandbox host look like on a terminal. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bin/sbctl/host.h>
#include <sb/log.h>

#define COLUMNS_MAX 8
#define CELL 256

const char *
host_print_cell(const json_t *v, char *out, size_t size)
{
	char *text;

	switch (v ? json_typeof(v) : JSON_NULL) {
	case JSON_STRING:
		if (json_string_length(v) == 0)
			return "-";
		return sb_escape(json_string_value(v), json_string_length(v), out, size);
	case JSON_INTEGER:
		(void)snprintf(out, size, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		return out;
	case JSON_REAL: (void)snprintf(out, size, "%.4g", json_real_value(v)); return out;
	case JSON_TRUE: return "yes";
	case JSON_FALSE: return "no";
	case JSON_NULL: return "-";
	default: break;
	}
	text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
	(void)sb_escape(text ? text : "", text ? strlen(text) : 0, out, size);
	free(text);
	return out;
}

static void
print_row(const json_t *row, const struct host_column *c, const int *width, size_t n)
{
	char buf[CELL];

	for (size_t k = 0; k < n; k++) {
		const char *text = row ?
			host_print_cell(json_object_get(row, c[k].field), buf, sizeof buf) :
			c[k].heading;

		if (k + 1 < n)
			(void)printf("%-*s  ", width[k], text);
		else
			(void)printf("%s\n", text);
	}
}

void
host_print_table(const json_t *rows, const struct host_column *c, size_t n)
{
	int width[COLUMNS_MAX];
	char buf[CELL];

	for (size_t k = 0; k < n; k++)
		width[k] = (int)strlen(c[k].heading);
	for (size_t i = 0; i < json_array_size(rows); i++)
		for (size_t k = 0; k < n; k++) {
			const json_t *v = json_object_get(json_array_get(rows, i), c[k].field);
			int w = (int)strlen(host_print_cell(v, buf, sizeof buf));

			width[k] = w > width[k] ? w : width[k];
		}
	print_row(NULL, c, width, n);
	for (size_t i = 0; i < json_array_size(rows); i++)
		print_row(json_array_get(rows, i), c, width, n);
}

/* An answer with one object in it is that object. */
static const json_t *
inner(const json_t *out)
{
	const json_t *v = NULL;

	if (json_object_size(out) == 1)
		v = json_object_iter_value(json_object_iter((json_t *)(uintptr_t)out));
	return json_is_object(v) ? v : out;
}

void
host_print_fields(const json_t *out)
{
	json_t *o = (json_t *)(uintptr_t)inner(out);
	char buf[4096];

	for (void *i = json_object_iter(o); i; i = json_object_iter_next(o, i)) {
		const char *key = json_object_iter_key(i);
		const json_t *v = json_object_iter_value(i);

		if (strcmp(key, "Uptime") == 0)
			(void)printf("%-18s %.3f s\n", key, (double)json_integer_value(v) / 1e9);
		else
			(void)printf("%-18s %s\n", key, host_print_cell(v, buf, sizeof buf));
	}
}

void
host_print_line(const json_t *out, const char *member)
{
	char buf[CELL];

	(void)printf("%s\n", host_print_cell(json_object_get(out, member), buf, sizeof buf));
}

void
host_print_text(FILE *f, const json_t *text)
{
	(void)fwrite(json_string_value(text), 1, json_string_length(text), f);
	(void)fflush(f);
}
