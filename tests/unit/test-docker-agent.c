/* SPDX-License-Identifier: MIT */
/* What an agent's file needs, what its reference means, and the token of Docker Desktop. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/str.h>
#include <base/strlist.h>
#include <sb/docker.h>

#include "tests/lib/tmpdir.h"
#include "tests/lib/unit.h"

static struct tmpdir *dir;

static int
setup(void **state)
{
	int r = tmpdir_setup(state);

	dir = *state;
	assert_int_equal(setenv("HOME", dir->path, 1), 0);
	assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
	assert_int_equal(unsetenv("DOCKER_TOKEN"), 0);
	return r;
}

/* An environment: NAME=value, NULL-terminated. */
static const char *
from(const char *name, void *arg)
{
	return sb_strlist_get(arg, name);
}

/* The names that a text asks for, with a space between them. */
static const char *
asked_by(const char *text, const char *const *env)
{
	static char out[4096];
	sb_auto(sb_strlist) struct sb_strlist names = { 0 };
	struct sb_error err = { 0 };

	assert_ok(sb_docker_agent_parse(text, strlen(text), from, (void *)(uintptr_t)env, &names,
			  &err),
		&err);
	out[0] = '\0';
	for (size_t i = 0; i < names.n; i++)
		(void)snprintf(out + strlen(out), sizeof out - strlen(out), "%s%s", i ? " " : "",
			names.v[i]);
	return out;
}

static const char *const no_env[] = { NULL };

