/* SPDX-License-Identifier: MIT */
/* Reads the fields of a profile from YAML. Reports every mistake with its line, and goes on. */
#include "config.h"

#include <provider/profiles.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/buf.h>
#include <base/opt.h>
#include <base/secret.h>
#include <base/str.h>
#include <egress/netpolicy.h>
#include <tool/environ.h>

#define LIST_MAX 4096
#define TEXT_MAX 400

void
sb_profiles_mistake(struct profiles_reader *f, const yaml_node_t *at, const char *fmt, ...)
{
	size_t line = at ? at->start_mark.line + 1 : 1;
	char text[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (f->mistakes++ == 0)
		(void)sb_fail(f->first, SB_E_INVAL, "%s:%zu: %s", f->file, line, text);
	if (f->o->on_mistake)
		f->o->on_mistake(f->file, line, text, f->o->mistake_arg);
}

static void
no_memory(struct profiles_reader *f)
{
	if (f->mistakes++ == 0)
		(void)sb_fail(f->first, SB_E_NOMEM, "%s: out of memory", f->file);
}

const char *
sb_profiles_text(struct profiles_reader *f, const yaml_node_t *n, const char *what)
{
	const char *s =
		n && n->type == YAML_SCALAR_NODE ? (const char *)n->data.scalar.value : NULL;

	if (s && strlen(s) == n->data.scalar.length)
		return s;
	sb_profiles_mistake(f, n, "%s must be a text", what);
	return NULL;
}

void
sb_profiles_bool(struct profiles_reader *f, const yaml_node_t *n, const char *what, bool *out)
{
	const char *s = sb_profiles_text(f, n, what);

	if (!s)
		return;
	if (strcmp(s, "true") == 0)
		*out = true;
	else if (strcmp(s, "false") == 0)
		*out = false;
	else
		sb_profiles_mistake(f, n, "%s is \"%s\": use true or false", what, s);
}

static void
add_text(struct profiles_reader *f, struct sb_strlist *out, const char *s)
{
	sb_strlist_add(out, s);
	if (out->failed)
		no_memory(f);
}

static void
put_pair(struct profiles_reader *f, struct sb_strlist *out, const char *key, const char *value)
{
	sb_strlist_putf(out, "%s=%s", key, value);
	if (out->failed)
		no_memory(f);
}

void
sb_profiles_list(struct profiles_reader *f, const yaml_node_t *n, const char *what,
	struct sb_strlist *out)
{
	if (!n || n->type != YAML_SEQUENCE_NODE) {
		sb_profiles_mistake(f, n, "%s must be a list: [a, b]", what);
		return;
	}
	if (n->data.sequence.items.top - n->data.sequence.items.start > LIST_MAX) {
		sb_profiles_mistake(f, n, "%s has more than %d entries", what, LIST_MAX);
		return;
	}
	for (yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top;
		i++) {
		const yaml_node_t *item = yaml_document_get_node(&f->doc, *i);
		const char *s = sb_profiles_text(f, item, what);

		if (s && !s[0])
			sb_profiles_mistake(f, item, "%s has an empty entry", what);
		else if (s)
			add_text(f, out, s);
	}
}

void
sb_profiles_map(struct profiles_reader *f, const yaml_node_t *n, const char *what,
	sb_profiles_pair_fn fn, void *arg)
{
	if (!n || n->type != YAML_MAPPING_NODE) {
		sb_profiles_mistake(f, n, "%s must be a map: name: value", what);
		return;
	}
	for (yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top;
		p++) {
		const yaml_node_t *key = yaml_document_get_node(&f->doc, p->key);
		const char *name = sb_profiles_text(f, key, "a name");
		bool twice = false;

		for (yaml_node_pair_t *q = n->data.mapping.pairs.start; name && q < p; q++) {
			const yaml_node_t *other = yaml_document_get_node(&f->doc, q->key);

			twice = twice ||
				(other->type == YAML_SCALAR_NODE &&
					strcmp((const char *)other->data.scalar.value, name) == 0);
		}
		if (twice)
			sb_profiles_mistake(f, key, "%s comes twice", name);
		else if (name)
			fn(f, key, name, yaml_document_get_node(&f->doc, p->value), arg);
	}
}

/* A word of an enumeration; `parse` is one of sb_*_parse. */
#define WORD(f, n, noun, what, to) \
	do { \
		const char *s_ = sb_profiles_text(f, n, what); \
		struct sb_error e_ = { 0 }; \
		if (s_ && sb_##noun##_parse(s_, to, &e_) < 0) \
			sb_profiles_mistake(f, n, "%s: %s", what, e_.msg); \
	} while (0)

/* A profile being filled. */
struct body {
	struct sb_profile *p;
	bool has_backend, has_mode, has_destroy;
	const yaml_node_t *section; /* named as a backend */
	char section_name[16];
};

static void
env_pair(struct profiles_reader *f, const yaml_node_t *key, const char *name,
	const yaml_node_t *value, void *arg)
{
	struct sb_profile *p = arg;
	const char *s = sb_profiles_text(f, value, name);

	if (!sb_environ_name_ok(name))
		sb_profiles_mistake(f, key,
			"env: \"%s\" is not a variable's name: a letter or _, then letters, digits "
			"and _",
			name);
	else if (sb_secret_name_looks(name, strlen(name)))
		sb_profiles_mistake(f, key,
			"env: %s looks like a secret: put a reference into secret_env (env:NAME or "
			"file:PATH)",
			name);
	else if (s)
		put_pair(f, &p->env, name, s);
}

static void
secret_pair(struct profiles_reader *f, const yaml_node_t *key, const char *name,
	const yaml_node_t *value, void *arg)
{
	struct sb_profile *p = arg;
	const char *s = sb_profiles_text(f, value, name);

	if (!sb_environ_name_ok(name)) {
		sb_profiles_mistake(f, key,
			"secret_env: \"%s\" is not a variable's name: a letter or _, then letters, "
			"digits and _",
			name);
	} else if (s && !(sb_str_starts(s, "env:") && sb_environ_name_ok(s + 4)) &&
		!(sb_str_starts(s, "file:") && (s[5] == '/' || s[5] == '~'))) {
		/* What stands there may be the secret itself: it is not repeated. */
		sb_profiles_mistake(f, value,
			"secret_env: %s must be a reference: env:NAME or file:/PATH", name);
	} else if (s) {
		const char *home = getenv("HOME");
		sb_autofree char *path = sb_str_starts(s, "file:~/") && home ?
			sb_str_printf("file:%s%s", home, s + 6) :
			strdup(s);

		if (!path)
			no_memory(f);
		else
			put_pair(f, &p->secret_env, name, path);
	}
}

static void
network_list(struct profiles_reader *f, const yaml_node_t *value, const char *name,
	struct sb_strlist *out)
{
	sb_auto(sb_netpolicy) struct sb_netpolicy *p = sb_netpolicy_new(NULL);
	bool deny = strcmp(name, "deny_list") == 0;
	struct sb_error why = { 0 };

	sb_profiles_list(f, value, name, out);
	for (size_t i = 0; p && i < out->n; i++)
		if ((deny ? sb_netpolicy_deny : sb_netpolicy_allow)(p, out->v[i], &why) < 0)
			sb_profiles_mistake(f, value, "%s: %s", name, why.msg);
}

static void
network_pair(struct profiles_reader *f, const yaml_node_t *key, const char *name,
	const yaml_node_t *value, void *arg)
{
	struct sb_network *w = &((struct sb_profile *)arg)->network;

	if (strcmp(name, "allow_public_ingress") == 0)
		sb_profiles_bool(f, value, name, &w->allow_public_ingress);
	else if (strcmp(name, "allow_outbound") == 0)
		sb_profiles_bool(f, value, name, &w->allow_outbound);
	else if (strcmp(name, "required") == 0)
		sb_profiles_bool(f, value, name, &w->required);
	else if (strcmp(name, "allow_list") == 0)
		network_list(f, value, name, &w->allow_list);
	else if (strcmp(name, "deny_list") == 0)
		network_list(f, value, name, &w->deny_list);
	else
		sb_profiles_mistake(f, key,
			"network has no \"%s\": use allow_public_ingress, allow_outbound, "
			"allow_list, deny_list, required",
			name);
}

static void
timeout_pair(struct profiles_reader *f, const yaml_node_t *key, const char *name,
	const yaml_node_t *value, void *arg)
{
	struct sb_profile *p = arg;
	const char *s = sb_profiles_text(f, value, name);
	int64_t *to = strcmp(name, "prepare") == 0 ? &p->prepare_timeout_ms :
		strcmp(name, "sync") == 0          ? &p->sync_timeout_ms :
		strcmp(name, "destroy") == 0       ? &p->destroy_timeout_ms :
						     NULL;

	if (!to)
		sb_profiles_mistake(f, key, "timeouts has no \"%s\": use prepare, sync, destroy",
			name);
	else if (s && (!sb_opt_time(s, to) || *to <= 0))
		sb_profiles_mistake(f, value, "%s: \"%s\" is not a time: 30, 30s, 5m, 250ms, 2h",
			name, s);
}

static void
add_hook(struct profiles_reader *f, const yaml_node_t *key, const char *event,
	const yaml_node_t *command, struct sb_profile *p)
{
	struct sb_profile_hook h = { .event = strdup(event) }, *grown;

	sb_profiles_list(f, command, event, &h.argv);
	if (!h.argv.n)
		sb_profiles_mistake(f, key, "hooks: %s needs a command: [program, argument]",
			event);
	grown = h.argv.n && h.event ? reallocarray(p->hooks, p->n_hooks + 1, sizeof *grown) : NULL;
	if (!grown) {
		free(h.event);
		sb_strlist_free(&h.argv);
		return;
	}
	p->hooks = grown;
	p->hooks[p->n_hooks++] = h;
}

static void
hook_pair(struct profiles_reader *f, const yaml_node_t *key, const char *name,
	const yaml_node_t *value, void *arg)
{
	static const char *const events[] = { "prepare", "sync.before", "sync.after", "ready",
		"stop", NULL };
	struct sb_profile *p = arg;
	const yaml_node_t *first;
	int i = 0;

	while (events[i] && strcmp(events[i], name) != 0)
		i++;
	if (!events[i]) {
		sb_profiles_mistake(f, key,
			"hooks has no \"%s\": use prepare, sync.before, sync.after, ready, stop",
			name);
		return;
	}
	/* One command, or a list of commands. */
	first = value && value->type == YAML_SEQUENCE_NODE &&
			value->data.sequence.items.top > value->data.sequence.items.start ?
		yaml_document_get_node(&f->doc, value->data.sequence.items.start[0]) :
		NULL;
	if (!first || first->type != YAML_SEQUENCE_NODE) {
		add_hook(f, key, name, value, p);
		return;
	}
	for (yaml_node_item_t *k = value->data.sequence.items.start;
		k < value->data.sequence.items.top; k++)
		add_hook(f, key, name, yaml_document_get_node(&f->doc, *k), p);
}

static const struct sb_provider_option *
find_option(const struct sb_provider_option *all, const char *name)
{
	for (; all && all->name; all++)
		if (strcmp(all->name, name) == 0)
			return all;
	return NULL;
}

static void
option_pair(struct profiles_reader *f, const yaml_node_t *key, const char *name,
	const yaml_node_t *value, void *arg)
{
	struct sb_profile *p = arg;
	struct sb_provider *provider =
		f->o->registry ? sb_registry_get(f->o->registry, p->backend, NULL) : NULL;
	const struct sb_provider_option *all = provider ? provider->ops->options : NULL,
					*o = find_option(all, name);
	const char *s = sb_profiles_text(f, value, name);
	sb_auto(sb_buf) struct sb_buf names = { 0 };
	bool right = !o || (!o->choices && !o->check) || (s && o->check && o->check(s));

	sb_buf_init(&names, 1024);
	if (provider && !o) {
		for (; all && all->name; all++)
			sb_buf_addf(&names, "%s%s", names.len ? ", " : "", all->name);
		sb_profiles_mistake(f, key, "%s has no option \"%s\": use %s",
			sb_backend_name(p->backend), name,
			names.len ? (const char *)names.data : "none");
		return;
	}
	if (o && o->user_only && f->project) {
		sb_profiles_mistake(f, key,
			"%s is not taken from a project's file: put the profile into your own "
			"configuration",
			name);
		return;
	}
	for (size_t i = 0; o && o->choices && o->choices[i]; i++) {
		sb_buf_addf(&names, "%s%s", i ? ", " : "", o->choices[i]);
		right = right || (s && strcmp(s, o->choices[i]) == 0);
	}
	if (s && !right)
		sb_profiles_mistake(f, value, "%s is \"%s\": use %s", name, s,
			names.len ? (const char *)names.data : o->value);
	else if (s)
		put_pair(f, &p->options, name, s);
}

/* Directories are taken from where the file is; "~/" is the home. */
static void
put_dirs(struct profiles_reader *f, const yaml_node_t *n, struct sb_profile *p)
{
	sb_auto(sb_strlist) struct sb_strlist raw = { 0 };
	const char *home = getenv("HOME"), *slash = strrchr(f->file, '/');

	sb_profiles_list(f, n, "dirs", &raw);
	for (size_t i = 0; i < raw.n; i++) {
		sb_autofree char *path = sb_str_starts(raw.v[i], "~/") && home ?
			sb_str_printf("%s/%s", home, raw.v[i] + 2) :
			raw.v[i][0] == '/' ?
			strdup(raw.v[i]) :
			sb_str_printf("%.*s/%s", slash ? (int)(slash - f->file) : 1,
				slash ? f->file : ".", raw.v[i]);

		if (!path)
			no_memory(f);
		else
			add_text(f, &p->dirs, path);
	}
}

static bool
refused_in_project(struct profiles_reader *f, const yaml_node_t *key, const char *name)
{
	if (!f->project ||
		(strcmp(name, "hooks") != 0 && strcmp(name, "secret_env") != 0 &&
			strcmp(name, "dirs") != 0))
		return false;
	sb_profiles_mistake(f, key,
		"%s is not taken from a project's file: put the profile into your own "
		"configuration",
		name);
	return true;
}

static void
body_word(struct profiles_reader *f, const char *name, const yaml_node_t *value, struct body *b)
{
	struct sb_profile *p = b->p;

	if (strcmp(name, "backend") == 0) {
		b->has_backend = true;
		WORD(f, value, backend, "backend", &p->backend);
	} else if (strcmp(name, "sync_mode") == 0) {
		b->has_mode = true;
		WORD(f, value, sync_mode, "sync_mode", &p->sync_mode);
	} else if (strcmp(name, "persistence") == 0) {
		WORD(f, value, persist, "persistence", &p->persist);
	} else if (strcmp(name, "permissions") == 0) {
		WORD(f, value, perm_mode, "permissions", &p->permissions);
	} else if (strcmp(name, "destroy_on_stop") == 0) {
		b->has_destroy = true;
		sb_profiles_bool(f, value, name, &p->destroy_on_stop);
	} else {
		const char *s = sb_profiles_text(f, value, name);

		free(p->runtime_root);
		p->runtime_root = s ? strdup(s) : NULL;
	}
}

static void
body_pair(struct profiles_reader *f, const yaml_node_t *key, const char *name,
	const yaml_node_t *value, void *arg)
{
	static const char *const words[] = { "backend", "sync_mode", "persistence", "permissions",
		"destroy_on_stop", "runtime_root", NULL };
	struct body *b = arg;
	enum sb_backend as_backend;

	if (refused_in_project(f, key, name))
		return;
	for (int i = 0; words[i]; i++)
		if (strcmp(words[i], name) == 0) {
			body_word(f, name, value, b);
			return;
		}
	if (strcmp(name, "env") == 0)
		sb_profiles_map(f, value, name, env_pair, b->p);
	else if (strcmp(name, "secret_env") == 0)
		sb_profiles_map(f, value, name, secret_pair, b->p);
	else if (strcmp(name, "include") == 0)
		sb_profiles_list(f, value, name, &b->p->include);
	else if (strcmp(name, "exclude") == 0)
		sb_profiles_list(f, value, name, &b->p->exclude);
	else if (strcmp(name, "dirs") == 0)
		put_dirs(f, value, b->p);
	else if (strcmp(name, "network") == 0)
		sb_profiles_map(f, value, name, network_pair, b->p);
	else if (strcmp(name, "timeouts") == 0)
		sb_profiles_map(f, value, name, timeout_pair, b->p);
	else if (strcmp(name, "hooks") == 0)
		sb_profiles_map(f, value, name, hook_pair, b->p);
	else if (sb_backend_parse(name, &as_backend, NULL) == 0) {
		if (b->section)
			sb_profiles_mistake(f, key,
				"options of two backends (%s and %s): a profile has one",
				b->section_name, name);
		b->section = value;
		(void)snprintf(b->section_name, sizeof b->section_name, "%s", name);
	} else
		sb_profiles_mistake(f, key,
			"a profile has no \"%s\": use backend, sync_mode, persistence, "
			"destroy_on_stop, permissions, "
			"runtime_root, env, secret_env, include, exclude, dirs, network, timeouts, "
			"hooks, or the backend's name for its options",
			name);
}

void
sb_profiles_body(struct profiles_reader *f, const yaml_node_t *n, struct sb_profile *p)
{
	struct body b = { .p = p };

	sb_profiles_map(f, n, "a profile", body_pair, &b);
	if (n && n->type == YAML_MAPPING_NODE && !b.has_backend) {
		sb_profiles_mistake(f, n,
			"profile %s has no backend: use local, ssh, host, docker, daytona, e2b, "
			"fly",
			p->name);
		return;
	}
	if (!b.has_mode)
		p->sync_mode =
			p->backend == SB_BACKEND_LOCAL ? SB_SYNC_MODE_NONE : SB_SYNC_MODE_SESSION;
	if (!b.has_destroy)
		p->destroy_on_stop = p->persist != SB_PERSIST_REUSE;
	if (!b.section)
		return;
	if (strcmp(b.section_name, sb_backend_name(p->backend)) != 0)
		sb_profiles_mistake(f, b.section, "options of %s in a profile of backend %s",
			b.section_name, sb_backend_name(p->backend));
	else
		sb_profiles_map(f, b.section, b.section_name, option_pair, p);
}
