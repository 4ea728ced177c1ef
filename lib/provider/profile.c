/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sb/profile.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <base/file.h>
#include <base/str.h>
#include <provider/provider.h>

#define SECRET_MAX (64 * 1024)
#define AT(f) offsetof(struct sb_profile, f)

/* The lists of a profile. */
static const size_t lists[] = { AT(env), AT(secret_env), AT(include), AT(exclude), AT(dirs),
	AT(network.allow_list), AT(network.deny_list), AT(options) };
#define LISTS (sizeof lists / sizeof lists[0])

static char ***
list_at(struct sb_profile *p, size_t i)
{
	return (char ***)(void *)((char *)p + lists[i]);
}

void
sb_profile_free(struct sb_profile *p)
{
	free(p->name);
	free(p->runtime_root);
	for (size_t i = 0; i < LISTS; i++)
		sb_texts_free(*list_at(p, i));
	for (size_t i = 0; i < p->n_hooks; i++) {
		free(p->hooks[i].event);
		sb_texts_free(p->hooks[i].argv);
	}
	free(p->hooks);
	memset(p, 0, sizeof *p);
}

static int
copy_hooks(const struct sb_profile *p, struct sb_profile *c, struct sb_error *err)
{
	int r = 0;

	c->hooks = p->n_hooks ? calloc(p->n_hooks, sizeof *c->hooks) : NULL;
	if (p->n_hooks && !c->hooks)
		return sb_fail(err, SB_E_NOMEM, "profile: out of memory");
	c->n_hooks = p->n_hooks;
	for (size_t i = 0; r == 0 && i < p->n_hooks; i++) {
		c->hooks[i].timeout_ms = p->hooks[i].timeout_ms;
		c->hooks[i].event = strdup(p->hooks[i].event);
		r = c->hooks[i].event ? sb_texts_copy((const char *const *)p->hooks[i].argv,
						&c->hooks[i].argv, err) :
					sb_fail(err, SB_E_NOMEM, "profile: out of memory");
	}
	return r;
}

int
sb_profile_copy(const struct sb_profile *p, struct sb_profile *out, struct sb_error *err)
{
	struct sb_profile c = *p;
	int r = 0;

	c.name = p->name ? strdup(p->name) : NULL;
	c.runtime_root = p->runtime_root ? strdup(p->runtime_root) : NULL;
	c.hooks = NULL;
	c.n_hooks = 0;
	for (size_t i = 0; i < LISTS; i++)
		*list_at(&c, i) = NULL;
	if ((p->name && !c.name) || (p->runtime_root && !c.runtime_root))
		r = sb_fail(err, SB_E_NOMEM, "profile: out of memory");
	for (size_t i = 0; r == 0 && i < LISTS; i++)
		r = sb_texts_copy(
			*(const char *const *const *)(const void *)((const char *)p + lists[i]),
			list_at(&c, i), err);
	if (r == 0)
		r = copy_hooks(p, &c, err);
	if (r < 0)
		sb_profile_free(&c);
	else
		*out = c;
	return r;
}

int
sb_profile_default(enum sb_backend backend, const char *name, struct sb_profile *out,
	struct sb_error *err)
{
	struct sb_profile p = { .backend = backend,
		.persist = SB_PERSIST_TRANSIENT,
		.sync_mode = backend == SB_BACKEND_LOCAL ? SB_SYNC_MODE_NONE : SB_SYNC_MODE_SESSION,
		/* The built-in local profile removes nothing: what it would remove is the user's
		   own directory. */
		.destroy_on_stop = backend != SB_BACKEND_LOCAL || name };

	if ((unsigned)backend >= SB_BACKEND_COUNT)
		return sb_fail(err, SB_E_BACKEND_INVALID, "backend %d is not known", (int)backend);
	p.name = strdup(name ? name : sb_backend_name(backend));
	if (!p.name)
		return sb_fail(err, SB_E_NOMEM, "profile: out of memory");
	*out = p;
	return 0;
}

bool
sb_env_name_ok(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
	size_t n = strlen(name);

	return n > 0 && n <= 255 && strchr(letters, name[0]) &&
		strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") ==
		n;
}

bool
sb_env_looks_secret(const char *name)
{
	static const char *const parts[] = { "SECRET", "TOKEN", "PASSWORD", "PASSWD", "API_KEY",
		"APIKEY", "PRIVATE_KEY", "PRIVATEKEY", "AUTHORIZATION", "BEARER", "CREDENTIAL",
		NULL };
	static const char *const ends[] = { "_URL", "_URI", "_PATH", "_FILE", "_DIR", NULL };

	for (int i = 0; ends[i]; i++)
		if (sb_str_ends(name, ends[i]))
			return false;
	for (int i = 0; parts[i]; i++)
		if (strcasestr(name, parts[i]))
			return true;
	return false;
}

/* The value behind one reference; the caller wipes it. */
static int
resolve(const char *key, const char *ref, struct sb_buf *out, struct sb_error *err)
{
	if (sb_str_starts(ref, "env:")) {
		const char *v = getenv(ref + 4);

		if (!v)
			return sb_fail(err, SB_E_SECRET, "secret %s: %s: the variable is not set",
				key, ref);
		sb_buf_init(out, SECRET_MAX);
		sb_buf_add_str(out, v);
		return sb_buf_check(out, key, err);
	}
	if (sb_str_starts(ref, "file:")) {
		struct sb_error why = { 0 };

		if (sb_file_read(AT_FDCWD, ref + 5, SECRET_MAX, out, &why) < 0)
			return sb_fail(err, SB_E_SECRET, "secret %s: %s", key, why.msg);
		/* The line end that an editor leaves is not part of it. */
		while (out->len > 0 &&
			(out->data[out->len - 1] == '\n' || out->data[out->len - 1] == '\r'))
			out->data[--out->len] = '\0';
		if (memchr(out->data, 0, out->len))
			return sb_fail(err, SB_E_SECRET, "secret %s: %s holds a NUL byte", key,
				ref);
		return 0;
	}
	return sb_fail(err, SB_E_SECRET, "secret %s: a reference is env:NAME or file:PATH", key);
}

static int
add_secret(const char *pair, char ***v, struct sb_error *err)
{
	const char *eq = strchr(pair, '=');
	sb_autofree char *key = eq ? strndup(pair, (size_t)(eq - pair)) : NULL;
	sb_auto(sb_buf) struct sb_buf value = { 0 };
	int r;

	if (!key)
		return sb_fail(err, SB_E_SECRET,
			"secret \"%.32s\": a name and a reference are needed", pair);
	r = resolve(key, eq + 1, &value, err);
	if (r == 0)
		r = sb_texts_set(v, key, (const char *)value.data, err);
	if (value.data && value.cap > 0)
		explicit_bzero(value.data, value.len);
	return r;
}

static int
by_key(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int
sb_secrets_resolve(const char *const *secret_env, char ***out, struct sb_error *err)
{
	char **sorted = NULL, **v = NULL;
	size_t n = sb_texts_count(secret_env);
	int r = sb_texts_copy(secret_env, &sorted, err);

	if (r == 0 && n > 1)
		qsort(sorted, n, sizeof *sorted, by_key);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_secret(sorted[i], &v, err);
	sb_texts_free(sorted);
	if (r < 0)
		sb_secrets_free(v);
	else
		*out = v;
	return r;
}

void
sb_secrets_free(char **v)
{
	for (size_t i = 0; v && v[i]; i++)
		explicit_bzero(v[i], strlen(v[i]));
	sb_texts_free(v);
}
