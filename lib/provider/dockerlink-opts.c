/* SPDX-License-Identifier: MIT */
/* The options of a docker profile, and the choice that they leave open (provider/dockerlink.h). */
#include "config.h"

#include <provider/dockerlink.h>

#include <ctype.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <base/buf.h>
#include <base/str.h>
#include <docker/name.h>

#define ASK_MS 15000
#define STATE_VERSION 1

static bool
is_image(const char *text)
{
	return sb_name_image_ok(text);
}

static bool
is_word(const char *text)
{
	return sb_name_ok(text);
}

static bool
is_path(const char *text)
{
	return *text == '/';
}

/* "512m", "2g": what every program takes. */
static bool
is_memory(const char *text)
{
	size_t n = strspn(text, "0123456789");

	return n > 0 && n < 12 && strchr("bkmg", tolower((unsigned char)text[n])) &&
		(!text[n] || !text[n + 1]);
}

static bool
is_cpus(const char *text)
{
	size_t n = strspn(text, "0123456789");

	return n > 0 && n < 5 &&
		(!text[n] ||
			(text[n] == '.' && strspn(text + n + 1, "0123456789") > 0 &&
				!text[n + 1 + strspn(text + n + 1, "0123456789")]));
}

static bool
is_count(const char *text)
{
	int64_t v;

	return sb_str_to_i64(text, 1, 4194304, &v);
}

static bool
is_user(const char *text)
{
	for (const char *p = text; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("_.:-", *p))
			return false;
	return isalnum((unsigned char)*text);
}

static bool
is_caps(const char *text)
{
	for (const char *p = text; *p; p++)
		if (!isupper((unsigned char)*p) && *p != '_' && *p != ',')
			return false;
	return isupper((unsigned char)*text);
}

static const char *const kinds[] = { "auto", "sbx", "docker-sandbox", "container", NULL };
static const char *const engines[] = { "auto", "docker", "podman", NULL };
static const char *const syncs[] = { "synced", "mounted", NULL };
static const char *const ways[] = { "exec", "ssh", NULL };
static const char *const yes_no[] = { "yes", "no", NULL };

const struct sb_provider_option sb_dockerlink_options[] = {
	{ .name = "kind",
		.value = "KIND",
		.help = "what keeps the sandbox; auto: the first that works",
		.choices = kinds },
	{ .name = "engine",
		.value = "NAME",
		.help = "whose containers; auto: docker, else podman",
		.choices = engines },
	{ .name = "sync",
		.value = "WAY",
		.help = "synced: files of its own; mounted: it works in the directory itself",
		.choices = syncs,
		.user_only = true },
	{ .name = "image",
		.value = "IMAGE",
		.help = "image of a container, template of a sandbox",
		.check = is_image },
	{ .name = "agent",
		.value = "NAME",
		.help = "kind of agent of sbx and docker sandbox; shell by default",
		.check = is_word },
	{ .name = "via",
		.value = "WAY",
		.help = "how sbx is reached: exec, or ssh after 'sbx setup ssh'",
		.choices = ways },
	{ .name = "ssh_config",
		.value = "FILE",
		.help = "configuration of ssh that names it, for via: ssh",
		.check = is_path,
		.user_only = true },
	{ .name = "memory", .value = "SIZE", .help = "at most, as 512m or 2g", .check = is_memory },
	{ .name = "cpus", .value = "NUMBER", .help = "at most, as 2 or 0.5", .check = is_cpus },
	{ .name = "pids",
		.value = "NUMBER",
		.help = "processes of a container, at most",
		.check = is_count },
	{ .name = "user",
		.value = "USER[:GROUP]",
		.help = "in a container, instead of the image's",
		.check = is_user },
	{ .name = "read_only",
		.value = "yes|no",
		.help = "a container whose system cannot be changed",
		.choices = yes_no },
	{ .name = "cap_add",
		.value = "NAME,...",
		.help = "capabilities that a container keeps; none by default",
		.check = is_caps,
		.user_only = true },
	{ .name = "runtime",
		.value = "NAME",
		.help = "OCI runtime of the engine, as runsc",
		.check = is_word,
		.user_only = true },
	{ .name = NULL },
};

static const char *const kind_words[] = { [SB_DOCKERLINK_SBX] = "sbx",
	[SB_DOCKERLINK_SANDBOX] = "docker-sandbox",
	[SB_DOCKERLINK_CONTAINER] = "container" };

void
sb_dockerlink_free(struct sb_dockerlink *l)
{
	if (!l)
		return;
	sb_dockerlink_unlock(l);
	free(l->id);
	free(l->name);
	free(l->why);
	free(l->state_dir);
	sb_engine_free(&l->engine);
	sb_docker_free(l->docker);
	sb_strlist_free(&l->options);
	free(l);
}

const char *
sb_dockerlink_label(const struct sb_dockerlink *l)
{
	return l->kind == SB_DOCKERLINK_SBX      ? "sbx" :
		l->kind == SB_DOCKERLINK_SANDBOX ? "docker sandbox" :
		l->engine.podman                 ? "a container of podman" :
						   "a container of docker";
}

