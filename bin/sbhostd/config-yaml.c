/* SPDX-License-Identifier: MIT */
/* The configuration file: a map of option names, and a list of tokens. */
#include "config.h"

#include <bin/sbhostd/hostd.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <yaml.h>

#include <base/file.h>

#define FILE_MAX (1024 * 1024)
#define TOKENS_MAX 4096

/* A file being read. */
struct file {
	struct hostd_config *config;
	const char *path;
	yaml_document_t doc;
	struct sb_error *err;
};

static int
bad(struct file *f, const yaml_node_t *n, const char *what)
{
	return sb_fail(f->err, SB_E_INVAL, "%s:%zu: %s", f->path, n->start_mark.line + 1, what);
}

/* The text of a scalar without a NUL inside; NULL: it is something else. */
static const char *
scalar(const yaml_node_t *n)
{
	if (!n || n->type != YAML_SCALAR_NODE ||
		strlen((const char *)n->data.scalar.value) != n->data.scalar.length)
		return NULL;
	return (const char *)n->data.scalar.value;
}

/* Keys may be written with underscores. */
static bool
key_name(const yaml_node_t *n, char *out, size_t size)
{
	const char *s = scalar(n);
	size_t len = s ? strlen(s) : size;

	if (len >= size)
		return false;
	for (size_t i = 0; i <= len; i++)
		out[i] = s[i] == '_' ? '-' : s[i];
	return true;
}

static int
set_scalar(struct file *f, const char *name, const yaml_node_t *n)
{
	char source[512];
	const char *value = scalar(n);

	if (!value)
		return bad(f, n, "a single value is needed here");
	(void)snprintf(source, sizeof source, "%s:%zu", f->path, n->start_mark.line + 1);
	return hostd_config_set(f->config, name, value, source, f->err);
}

/* "e2b: {listen: ...}" is e2b-listen. */
static int
set_group(struct file *f, const char *group, const yaml_node_t *n)
{
	char name[64], full[130];
	int r = 0;

	for (yaml_node_pair_t *p = n->data.mapping.pairs.start;
		p < n->data.mapping.pairs.top && r == 0; p++) {
		const yaml_node_t *key = yaml_document_get_node(&f->doc, p->key);

		if (!key_name(key, name, sizeof name))
			return bad(f, key, "an option's name is needed here");
		(void)snprintf(full, sizeof full, "%s-%s", group, name);
		r = set_scalar(f, full, yaml_document_get_node(&f->doc, p->value));
	}
	return r;
}

static int
set_option(struct file *f, const char *name, const yaml_node_t *n)
{
	int r = 0;

	if (n->type == YAML_MAPPING_NODE)
		return set_group(f, name, n);
	hostd_config_clear_list(f->config, name);
	if (n->type != YAML_SEQUENCE_NODE)
		return set_scalar(f, name, n);
	if (strcmp(name, "listen") != 0)
		return bad(f, n, "only listen and tokens take a list");
	for (yaml_node_item_t *i = n->data.sequence.items.start;
		i < n->data.sequence.items.top && r == 0; i++)
		r = set_scalar(f, name, yaml_document_get_node(&f->doc, *i));
	return r;
}

static int
set_token_field(struct file *f, struct hostd_token *t, const yaml_node_t *key,
	const yaml_node_t *value)
{
	const struct {
		const char *name;
		char **to;
	} fields[] = {
		{ "name", &t->name },
		{ "role", &t->role },
		{ "session", &t->session },
		{ "token", &t->token },
		{ "token-file", &t->token_file },
		{ "sha256", &t->sha256 },
	};
	char name[64];

	if (!key_name(key, name, sizeof name) || !scalar(value))
		return bad(f, key, "a token is a map of texts");
	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
		if (strcmp(fields[i].name, name) != 0)
			continue;
		free(*fields[i].to);
		*fields[i].to = strdup(scalar(value));
		return *fields[i].to ? 0 : sb_fail(f->err, SB_E_NOMEM, "out of memory");
	}
	return bad(f, key, "a token has name, role, session, and one of token, token-file, sha256");
}

/* Whether a pair before `at` has the same key: YAML forbids it, and which one counts is a guess. */
static bool
is_repeated(struct file *f, const yaml_node_t *map, const yaml_node_pair_t *at)
{
	char name[64], other[64];

	if (!key_name(yaml_document_get_node(&f->doc, at->key), name, sizeof name))
		return false;
	for (const yaml_node_pair_t *p = map->data.mapping.pairs.start; p < at; p++)
		if (key_name(yaml_document_get_node(&f->doc, p->key), other, sizeof other) &&
			strcmp(name, other) == 0)
			return true;
	return false;
}

