/* SPDX-License-Identifier: MIT */
/*
 * Which variables an agent's file asks for (sb/docker.h), by the rules of the program that runs it:
 * a model needs the token of its provider, a tool the secrets that Docker's catalogue of servers
 * names for it.
 */
#include "config.h"

#include <docker/docker-priv.h>

#include <ctype.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include <base/file.h>
#include <base/str.h>
#include <docker/name.h>
#include <docker/yamldoc.h>

#define CATALOGUE_MAX (32u << 20)

/* The token that a provider of models wants; "": none. */
static const struct {
	const char *provider, *variable;
} tokens[] = {
	{ "openai", "OPENAI_API_KEY" },
	{ "anthropic", "ANTHROPIC_API_KEY" },
	{ "requesty", "REQUESTY_API_KEY" },
	{ "azure", "AZURE_API_KEY" },
	{ "xai", "XAI_API_KEY" },
	{ "nebius", "NEBIUS_API_KEY" },
	{ "nvidia", "NVIDIA_API_KEY" },
	{ "openrouter", "OPENROUTER_API_KEY" },
	{ "atlascloud", "ATLASCLOUD_API_KEY" },
	{ "mistral", "MISTRAL_API_KEY" },
	{ "ollama", "" },
	{ "minimax", "MINIMAX_API_KEY" },
	{ "baseten", "BASETEN_API_KEY" },
	{ "ovhcloud", "OVH_AI_ENDPOINTS_ACCESS_TOKEN" },
	{ "groq", "GROQ_API_KEY" },
	{ "fireworks", "FIREWORKS_API_KEY" },
	{ "deepseek", "DEEPSEEK_API_KEY" },
	{ "cerebras", "CEREBRAS_API_KEY" },
	{ "together", "TOGETHER_API_KEY" },
	{ "huggingface", "HF_TOKEN" },
	{ "moonshot", "MOONSHOT_API_KEY" },
	{ "vercel", "AI_GATEWAY_API_KEY" },
	{ "cloudflare-workers-ai", "CLOUDFLARE_API_TOKEN" },
	{ "cloudflare-ai-gateway", "CLOUDFLARE_API_TOKEN" },
	{ "github-copilot", "GITHUB_TOKEN" },
	{ "opencode-go", "OPENCODE_API_KEY" },
	{ "opencode-zen", "OPENCODE_API_KEY" },
};

/* A file being read, and the names found in it. */
struct asker {
	struct sb_yamldoc d;
	sb_docker_lookup_fn lookup;
	void *arg;
	struct sb_strlist names;
};

static void
asker_free(struct asker *a)
{
	sb_yamldoc_free(&a->d);
	sb_strlist_free(&a->names);
}
SB_CLEANUP_VALUE(asker, asker_free)

/* A name that an environment can have; what else stands there is nobody's variable. */
static void
need(struct asker *a, const char *name, size_t len)
{
	if (len == 0 || isdigit((unsigned char)*name))
		return;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '_')
			return;
	sb_strlist_addf(&a->names, "%.*s", (int)len, name);
}

/* The variables that "$NAME" and "${NAME}" in a text stand for. */
static void
need_expanded(struct asker *a, const char *text)
{
	for (const char *p = text; p && *p; p++) {
		size_t n = 0;
		bool braced = p[0] == '$' && p[1] == '{';

		if (*p != '$')
			continue;
		p += braced ? 2 : 1;
		while (isalnum((unsigned char)p[n]) || p[n] == '_')
			n++;
		if (!braced || p[n] == '}')
			need(a, p, n);
		p += n - (n && !braced);
		if (!*p)
			return;
	}
}

/* What stands for a key: the identity token of a federation. */
static void
need_auth(struct asker *a, const yaml_node_t *auth)
{
	const char *type = sb_yamldoc_text_of(&a->d, auth, "type");
	const yaml_node_t *token =
		sb_yamldoc_get(&a->d, sb_yamldoc_get(&a->d, auth, "federation"), "identity_token");
	const yaml_node_t *headers = sb_yamldoc_get(&a->d, token, "headers");
	const yaml_node_t *v;
	const char *env = sb_yamldoc_text_of(&a->d, token, "env");

	if (!type || strcmp(type, "workload_identity_federation") != 0)
		return;
	if (env)
		need(a, env, strlen(env));
	need_expanded(a, sb_yamldoc_text_of(&a->d, token, "url"));
	for (size_t i = 0; (v = sb_yamldoc_nth(&a->d, headers, i, NULL)); i++)
		need_expanded(a, sb_yamldoc_text(v));
}