static bool
is_option(const char *const *options, const char *key, const char *value)
{
	const char *v = sb_strlist_get(options, key);

	return v && strcmp(v, value) == 0;
}

bool
sb_dockerlink_is_mounted(const char *const *options)
{
	return is_option(options, "sync", "mounted");
}

enum sb_dockerlink_kind
sb_dockerlink_guess(const char *const *options)
{
	const char *kind = sb_strlist_get(options, "kind");
	sb_autofree char *sbx = NULL;

	for (int i = 0; kind && i <= SB_DOCKERLINK_CONTAINER; i++)
		if (strcmp(kind, kind_words[i]) == 0)
			return (enum sb_dockerlink_kind)i;
	/* A named engine or image means containers. */
	if (sb_strlist_get(options, "engine") || sb_strlist_get(options, "image"))
		return SB_DOCKERLINK_CONTAINER;
	sbx = sb_cli_find("sbx");
	return sbx ? SB_DOCKERLINK_SBX : SB_DOCKERLINK_CONTAINER;
}

static struct sb_dockerlink *
link_new(const char *id, const char *const *options, const char *state_dir, struct sb_error *err)
{
	sb_auto(sb_dockerlink) struct sb_dockerlink *l = calloc(1, sizeof *l);

	if (l) {
		l->id = strdup(id);
		l->name = sb_name_of_sandbox(id, false);
		l->mounted = sb_dockerlink_is_mounted(options);
		l->state_dir = state_dir ? strdup(state_dir) : NULL;
		sb_strlist_add_all(&l->options, options);
	}
	if (!l || !l->id || !l->name || (state_dir && !l->state_dir) || l->options.failed) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	return sb_steal(&l);
}

/* One program that may be taken. `tried` collects why others were not. */
struct choice {
	struct sb_dockerlink *l;
	const struct sb_call *call;
	struct sb_buf tried;
};

static bool
note(struct choice *c, const struct sb_error *why)
{
	sb_buf_addf(&c->tried, "%s%.200s", c->tried.len ? "; " : "", why->msg);
	return false;
}

static bool
try_sandboxes(struct choice *c, bool sbx)
{
	struct sb_error why = { 0 };
	struct sb_docker *d = sb_docker_new(sbx, &why);

	if (d && sb_docker_is_sbx(d) != sbx)
		(void)sb_fail(&why, SB_E_NOTFOUND, "sbx is not installed");
	else if (d && sb_docker_check(d, c->call, &why) == 0) {
		char *name = sb_name_of_sandbox(c->l->id, sbx);

		if (name) {
			free(c->l->name);
			c->l->name = name;
		}
		c->l->kind = sbx ? SB_DOCKERLINK_SBX : SB_DOCKERLINK_SANDBOX;
		c->l->docker = d;
		return true;
	}
	sb_docker_free(d);
	return note(c, &why);
}

/* Engines that worked once in this process, and how they are: each question costs a command. */
static pthread_mutex_t known_mu = PTHREAD_MUTEX_INITIALIZER;
static struct {
	bool works;
	struct sb_engine_facts is;
} known[2];

int
sb_dockerlink_learn(struct sb_engine *e, const struct sb_call *call, struct sb_error *err)
{
	int r = 0;

	(void)pthread_mutex_lock(&known_mu);
	if (known[e->podman].works && !e->checked) {
		e->checked = true;
		e->is = known[e->podman].is;
	}
	(void)pthread_mutex_unlock(&known_mu);
	if (e->checked)
		return 0;
	r = sb_engine_check(e, call, err);
	(void)pthread_mutex_lock(&known_mu);
	known[e->podman].works = r == 0;
	known[e->podman].is = e->is;
	(void)pthread_mutex_unlock(&known_mu);
	return r;
}

static bool
try_engine(struct choice *c, const char *program)
{
	struct sb_error why = { 0 };
	sb_auto(sb_engine) struct sb_engine e = { 0 };

	if (sb_engine_open(program, &e, &why) < 0 || sb_dockerlink_learn(&e, c->call, &why) < 0)
		return note(c, &why);
	c->l->kind = SB_DOCKERLINK_CONTAINER;
	c->l->engine = e;
	e = (struct sb_engine){ 0 };
	return true;
}

/* The first that works. Sandboxes of a kernel of their own come before containers. */
static bool
try_all(struct choice *c, const char *kind, const char *engine)
{
	bool any = strcmp(kind, "auto") == 0;
	bool each = strcmp(engine, "auto") == 0;

	if (any && !each)
		kind = "container";
	any = strcmp(kind, "auto") == 0;
	if ((any || strcmp(kind, "sbx") == 0) && try_sandboxes(c, true))
		return true;
	if ((any || strcmp(kind, "docker-sandbox") == 0) && try_sandboxes(c, false))
		return true;
	if (!any && strcmp(kind, "container") != 0)
		return false;
	return ((each || strcmp(engine, "docker") == 0) && try_engine(c, "docker")) ||
		((each || strcmp(engine, "podman") == 0) && try_engine(c, "podman"));
}