static int
add_token(struct file *f, const yaml_node_t *n)
{
	struct hostd_config *c = f->config;
	struct hostd_token *t;
	int r = 0;

	if (!n || n->type != YAML_MAPPING_NODE)
		return n ? bad(f, n, "a token is a map") : SB_E_INVAL;
	if (c->n_tokens == TOKENS_MAX)
		return bad(f, n, "too many tokens");
	t = reallocarray(c->tokens, c->n_tokens + 1, sizeof *t);
	if (!t)
		return sb_fail(f->err, SB_E_NOMEM, "out of memory");
	c->tokens = t;
	t += c->n_tokens++;
	*t = (struct hostd_token){ 0 };
	for (yaml_node_pair_t *p = n->data.mapping.pairs.start;
		p < n->data.mapping.pairs.top && r == 0; p++)
		r = is_repeated(f, n, p) ?
			bad(f, n, "a field of this token is given twice") :
			set_token_field(f, t, yaml_document_get_node(&f->doc, p->key),
				yaml_document_get_node(&f->doc, p->value));
	if (r == 0 && (!t->name || !t->role))
		return bad(f, n, "a token needs name and role");
	if (r == 0 && !!t->token + !!t->token_file + !!t->sha256 != 1)
		return bad(f, n, "a token needs one of token, token-file and sha256");
	return r;
}

/* Tokens that stand in the file are secrets, and the file is one then. */
static int
check_inline(struct file *f)
{
	struct stat st;
	bool secret = false;

	for (size_t i = 0; i < f->config->n_tokens; i++)
		secret = secret || f->config->tokens[i].token;
	if (!secret || stat(f->path, &st) < 0 || !(st.st_mode & (S_IWGRP | S_IRWXO)))
		return 0;
	return sb_fail(f->err, SB_E_DENIED,
		"%s has a token in it and is open to others: chmod o-rwx,g-w it, or use token-file "
		"or sha256",
		f->path);
}

static int
read_document(struct file *f)
{
	const yaml_node_t *root = yaml_document_get_root_node(&f->doc);
	char name[64];
	int r = 0;

	if (!root)
		return 0; /* an empty file */
	if (root->type != YAML_MAPPING_NODE)
		return bad(f, root, "the file must be a map of options");
	for (yaml_node_pair_t *p = root->data.mapping.pairs.start;
		p < root->data.mapping.pairs.top && r == 0; p++) {
		const yaml_node_t *key = yaml_document_get_node(&f->doc, p->key);
		const yaml_node_t *value = yaml_document_get_node(&f->doc, p->value);

		if (!key_name(key, name, sizeof name))
			return bad(f, key, "an option's name is needed here");
		if (is_repeated(f, root, p))
			return bad(f, key, "this option is given twice");
		if (strcmp(name, "tokens") != 0) {
			r = set_option(f, name, value);
			continue;
		}
		if (value->type != YAML_SEQUENCE_NODE)
			return bad(f, value, "tokens must be a list");
		for (yaml_node_item_t *i = value->data.sequence.items.start;
			i < value->data.sequence.items.top && r == 0; i++)
			r = add_token(f, yaml_document_get_node(&f->doc, *i));
	}
	return r;
}

int
hostd_config_read_file(struct hostd_config *c, const char *path, struct sb_error *err)
{
	struct file f = { .config = c, .path = path, .err = err };
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	yaml_parser_t parser;
	int r = sb_file_read(AT_FDCWD, path, FILE_MAX, &text, err);

	if (r < 0)
		return sb_wrap(err, r, "configuration");
	if (!yaml_parser_initialize(&parser))
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	yaml_parser_set_input_string(&parser, text.data, text.len);
	if (!yaml_parser_load(&parser, &f.doc)) {
		r = sb_fail(err, SB_E_INVAL, "%s:%zu: not YAML: %s", path,
			parser.problem_mark.line + 1,
			parser.problem ? parser.problem : "unreadable");
	} else {
		r = read_document(&f);
		if (r == 0)
			r = check_inline(&f);
		yaml_document_delete(&f.doc);
	}
	yaml_parser_delete(&parser);
	explicit_bzero(text.data, text.len);
	return r;
}