/* Google has two ways in, and a second name for the key. */
static void
need_google(struct asker *a, const yaml_node_t *model)
{
	const yaml_node_t *opts = sb_yamldoc_get(&a->d, model, "provider_opts");
	const char *vertex = a->lookup("GOOGLE_GENAI_USE_VERTEXAI", a->arg);

	if (sb_yamldoc_get(&a->d, opts, "project") || sb_yamldoc_get(&a->d, opts, "location"))
		return;
	if (vertex && *vertex) {
		sb_strlist_add(&a->names, "GOOGLE_CLOUD_LOCATION");
		sb_strlist_add(&a->names, "GOOGLE_CLOUD_PROJECT");
	} else if (!a->lookup("GEMINI_API_KEY", a->arg)) {
		sb_strlist_add(&a->names, "GOOGLE_API_KEY");
	}
}

static void
need_provider(struct asker *a, const yaml_node_t *model, const char *provider)
{
	if (strcmp(provider, "google") == 0)
		need_google(a, model);
	for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
		if (strcmp(tokens[i].provider, provider) == 0 && *tokens[i].variable)
			sb_strlist_add(&a->names, tokens[i].variable);
}

/* `model` may be NULL: one that is given as "PROVIDER/MODEL" alone. */
static void
need_model(struct asker *a, const yaml_node_t *model, const char *provider)
{
	yaml_node_t *root = sb_yamldoc_root(&a->d);
	const yaml_node_t *custom =
		sb_yamldoc_get(&a->d, sb_yamldoc_get(&a->d, root, "providers"), provider);
	const yaml_node_t *auth = sb_yamldoc_get(&a->d, model, "auth");
	const char *key = sb_yamldoc_text_of(&a->d, model, "token_key"), *kind;

	auth = auth ? auth : sb_yamldoc_get(&a->d, custom, "auth");
	if (auth) {
		need_auth(a, auth);
		return;
	}
	key = key ? key : sb_yamldoc_text_of(&a->d, custom, "token_key");
	if (key) {
		need(a, key, strlen(key));
		return;
	}
	kind = sb_yamldoc_text_of(&a->d, custom, "provider");
	need_provider(a, model, !custom ? provider : kind ? kind : "openai");
}

/* A model by its name in the file, or as "PROVIDER/MODEL". */
static void
need_named(struct asker *a, const char *name, bool routed)
{
	yaml_node_t *root = sb_yamldoc_root(&a->d);
	const yaml_node_t *model =
		sb_yamldoc_get(&a->d, sb_yamldoc_get(&a->d, root, "models"), name);
	const yaml_node_t *rules = sb_yamldoc_get(&a->d, model, "routing"), *rule;
	const char *slash = strchr(name, '/'), *to;

	if (model) {
		const char *provider = sb_yamldoc_text_of(&a->d, model, "provider");

		need_model(a, model, provider ? provider : "");
	} else if (slash) {
		sb_autofree char *provider = sb_str_printf("%.*s", (int)(slash - name), name);

		if (provider)
			need_model(a, NULL, provider);
		else
			a->names.failed = SB_E_NOMEM;
	}
	/* One step only: rules of a model that a rule leads to are not asked. */
	for (size_t i = 0; !routed && (rule = sb_yamldoc_nth(&a->d, rules, i, NULL)); i++) {
		to = sb_yamldoc_text_of(&a->d, rule, "model");
		if (to)
			need_named(a, to, true);
	}
}

static void
need_models(struct asker *a, const yaml_node_t *agents)
{
	const yaml_node_t *agent;

	for (size_t i = 0; (agent = sb_yamldoc_nth(&a->d, agents, i, NULL)); i++) {
		const char *list = sb_yamldoc_text_of(&a->d, agent, "model");

		/* Another program's agent brings its own models. */
		if (sb_yamldoc_get(&a->d, agent, "harness"))
			continue;
		while (list && *list) {
			size_t n = strcspn(list, ","), from = strspn(list, " \t"), to = n;
			sb_autofree char *name = NULL;

			while (to > from && isspace((unsigned char)list[to - 1]))
				to--;
			if (to > from) {
				name = sb_str_printf("%.*s", (int)(to - from), list + from);
				if (name)
					need_named(a, name, false);
				else
					a->names.failed = SB_E_NOMEM;
			}
			list += n + (list[n] == ',');
		}
	}
}

/* The secrets of a server, as Docker's catalogue has them; a variable that the file sets itself is
 * replaced by those it is set from. */
static void
need_secrets(struct asker *a, const json_t *server, const yaml_node_t *toolset)
{
	const char *type = json_string_value(json_object_get(server, "type"));
	const yaml_node_t *env = sb_yamldoc_get(&a->d, toolset, "env");
	const json_t *secret;
	size_t i;

	if (type && strcmp(type, "remote") == 0)
		return;
	json_array_foreach(json_object_get(server, "secrets"), i, secret)
	{
		const char *name = json_string_value(json_object_get(secret, "env"));
		const yaml_node_t *set = name ? sb_yamldoc_get(&a->d, env, name) : NULL;

		if (set)
			need_expanded(a, sb_yamldoc_text(set));
		else if (name)
			need(a, name, strlen(name));
	}
}

