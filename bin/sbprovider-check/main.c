/* SPDX-License-Identifier: MIT */
/* sbprovider-check: runs the conformance suite against one provider of sandboxes. */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/opt.h>
#include <base/path.h>
#include <base/spawn.h>
#include <base/str.h>
#include <base/strlist.h>
#include <bin/common/opt-rows.h>
#include <sb/conform.h>
#include <sb/registry.h>
#include <sb/version.h>

/* Set for a process that carries out one step: "STEP FILE". */
#define STEP_VARIABLE "SB_CONFORM_STEP"

struct args {
	bool help, version, list;
	const char *backend, *plugin, *root, *work, *state, *hang, *persistence;
	struct sb_opt_list options, checks;
	int64_t timeout;
};

#define OPT_VALUES struct args
static const struct sb_opt options[] = {
	OPT_TEXT('b', "backend", backend, "NAME", "provider of the library to check"),
	OPT_TEXT(0, "plugin", plugin, "FILE", "shared object with a provider to check"),
	OPT_LIST('o', "option", options, "KEY=VALUE", "option of the backend; may be repeated"),
	OPT_TEXT(0, "runtime-root", root, "PATH", "runtime root instead of the provider's"),
	OPT_TEXT('p', "persistence", persistence, "WORD",
		"of the sandboxes of all checks: transient (default), reuse or archive"),
	OPT_LIST('c', "check", checks, "NAME",
		"only checks whose names begin with NAME; may be repeated"),
	OPT_TEXT(0, "hang", hang, "COMMAND",
		"'COMMAND on' makes the other side hang, 'COMMAND off' ends that"),
	OPT_TEXT(0, "work-dir", work, "DIR",
		"where local roots are made; default: a new one in $TMPDIR"),
	OPT_TEXT(0, "state-dir", state, "DIR",
		"state of sessions; default: beside the local roots"),
	OPT_TIME('t', "timeout", timeout, "TIME", 1, INT64_MAX,
		"limit of a single call; default: 60s"),
	OPT_FLAG('l', "list", list, "list the checks"),
	OPT_FLAG(0, "version", version, "show the version"),
	OPT_FLAG('h', "help", help, "show this help"),
	OPT_END,
};

static const struct sb_cmd command = {
	.name = "",
	.args = "",
	.help = "Runs the conformance suite against a provider of sandboxes; prints TAP.",
	.opts = options,
};

struct program {
	struct args a;
	char **argv;
	struct sb_registry *reg;
	struct sb_provider *plugin;
	struct sb_profile profile;
	unsigned n;
};

static int
complain(const struct sb_error *err)
{
	(void)fprintf(stderr, "sbprovider-check: %s\n", err->msg);
	return err->code == SB_E_USAGE ? 2 : 1;
}

static void
report(const char *check, enum sb_conform_result what, const char *text, void *arg)
{
	struct program *p = arg;
	const char *about = sb_conform_about(check);

	p->n++;
	if (what == SB_CONFORM_OK)
		(void)printf("ok %u - %s: %s\n", p->n, check, about);
	else if (what == SB_CONFORM_SKIPPED)
		(void)printf("ok %u - %s # SKIP %s\n", p->n, check, text);
	else
		(void)printf("not ok %u - %s: %s\n# %s\n", p->n, check, about, text);
	(void)fflush(stdout);
}