static void
models_need_the_tokens_of_their_providers(void **state)
{
	static const struct {
		const char *text, *names;
	} cases[] = {
		{ "", "" },
		{ "agents: {}", "" },
		{ "agents: [a, b]", "" },
		{ "agents: {root: {model: openai/gpt-5}}", "OPENAI_API_KEY" },
		{ "agents: {root: {model: ' anthropic/x , xai/y '}, b: {model: openai/z}}",
			"ANTHROPIC_API_KEY OPENAI_API_KEY XAI_API_KEY" },
		{ "agents: [{name: root, model: huggingface/z}]", "HF_TOKEN" },
		{ "agents: {root: {model: ollama/x}}", "" },
		{ "agents: {root: {model: dmr/x}}", "" },
		{ "agents: {root: {model: auto}}", "" },
		{ "agents: {root: {harness: {type: x}, model: openai/x}}", "" },
		/* Only models that an agent uses. */
		{ "agents: {r: {model: m}}\nmodels: {m: {provider: mistral}, n: {provider: xai}}",
			"MISTRAL_API_KEY" },
		{ "agents: {r: {model: m}}\nmodels: {m: {provider: openai, token_key: MINE}}",
			"MINE" },
		/* A provider of the file's own; without a kind it speaks as OpenAI does. */
		{ "agents: {r: {model: m}}\nmodels: {m: {provider: p}}\n"
		  "providers: {p: {token_key: P_KEY}}",
			"P_KEY" },
		{ "agents: {r: {model: p/x}}\nproviders: {p: {base_url: x}}", "OPENAI_API_KEY" },
		{ "agents: {r: {model: p/x}}\nproviders: {p: {provider: anthropic}}",
			"ANTHROPIC_API_KEY" },
		/* Rules lead to other models, one step. */
		{ "agents: {r: {model: m}}\nmodels:\n  m: {provider: xai, routing: "
		  "[{model: n}, {model: groq/z}]}\n  n: {provider: azure, routing: [{model: "
		  "deepseek/q}]}",
			"AZURE_API_KEY GROQ_API_KEY XAI_API_KEY" },
		/* A federation has no key. */
		{ "agents: {r: {model: m}}\nmodels: {m: {provider: anthropic, auth: {type: "
		  "workload_identity_federation, federation: {identity_token: {url: "
		  "'https://${HOST_1}/$PART/$$', headers: {A: 'x ${TOKEN} ${broken'}}}}}}",
			"HOST_1 PART TOKEN" },
		{ "agents: {r: {model: m}}\nmodels: {m: {provider: anthropic, auth: {type: "
		  "workload_identity_federation, federation: {identity_token: {env: ID}}}}}",
			"ID" },
		/* Merged members count; what is no name of a variable does not. */
		{ "x: &x {provider: cerebras}\nagents: {r: {model: m}}\nmodels: {m: {<<: *x}}",
			"CEREBRAS_API_KEY" },
		{ "agents: {r: {model: m}}\nmodels: {m: {provider: openai, token_key: '-e X'}}",
			"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (strcmp(asked_by(cases[i].text, no_env), cases[i].names) != 0)
			fail_msg("%s: %s, want %s", cases[i].text, asked_by(cases[i].text, no_env),
				cases[i].names);
}

static void
google_has_two_ways_in(void **state)
{
	static const char text[] = "agents: {r: {model: google/x}}";
	static const char opts[] = "agents: {r: {model: m}}\nmodels: {m: {provider: google, "
				   "provider_opts: {project: p}}}";
	const char *const vertex[] = { "GOOGLE_GENAI_USE_VERTEXAI=1", NULL };
	const char *const gemini[] = { "GEMINI_API_KEY=x", NULL };

	(void)state;
	assert_string_equal(asked_by(text, no_env), "GOOGLE_API_KEY");
	assert_string_equal(asked_by(text, gemini), "");
	assert_string_equal(asked_by(text, vertex), "GOOGLE_CLOUD_LOCATION GOOGLE_CLOUD_PROJECT");
	assert_string_equal(asked_by(opts, no_env), "");
}

static void
tools_need_what_the_catalogue_says(void **state)
{
	static const char text[] =
		"agents:\n  r:\n    model: openai/x\n    toolsets:\n"
		"      - {type: mcp, ref: 'docker:github'}\n"
		"      - {type: mcp, ref: slack, env: {SLACK_TOKEN: 'a $MY_SLACK'}}\n"
		"      - {type: mcp, ref: far}\n"
		"      - {type: mcp, ref: nowhere}\n"
		"      - {type: shell, ref: github}\n";

	(void)state;
	/* Without a catalogue, models are still known. */
	assert_string_equal(asked_by(text, no_env), "OPENAI_API_KEY");
	assert_int_equal(mkdirat(dir->fd, ".cache", 0755), 0);
	assert_int_equal(mkdirat(dir->fd, ".cache/cagent", 0755), 0);
	tmpdir_file(dir, ".cache/cagent/mcp_catalog.json",
		"{\"catalog\": {\"github\": {\"type\": \"server\", \"secrets\": [{\"name\": "
		"\"github.token\", \"env\": \"GITHUB_PERSONAL_ACCESS_TOKEN\"}]}, \"slack\": "
		"{\"secrets\": [{\"env\": \"SLACK_TOKEN\"}, {\"env\": \"SLACK_TEAM\"}]}, \"far\": "
		"{\"type\": \"remote\", \"secrets\": [{\"env\": \"FAR\"}]}}}");
	assert_string_equal(asked_by(text, no_env),
		"OPENAI_API_KEY GITHUB_PERSONAL_ACCESS_TOKEN MY_SLACK SLACK_TEAM");
	tmpdir_file(dir, ".cache/cagent/mcp_catalog.json", "no JSON");
	assert_string_equal(asked_by(text, no_env), "OPENAI_API_KEY");
}

static void
an_agent_gets_what_is_set(void **state)
{
	const char *const env[] = { "AZURE_API_KEY=a b\n-e X", "XAI_API_KEY=x", "HF_TOKEN=", NULL };
	sb_autofree char *file = sb_str_printf("%s/agent.yaml", dir->path);
	sb_auto(sb_strlist) struct sb_strlist flags = { 0 };
	sb_auto(sb_strlist) struct sb_strlist vars = { 0 };
	struct sb_error err = { 0 };

	(void)state;
	tmpdir_file(dir, "agent.yaml",
		"agents: {r: {model: 'azure/a,xai/b,huggingface/c,groq/d'}}");
	assert_ok(sb_docker_agent_env(file, NULL, NULL, from, (void *)(uintptr_t)env, NULL, &flags,
			  &vars, &err),
		&err);
	assert_int_equal(flags.n, 2);
	assert_string_equal(flags.v[0], "-e");
	assert_string_equal(flags.v[1], "AZURE_API_KEY");
	assert_int_equal(vars.n, 1);
	assert_string_equal(vars.v[0], "AZURE_API_KEY=a b\n-e X");
	/* What cannot be read gives nothing, and no error. */
	for (const char *const *ref = (const char *const[]){ "", "default", "docker.io/x/y:1",
		     "/nowhere/x.yaml", "/dev/fd/99", NULL };
		*ref; ref++)
		assert_ok(sb_docker_agent_env(*ref, NULL, NULL, from, (void *)(uintptr_t)env, NULL,
				  &flags, &vars, &err),
			&err);
	tmpdir_file(dir, "agent.yaml", "agents: [");
	assert_ok(sb_docker_agent_env(file, NULL, NULL, from, (void *)(uintptr_t)env, NULL, &flags,
			  &vars, &err),
		&err);
	assert_int_equal(vars.n, 1);
	assert_fails(
		sb_docker_agent_parse("agents: [", 9, from, (void *)(uintptr_t)no_env, &vars, &err),
		SB_E_INVAL, &err);
}

static void
the_users_names_are_known(void **state)
{
	struct sb_error err = { 0 };
	struct sb_docker_alias *a = sb_docker_alias_load(NULL, &err);
	char *extra;

	(void)state;
	assert_non_null(a);
	assert_null(sb_docker_alias_find("mine", a));
	sb_docker_alias_free(a);
	assert_int_equal(mkdirat(dir->fd, ".config", 0755), 0);
	assert_int_equal(mkdirat(dir->fd, ".config/cagent", 0755), 0);
	/* The old file counts where the new one has none. */
	tmpdir_file(dir, ".config/cagent/aliases.yaml", "mine: /old/x.yaml");
	a = sb_docker_alias_load(NULL, &err);
	assert_string_equal(sb_docker_alias_find("mine", a), "/old/x.yaml");
	sb_docker_alias_free(a);
	tmpdir_file(dir, ".config/cagent/config.yaml",
		"aliases:\n  mine: {path: /agents/x.yaml, yolo: true}\n  hub: {path: "
		"docker.io/a/b}\n"
		"  default: {path: /agents/d.yml}\n");
	a = sb_docker_alias_load(NULL, &err);
	assert_non_null(a);
	extra = sb_docker_extra_workspace("/work", "mine", sb_docker_alias_find, a);
	assert_string_equal(extra, "/agents");
	free(extra);
	extra = sb_docker_extra_workspace("/work", "hub", sb_docker_alias_find, a);
	assert_string_equal(extra, "");
	free(extra);
	/* A built-in name may be taken. */
	extra = sb_docker_extra_workspace("/work", "default", sb_docker_alias_find, a);
	assert_string_equal(extra, "/agents");
	free(extra);
	sb_docker_alias_free(a);
	tmpdir_file(dir, ".config/cagent/config.yaml", "aliases: [");
	assert_null(sb_docker_alias_load(NULL, &err));
	assert_int_equal(err.code, SB_E_INVAL);
}

/* Answers one connection with `reply`, and keeps what was asked. */
struct desktop {
	int listener;
	const char *reply;
	char asked[1024];
};

static void *
serve(void *arg)
{
	struct desktop *d = arg;
	int fd = accept(d->listener, NULL, NULL);
	ssize_t n = fd < 0 ? 0 : read(fd, d->asked, sizeof d->asked - 1);

	d->asked[n > 0 ? n : 0] = '\0';
	if (fd >= 0) {
		(void)write(fd, d->reply, strlen(d->reply));
		(void)close(fd);
	}
	return NULL;
}

/* The token by that reply of a Desktop at `path`, which becomes the source's argument. */
static char *
token_by(const char *path, const char *reply, char *asked, size_t size, bool named)
{
	struct desktop d = { .reply = reply };
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	pthread_t thread;
	char *token;

	assert_true(strlen(path) < sizeof at.sun_path);
	memcpy(at.sun_path, path, strlen(path) + 1);
	(void)unlink(path);
	d.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(d.listener, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(d.listener, 1), 0);
	assert_int_equal(pthread_create(&thread, NULL, serve, &d), 0);
	token = sb_docker_desktop_token(named ? (void *)(uintptr_t)path : NULL);
	assert_int_equal(pthread_join(thread, NULL), 0);
	(void)close(d.listener);
	(void)snprintf(asked, size, "%s", d.asked);
	return token;
}

static void
desktop_gives_its_token(void **state)
{
	static const struct {
		const char *reply, *token;
	} cases[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n\"abc\"", "abc" },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n\"\"", "" },
		{ "HTTP/1.1 500 No\r\nContent-Length: 5\r\n\r\n\"abc\"", "" },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "" },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "" },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n\"abc\"", "" },
		{ "no HTTP", "" },
		{ "", "" },
	};
	sb_autofree char *path = sb_str_printf("%s/.docker/desktop/backend.sock", dir->path);
	char asked[1024];
	char *token = sb_docker_desktop_token(NULL);

	(void)state;
	if (access("/run/host-services/backend.sock", F_OK) == 0)
		skip_because("this machine is Docker Desktop's own");
	assert_string_equal(token, ""); /* nobody listens */
	free(token);
	assert_int_equal(mkdirat(dir->fd, ".docker", 0755), 0);
	assert_int_equal(mkdirat(dir->fd, ".docker/desktop", 0755), 0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		token = token_by(path, cases[i].reply, asked, sizeof asked, i % 2);
		if (strcmp(token, cases[i].token) != 0)
			fail_msg("%s: '%s'", cases[i].reply, token);
		free(token);
		assert_non_null(strstr(asked, "GET /registry/token HTTP/1.1\r\n"));
	}
}

static void
without_desktop_the_environment_has_the_token(void **state)
{
	struct sb_docker_token_opts o = SB_DOCKER_TOKEN_OPTS_INIT;
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct sb_error err = { 0 };
	struct sb_docker_token *t;

	(void)state;
	assert_int_equal(setenv("DOCKER_TOKEN", "from \"here\"", 1), 0);
	o.dir = dir->path;
	o.gateway = "https://gateway.example";
	t = sb_docker_token_start(&o, &err);
	assert_non_null(t);
	assert_ok(sb_file_read(dir->fd, "sandbox-tokens.json", 4096, &b, &err), &err);
	assert_string_equal((char *)b.data, "{\"docker_token\":\"from \\\"here\\\"\"}");
	sb_docker_token_free(t);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, tmpdir_teardown)
int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(models_need_the_tokens_of_their_providers),
		T(google_has_two_ways_in),
		T(tools_need_what_the_catalogue_says),
		T(an_agent_gets_what_is_set),
		T(the_users_names_are_known),
		T(desktop_gives_its_token),
		T(without_desktop_the_environment_has_the_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