/* What the other program last fetched. */
static json_t *
read_catalogue(struct sb_error *err)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	sb_autofree char *path = cache && *cache == '/' ?
		sb_str_printf("%s/cagent/mcp_catalog.json", cache) :
		sb_str_printf("%s/.cache/cagent/mcp_catalog.json", home ? home : "");
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	json_t *o;

	if (!path || sb_file_read(AT_FDCWD, path, CATALOGUE_MAX, &text, err) < 0)
		return NULL;
	o = json_loadb((const char *)text.data, text.len, 0, NULL);
	if (!o)
		(void)sb_fail(err, SB_E_INVAL, "%s is no JSON", path);
	return o;
}

static void
need_tools(struct asker *a, const yaml_node_t *agents, const struct sb_call *call)
{
	struct sb_error why = { 0 };
	const yaml_node_t *agent, *toolset;
	json_t *doc = NULL;
	bool tried = false;

	for (size_t i = 0; (agent = sb_yamldoc_nth(&a->d, agents, i, NULL)); i++) {
		const yaml_node_t *sets = sb_yamldoc_get(&a->d, agent, "toolsets");

		for (size_t k = 0; (toolset = sb_yamldoc_nth(&a->d, sets, k, NULL)); k++) {
			const char *type = sb_yamldoc_text_of(&a->d, toolset, "type"),
				   *ref = sb_yamldoc_text_of(&a->d, toolset, "ref");
			const json_t *server;

			if (!type || strcmp(type, "mcp") != 0 || !ref)
				continue;
			if (sb_str_starts(ref, "docker:"))
				ref += strlen("docker:");
			doc = tried ? doc : read_catalogue(&why);
			tried = true;
			server = json_object_get(json_object_get(doc, "catalog"), ref);
			if (server)
				need_secrets(a, server, toolset);
			else if (call)
				sb_log(&call->log, SB_LOG_DEBUG, "docker",
					"what server %s needs is not known: %s", ref,
					doc ? "it is not in the catalogue" : why.msg);
		}
	}
	json_decref(doc);
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names so far, sorted and each once, behind those in `out`; none are left in the asker. */
static int
give(struct asker *a, struct sb_strlist *out, struct sb_error *err)
{
	int r = sb_strlist_check(&a->names, err);

	if (r < 0)
		return r;
	if (a->names.n)
		qsort(a->names.v, a->names.n, sizeof *a->names.v, by_name);
	for (size_t i = 0; i < a->names.n; i++)
		if (i == 0 || strcmp(a->names.v[i], a->names.v[i - 1]) != 0)
			sb_strlist_add(out, a->names.v[i]);
	sb_strlist_free(&a->names);
	return sb_strlist_check(out, err);
}

static int
names_in(struct asker *a, const struct sb_call *call, struct sb_strlist *out, struct sb_error *err)
{
	const yaml_node_t *agents = sb_yamldoc_get(&a->d, sb_yamldoc_root(&a->d), "agents");
	int r;

	need_models(a, agents);
	r = give(a, out, err);
	if (r < 0)
		return r;
	need_tools(a, agents, call);
	return give(a, out, err);
}

int
sb_docker_agent_parse(const char *text, size_t len, sb_docker_lookup_fn lookup, void *arg,
	struct sb_strlist *names, struct sb_error *err)
{
	sb_auto(asker) struct asker a = { .lookup = lookup, .arg = arg };
	int r = sb_yamldoc_parse(text, len, &a.d, err);

	return r < 0 ? r : names_in(&a, NULL, names, err);
}

int
sb_docker_agent_env(const char *agent, sb_docker_lookup_fn alias, void *alias_arg,
	sb_docker_lookup_fn lookup, void *arg, const struct sb_call *call, struct sb_strlist *flags,
	struct sb_strlist *vars, struct sb_error *err)
{
	sb_auto(asker) struct asker a = { .lookup = lookup, .arg = arg };
	sb_auto(sb_strlist) struct sb_strlist names = { 0 };
	sb_autofree char *file = NULL;
	struct sb_error why = { 0 };
	int r = 0;

	if (!agent || !*agent)
		return 0;
	file = sb_docker_agent_file(agent, alias, alias_arg);
	if (!file)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	if (!*file)
		r = sb_fail(&why, SB_E_UNSUPPORTED, "it is no local file");
	else
		r = sb_yamldoc_read(file, &a.d, &why);
	if (r < 0) {
		/* The agent itself says better what is wrong with it. */
		if (call)
			sb_log(&call->log, SB_LOG_DEBUG, "docker",
				"no variables are known for agent %s: %s", agent, why.msg);
		return r == SB_E_NOMEM ? sb_fail(err, r, "out of memory") : 0;
	}
	r = names_in(&a, call, &names, err);
	return r < 0 ? r : sb_docker_env(sb_strlist_borrow(&names), lookup, arg, flags, vars, err);
}
