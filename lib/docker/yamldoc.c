/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <docker/yamldoc.h>

#include <fcntl.h>
#include <string.h>

#include <base/buf.h>
#include <base/file.h>

#define FILE_MAX (4u << 20)
#define MERGE_MAX 8 /* "<<" within "<<" */

void
sb_yamldoc_free(struct sb_yamldoc *d)
{
	if (d->open)
		yaml_document_delete(&d->doc);
	d->open = false;
}

int
sb_yamldoc_parse(const char *text, size_t len, struct sb_yamldoc *out, struct sb_error *err)
{
	yaml_parser_t parser;
	int r = 0;

	out->open = false;
	if (!yaml_parser_initialize(&parser))
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	if (yaml_parser_load(&parser, &out->doc))
		out->open = true;
	else
		r = sb_fail(err, SB_E_INVAL, "line %zu is no YAML: %s",
			parser.problem_mark.line + 1,
			parser.problem ? parser.problem : "unreadable");
	yaml_parser_delete(&parser);
	return r;
}

int
sb_yamldoc_read(const char *path, struct sb_yamldoc *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	int r = sb_file_read(AT_FDCWD, path, FILE_MAX, &text, err);

	out->open = false;
	if (r == 0)
		r = sb_yamldoc_parse((const char *)text.data, text.len, out, err);
	return r < 0 ? sb_wrap(err, r, "%s", path) : 0;
}

yaml_node_t *
sb_yamldoc_root(struct sb_yamldoc *d)
{
	return yaml_document_get_root_node(&d->doc);
}

const char *
sb_yamldoc_text(const yaml_node_t *n)
{
	const char *text;

	if (!n || n->type != YAML_SCALAR_NODE || n->data.scalar.length == 0)
		return NULL;
	text = (const char *)n->data.scalar.value;
	return strlen(text) == n->data.scalar.length ? text : NULL;
}

static yaml_node_t *
get(struct sb_yamldoc *d, const yaml_node_t *map, const char *key, int depth)
{
	yaml_node_t *merged = NULL, *found = NULL;

	if (!map || map->type != YAML_MAPPING_NODE || depth > MERGE_MAX)
		return NULL;
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
		p++) {
		const char *name = sb_yamldoc_text(yaml_document_get_node(&d->doc, p->key));

		if (name && strcmp(name, key) == 0)
			return yaml_document_get_node(&d->doc, p->value);
		if (name && strcmp(name, "<<") == 0)
			merged = yaml_document_get_node(&d->doc, p->value);
	}
	if (!merged || merged->type != YAML_SEQUENCE_NODE)
		return get(d, merged, key, depth + 1);
	for (yaml_node_item_t *i = merged->data.sequence.items.start;
		!found && i < merged->data.sequence.items.top; i++)
		found = get(d, yaml_document_get_node(&d->doc, *i), key, MERGE_MAX);
	return found;
}

yaml_node_t *
sb_yamldoc_get(struct sb_yamldoc *d, const yaml_node_t *map, const char *key)
{
	return get(d, map, key, 0);
}

const char *
sb_yamldoc_text_of(struct sb_yamldoc *d, const yaml_node_t *map, const char *key)
{
	return sb_yamldoc_text(sb_yamldoc_get(d, map, key));
}

yaml_node_t *
sb_yamldoc_nth(struct sb_yamldoc *d, const yaml_node_t *n, size_t nth, const char **key)
{
	const yaml_node_pair_t *pair;

	if (key)
		*key = NULL;
	if (n && n->type == YAML_SEQUENCE_NODE)
		return nth < (size_t)(n->data.sequence.items.top - n->data.sequence.items.start) ?
			yaml_document_get_node(&d->doc, n->data.sequence.items.start[nth]) :
			NULL;
	if (!n || n->type != YAML_MAPPING_NODE ||
		nth >= (size_t)(n->data.mapping.pairs.top - n->data.mapping.pairs.start))
		return NULL;
	pair = &n->data.mapping.pairs.start[nth];
	if (key)
		*key = sb_yamldoc_text(yaml_document_get_node(&d->doc, pair->key));
	return yaml_document_get_node(&d->doc, pair->value);
}