/* A new process of this program with the same arguments and one step to do. */
static int
respawn(const char *step, const char *file, int kill_ms, void *arg, struct sb_error *err)
{
	struct program *p = arg;
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	struct sb_child child = SB_CHILD_INIT;
	sb_auto(sb_strlist) struct sb_strlist env = { 0 };
	const char *argv[64] = { "/proc/self/exe" };
	size_t n = 1;
	int r;

	for (; p->argv[n] && n < 59; n++)
		argv[n] = p->argv[n];
	argv[n++] = "--work-dir";
	argv[n++] = p->a.work;
	argv[n++] = "--state-dir";
	argv[n++] = p->a.state;
	sb_strlist_add_all(&env, (const char *const *)environ);
	sb_strlist_addf(&env, STEP_VARIABLE "=%s %s", step, file);
	r = sb_strlist_check(&env, err);
	if (r < 0)
		return r;
	o.env = (const char *const *)env.v;
	o.io[2] = SB_SPAWN_INHERIT;
	r = sb_spawn(argv, &o, &child, err);
	if (r < 0)
		return r;
	r = sb_child_wait(&child, NULL, sb_deadline_in(kill_ms > 0 ? kill_ms : 300000), err);
	if (r == SB_E_TIMEOUT && kill_ms > 0) {
		sb_child_stop(&child, 0);
		return 137;
	}
	r = r == 0 ? sb_child_exit_code(&child) : r;
	sb_child_stop(&child, 0);
	/* A process that ended before it was to be killed counts as well. */
	return kill_ms > 0 && r >= 0 ? 0 : r;
}