static const char *
option_or(const char *const *options, const char *key, const char *otherwise)
{
	const char *v = sb_strlist_get(options, key);

	return v && *v ? v : otherwise;
}

/* Whether the kind leaves no choice of a program. */
static bool
is_one_program(const char *kind)
{
	return strcmp(kind, "sbx") == 0 || strcmp(kind, "docker-sandbox") == 0;
}

struct sb_dockerlink *
sb_dockerlink_choose(const char *id, const char *const *options, const char *state_dir,
	const struct sb_call *call, struct sb_error *err)
{
	struct sb_call within = sb_call_within(call, ASK_MS);
	sb_auto(sb_dockerlink) struct sb_dockerlink *l = link_new(id, options, state_dir, err);
	struct choice c = { .l = l, .call = &within };
	const char *kind = option_or(options, "kind", "auto");
	const char *engine = option_or(options, "engine", "auto");
	bool found;

	if (!l)
		return NULL;
	/* An image is one of containers unless somebody says otherwise. */
	if (strcmp(kind, "auto") == 0 && sb_strlist_get(options, "image"))
		kind = "container";
	sb_buf_init(&c.tried, 400);
	found = try_all(&c, kind, engine);
	if (sb_call_check(call, "prepare", err) < 0) {
		sb_buf_free(&c.tried);
		return NULL;
	}
	if (!found)
		(void)sb_fail(err, SB_E_UNSUPPORTED,
			"backend docker: nothing that was asked for works here: %s",
			(const char *)c.tried.data);
	else if (c.tried.len)
		l->why = strdup((const char *)c.tried.data);
	else
		l->why = strdup(strcmp(engine, "auto") != 0 || is_one_program(kind) ?
				"as asked" :
				"the first choice");
	sb_buf_free(&c.tried);
	return found ? sb_steal(&l) : NULL;
}

char *
sb_dockerlink_state(const struct sb_dockerlink *l, struct sb_error *err)
{
	json_t *o = json_pack("{s:i,s:s,s:s,s:s,s:b,s:s}", "version", STATE_VERSION, "kind",
		kind_words[l->kind], "name", l->name, "sync", l->mounted ? "mounted" : "synced",
		"lists", l->lists, "why", l->why ? l->why : "");
	char *text = NULL;

	if (o && l->kind == SB_DOCKERLINK_CONTAINER)
		(void)json_object_set_new(o, "engine",
			json_string(l->engine.podman ? "podman" : "docker"));
	text = o ? json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	json_decref(o);
	if (!text)
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
	return text;
}

static int
read_state(struct sb_dockerlink *l, const json_t *o, struct sb_error *err)
{
	const char *kind = json_string_value(json_object_get(o, "kind")),
		   *name = json_string_value(json_object_get(o, "name")),
		   *sync = json_string_value(json_object_get(o, "sync")),
		   *engine = json_string_value(json_object_get(o, "engine"));
	int i = 0;

	if (json_integer_value(json_object_get(o, "version")) != STATE_VERSION)
		return sb_fail(err, SB_E_VERSION,
			"sandbox %s was made by another version of the docker provider", l->id);
	while (i <= SB_DOCKERLINK_CONTAINER && (!kind || strcmp(kind, kind_words[i]) != 0))
		i++;
	if (i > SB_DOCKERLINK_CONTAINER || !name || !sb_name_ok(name) || !sync ||
		(i == SB_DOCKERLINK_CONTAINER && !engine))
		return sb_fail(err, SB_E_CORRUPT, "sandbox %s: its record is damaged", l->id);
	free(l->name);
	l->kind = (enum sb_dockerlink_kind)i;
	l->name = strdup(name);
	l->mounted = strcmp(sync, "mounted") == 0;
	l->lists = json_is_true(json_object_get(o, "lists"));
	if (!l->name)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	if (l->kind == SB_DOCKERLINK_CONTAINER)
		return sb_engine_open(strcmp(engine, "podman") == 0 ? "podman" : "docker",
			&l->engine, err);
	l->docker = sb_docker_new(l->kind == SB_DOCKERLINK_SBX, err);
	if (!l->docker)
		return SB_E_NOMEM;
	if (sb_docker_is_sbx(l->docker) != (l->kind == SB_DOCKERLINK_SBX))
		return sb_fail(err, SB_E_NOTFOUND, "sandbox %s is one of sbx, which is not on PATH",
			l->id);
	return 0;
}

struct sb_dockerlink *
sb_dockerlink_open(const char *id, const char *provider_state, const char *const *options,
	const char *state_dir, struct sb_error *err)
{
	sb_auto(sb_dockerlink) struct sb_dockerlink *l = link_new(id, options, state_dir, err);
	json_t *o = l && provider_state ? json_loads(provider_state, 0, NULL) : NULL;
	int r = 0;

	if (!l)
		return NULL;
	r = read_state(l, o, err);
	json_decref(o);
	return r < 0 ? NULL : sb_steal(&l);
}
