/* SPDX-License-Identifier: MIT */
/* One profile: defaults, copies, freeing (declared in sb/profile.h). */
#include "config.h"

#include <sb/profile.h>

#include <stdlib.h>
#include <string.h>

#include <provider/provider.h>
#include <egress/netpolicy.h>

#define AT(f) offsetof(struct sb_profile, f)

/* The lists of a profile. */
static const size_t lists[] = { AT(env), AT(secret_env), AT(include), AT(exclude), AT(dirs),
	AT(network.allow_list), AT(network.deny_list), AT(options) };
#define LISTS (sizeof lists / sizeof lists[0])

static struct sb_strlist *
list_at(struct sb_profile *p, size_t i)
{
	return (struct sb_strlist *)(void *)((char *)p + lists[i]);
}

void
sb_profile_free(struct sb_profile *p)
{
	free(p->name);
	free(p->runtime_root);
	for (size_t i = 0; i < LISTS; i++)
		sb_strlist_free(list_at(p, i));
	for (size_t i = 0; i < p->n_hooks; i++) {
		free(p->hooks[i].event);
		sb_strlist_free(&p->hooks[i].argv);
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
		sb_strlist_join(&c->hooks[i].argv, &p->hooks[i].argv);
		r = c->hooks[i].event ? sb_strlist_check(&c->hooks[i].argv, err) :
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
		*list_at(&c, i) = (struct sb_strlist){ 0 };
	if ((p->name && !c.name) || (p->runtime_root && !c.runtime_root))
		r = sb_fail(err, SB_E_NOMEM, "profile: out of memory");
	for (size_t i = 0; r == 0 && i < LISTS; i++) {
		sb_strlist_join(list_at(&c, i), list_at((struct sb_profile *)(uintptr_t)p, i));
		r = sb_strlist_check(list_at(&c, i), err);
	}
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

static int
add_entry(struct sb_netpolicy *check, const char *entry, struct sb_strlist *list,
	struct sb_error *err)
{
	int r = sb_netpolicy_allow(check, entry, err);

	if (r < 0)
		return sb_wrap(err, SB_E_USAGE, "--network");
	sb_strlist_add(list, entry);
	return sb_strlist_check(list, err);
}

int
sb_profile_set_network(struct sb_profile *p, const char *word, struct sb_error *err)
{
	sb_auto(sb_netpolicy) struct sb_netpolicy *check = sb_netpolicy_new(err);
	bool on = strcmp(word, "on") == 0, off = strcmp(word, "off") == 0;
	sb_auto(sb_strlist) struct sb_strlist list = { 0 };
	int r = check ? 0 : SB_E_NOMEM;

	while (r == 0 && !on && !off && word) {
		const char *comma = strchr(word, ',');
		sb_autofree char *entry =
			comma ? strndup(word, (size_t)(comma - word)) : strdup(word);

		r = entry ? add_entry(check, entry, &list, err) :
			    sb_fail(err, SB_E_NOMEM, "out of memory");
		word = comma ? comma + 1 : NULL;
	}
	if (r < 0)
		return r;
	sb_strlist_free(&p->network.allow_list);
	p->network.allow_list = list;
	list = (struct sb_strlist){ 0 };
	p->network.allow_outbound = !off;
	p->network.required = !on;
	if (off)
		sb_strlist_free(&p->network.deny_list);
	return 0;
}