static int
hang(bool on, void *arg, struct sb_error *err)
{
	struct program *p = arg;
	sb_autofree char *line = sb_str_printf("%s %s", p->a.hang, on ? "on" : "off");
	const char *argv[] = { "/bin/sh", "-c", line, NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	int r;

	if (!line)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	o.io[2] = SB_SPAWN_INHERIT;
	r = sb_child_run(argv, &o, NULL, 0, NULL, NULL, NULL, sb_deadline_in(60000), err);
	return r > 0 ? sb_fail(err, SB_E_CHILD, "'%s' ends with %d", line, r) : r;
}

static struct sb_provider *
load_plugin(const char *file, const struct sb_builtin_opts *o, struct sb_error *err)
{
	typedef struct sb_provider *(*make_fn)(const struct sb_builtin_opts *, struct sb_error *);
	void *lib = dlopen(file, RTLD_NOW | RTLD_LOCAL),
	     *symbol = lib ? dlsym(lib, "sb_provider_plugin") : NULL;
	make_fn make;

	if (!symbol) {
		const char *why = dlerror();

		sb_fail(err, SB_E_USAGE, "--plugin %s: %s", file,
			why ? why : "no sb_provider_plugin in it");
		return NULL;
	}
	memcpy(&make, &symbol, sizeof make);
	return make(o, err);
}

static int
open_provider(struct program *p, struct sb_provider **out, struct sb_error *err)
{
	struct sb_builtin_opts o = SB_BUILTIN_OPTS_INIT;
	enum sb_backend backend = SB_BACKEND_LOCAL;

	o.state_dir = p->a.state;
	if (p->a.plugin) {
		*out = p->plugin = load_plugin(p->a.plugin, &o, err);
		return p->plugin ? 0 : err->code;
	}
	if (sb_backend_parse(p->a.backend, &backend, err) < 0) {
		err->code = SB_E_USAGE;
		return SB_E_USAGE;
	}
	p->reg = sb_registry_builtin(&o, err);
	*out = p->reg ? sb_registry_get(p->reg, backend, err) : NULL;
	return *out ? 0 : err->code;
}

static int
make_profile(struct program *p, enum sb_backend backend, struct sb_error *err)
{
	int r = sb_profile_default(backend, "conform", &p->profile, err);

	if (r == 0 && p->a.persistence) {
		r = sb_persist_parse(p->a.persistence, &p->profile.persist, err);
		p->profile.destroy_on_stop = p->profile.persist != SB_PERSIST_REUSE;
		if (r < 0)
			return sb_wrap(err, SB_E_USAGE, "--persistence");
	}

	for (size_t i = 0; r == 0 && i < p->a.options.n; i++) {
		sb_strlist_put(&p->profile.options, p->a.options.v[i]);
		r = strchr(p->a.options.v[i], '=') ?
			sb_strlist_check(&p->profile.options, err) :
			sb_fail(err, SB_E_USAGE, "--option %s: write KEY=VALUE", p->a.options.v[i]);
	}
	if (r == 0 && p->a.root) {
		p->profile.runtime_root = strdup(p->a.root);
		r = p->profile.runtime_root ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
	}
	return r;
}

static int
run_step(struct sb_conform_opts *o, const char *text, struct sb_error *err)
{
	sb_autofree char *step = strdup(text);
	char *file = step ? strchr(step, ' ') : NULL;

	if (!file)
		return sb_fail(err, SB_E_USAGE, STEP_VARIABLE " is not meant to be set by hand");
	*file++ = '\0';
	return sb_conform_step(o, step, file, err);
}

static int
run(struct program *p, struct sb_error *err)
{
	struct sb_conform_opts o = SB_CONFORM_OPTS_INIT;
	const char *step = getenv(STEP_VARIABLE);
	int r = open_provider(p, &o.provider, err);

	if (r == 0)
		r = make_profile(p, o.provider->ops->backend, err);
	if (r < 0)
		return r;
	o.only = p->a.checks.v;
	o.profile = &p->profile;
	o.work_dir = p->a.work;
	o.timeout_ms = p->a.timeout;
	o.report = report;
	o.arg = p;
	o.respawn = respawn;
	o.hang = p->a.hang ? hang : NULL;
	r = step ? run_step(&o, step, err) : sb_conform_run(&o, err);
	if (!step && r >= 0) {
		(void)printf("1..%u\n", p->n);
		if (r > 0)
			(void)printf("# %d of %u checks failed\n", r, p->n);
	}
	return r;
}

/* The directory to work in, and whether it is ours to remove. */
static bool
choose_dir(struct args *a, char *dir, size_t size, char *state, size_t state_size)
{
	const char *tmp = getenv("TMPDIR");
	bool ours = !a->work;

	if (ours) {
		(void)snprintf(dir, size, "%s/sbprovider-check.XXXXXX", tmp && *tmp ? tmp : "/tmp");
		a->work = mkdtemp(dir);
	}
	if (a->work && !a->state) {
		(void)snprintf(state, state_size, "%s/.state", a->work);
		a->state = state;
	}
	return ours;
}

static void
remove_dir(char *dir)
{
	char *name = strrchr(dir, '/');
	int fd;

	*name++ = '\0';
	fd = open(*dir ? dir : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		(void)sb_path_remove_tree(fd, name, NULL);
	sb_cleanup_close_(&fd);
}

int
main(int argc, char **argv)
{
	struct program p = { .argv = argv };
	char dir[300] = "", state[400] = "", **rest = NULL;
	struct sb_error err = { 0 };
	bool ours;
	int n = 0, r = sb_opt_parse(options, argc, argv, false, &p.a, &rest, &n, &err);

	(void)signal(SIGPIPE, SIG_IGN);
	if (r < 0)
		return complain(&err);
	if (p.a.help) {
		sb_opt_print_help(stdout, "sbprovider-check", &command);
		return 0;
	}
	if (p.a.version) {
		(void)printf("sbprovider-check %s\n", sb_version());
		return 0;
	}
	if (p.a.list) {
		for (const char *const *name = sb_conform_names(); *name; name++)
			(void)printf("%-24s %s\n", *name, sb_conform_about(*name));
		return 0;
	}
	if (n || (!p.a.backend && !p.a.plugin)) {
		(void)sb_fail(&err, SB_E_USAGE,
			n ? "'%s' is too much: see --help" :
			    "say what to check: --backend NAME or --plugin FILE",
			n ? rest[0] : "");
		return complain(&err);
	}
	ours = choose_dir(&p.a, dir, sizeof dir, state, sizeof state);
	r = p.a.work ? run(&p, &err) : sb_fail_errno(&err, "%s", dir);
	sb_registry_free(p.reg);
	sb_provider_free(p.plugin);
	sb_profile_free(&p.profile);
	sb_opt_list_free(&p.a.options);
	sb_opt_list_free(&p.a.checks);
	if (ours && *dir)
		remove_dir(dir);
	return r < 0 ? complain(&err) : r > 0;
}
