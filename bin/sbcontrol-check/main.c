/* SPDX-License-Identifier: MIT */
/* sbcontrol-check: runs the conformance suite against one control. */
#include "config.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/opt.h>
#include <base/strlist.h>
#include <bin/common/opt-rows.h>
#include <sb/control-check.h>
#include <sb/version.h>

struct args {
	bool help, version, list;
	const char *kind, *plugin, *name, *state, *listener;
	struct sb_opt_list options, checks;
	int64_t timeout;
};

#define OPT_VALUES struct args
static const struct sb_opt options[] = {
	OPT_TEXT('k', "kind", kind, "KIND", "kind of control of the library to check"),
	OPT_TEXT(0, "plugin", plugin, "FILE", "shared object with a control to check"),
	OPT_LIST('o', "option", options, "KEY=VALUE", "option of the control; may be repeated"),
	OPT_TEXT(0, "name", name, "NAME", "name of the control (check)"),
	OPT_LIST('c', "check", checks, "NAME",
		"only checks whose names begin with NAME; may be repeated"),
	OPT_TEXT(0, "listener", listener, "COMMAND",
		"line of shell that listens on port $PORT of 127.0.0.1 in a sandbox"),
	OPT_TEXT(0, "state-dir", state, "DIR", "where controls keep what they know"),
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
	.help = "Runs the conformance suite against a control of sandboxes; prints TAP.",
	.opts = options,
};

struct program {
	struct args a;
	struct sb_strlist options;
	unsigned n;
};

static int
complain(const struct sb_error *err)
{
	(void)fprintf(stderr, "sbcontrol-check: %s\n", err->msg);
	return err->code == SB_E_USAGE ? 2 : 1;
}

static void
report(const char *check, enum sb_conform_result what, const char *text, void *arg)
{
	struct program *p = arg;
	const char *about = sb_control_check_about(check);

	p->n++;
	if (what == SB_CONFORM_OK)
		(void)printf("ok %u - %s: %s\n", p->n, check, about);
	else if (what == SB_CONFORM_SKIPPED)
		(void)printf("ok %u - %s # SKIP %s\n", p->n, check, text);
	else
		(void)printf("not ok %u - %s: %s\n# %s\n", p->n, check, about, text);
	(void)fflush(stdout);
}

static struct sb_control *
load_plugin(const char *file, const struct sb_control_open_opts *o, struct sb_error *err)
{
	typedef struct sb_control *(
		*make_fn)(const struct sb_control_open_opts *, struct sb_error *);
	void *lib = dlopen(file, RTLD_NOW | RTLD_LOCAL),
	     *symbol = lib ? dlsym(lib, "sb_control_plugin") : NULL;
	make_fn make;

	if (!symbol) {
		const char *why = dlerror();

		(void)sb_fail(err, SB_E_USAGE, "--plugin %s: %s", file,
			why ? why : "no sb_control_plugin in it");
		return NULL;
	}
	memcpy(&make, &symbol, sizeof make);
	return make(o, err);
}

static struct sb_control *
open_control(void *arg, struct sb_error *err)
{
	struct program *p = arg;
	struct sb_control_open_opts o = SB_CONTROL_OPEN_OPTS_INIT;

	o.name = p->a.name ? p->a.name : "check";
	o.kind = p->a.kind;
	o.options = sb_strlist_borrow(&p->options);
	o.state_dir = p->a.state;
	return p->a.plugin ? load_plugin(p->a.plugin, &o, err) : sb_control_open(&o, err);
}

static int
run(struct program *p, struct sb_error *err)
{
	struct sb_control_check_opts o = SB_CONTROL_CHECK_OPTS_INIT;
	int r;

	for (size_t i = 0; i < p->a.options.n; i++)
		sb_strlist_add(&p->options, p->a.options.v[i]);
	r = sb_strlist_check(&p->options, err);
	if (r < 0)
		return r;
	o.control = open_control(p, err);
	if (!o.control)
		return err->code;
	o.only = p->a.checks.v;
	o.timeout_ms = p->a.timeout;
	o.report = report;
	o.arg = p;
	o.again = open_control;
	o.listener = p->a.listener;
	r = sb_control_check_run(&o, err);
	sb_control_close(o.control);
	if (r >= 0)
		(void)printf("1..%u\n", p->n);
	if (r > 0)
		(void)printf("# %d of %u checks failed\n", r, p->n);
	return r;
}

int
main(int argc, char **argv)
{
	struct program p = { 0 };
	char **rest = NULL;
	struct sb_error err = { 0 };
	int n = 0, r = sb_opt_parse(options, argc, argv, false, &p.a, &rest, &n, &err);

	(void)signal(SIGPIPE, SIG_IGN);
	if (r < 0)
		return complain(&err);
	if (p.a.help) {
		sb_opt_print_help(stdout, "sbcontrol-check", &command);
		return 0;
	}
	if (p.a.version) {
		(void)printf("sbcontrol-check %s\n", sb_version());
		return 0;
	}
	if (p.a.list) {
		for (const char *const *name = sb_control_check_names(); *name; name++)
			(void)printf("%-24s %s\n", *name, sb_control_check_about(*name));
		return 0;
	}
	if (n || (!p.a.kind && !p.a.plugin)) {
		(void)sb_fail(&err, SB_E_USAGE,
			n ? "'%s' is too much: see --help" :
			    "say what to check: --kind KIND or --plugin FILE",
			n ? rest[0] : "");
		return complain(&err);
	}
	r = run(&p, &err);
	sb_strlist_free(&p.options);
	sb_opt_list_free(&p.a.options);
	sb_opt_list_free(&p.a.checks);
	return r < 0 ? complain(&err) : r > 0;
}
