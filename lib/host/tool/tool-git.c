/* SPDX-License-Identifier: MIT */
/* The tools of git. git runs in the session's runtime, never in the host. */
#include "config.h"

#include <host/tool/tool-table.h>

#include <string.h>

#define GIT_MS 30000
#define GIT_NET_MS 300000
#define FILTERS_MAX 64

/*
 * git runs where the session's commands run, never in the host itself. A repository can name
 * programs for git to start; inside a sandbox they are as confined as anything else. In a runtime
 * that isolates nothing they are turned off, as far as git lets us: hooks, monitors, external
 * diffs, filters, pagers, editors, signing, credential and ssh helpers.
 */
static const char *const safe[] = { "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false",
	"-c", "core.pager=cat", "-c", "core.editor=false", "-c", "core.sshCommand=ssh", "-c",
	"core.askPass=", "-c", "credential.helper=", "-c", "diff.external=", "-c",
	"commit.gpgSign=false", "-c", "tag.gpgSign=false", "-c", "log.showSignature=false", "-c",
	"protocol.ext.allow=never", "-c", "core.attributesFile=/dev/null", NULL };
/* Everywhere: no questions, no lock files for a look, no pager, names as they are. */
static const char *const common[] = { "--no-pager", "--no-optional-locks", "-c", "color.ui=false",
	"-c", "safe.directory=*", NULL };
static const char *const env[] = { "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1",
	"GIT_EDITOR=false", "GIT_PAGER=cat", NULL };

/* A name of a commit or of a remote must not be read as an option. */
static int
check_word(const struct sb_toolcall *c, const char *name, const char *word, struct sb_error *err)
{
	if (word && (word[0] == '-' || strchr(word, '\n')))
		return sb_fail(err, SB_E_INVAL, "%s %s must not begin with '-'", c->req->tool,
			name);
	return 0;
}

static int
check_ref(const struct sb_toolcall *c, struct sb_error *err)
{
	return check_word(c, "ref", sb_params_str(&c->params, "ref"), err);
}

static int
net_check(const struct sb_toolcall *c, struct sb_error *err)
{
	const json_t *v = sb_params_list(&c->params, "args"), *item;
	size_t i;
	int r = json_is_string(v) ? check_word(c, "args", json_string_value(v), err) : 0;

	json_array_foreach(v, i, item)
	{
		if (r == 0)
			r = check_word(c, "args", json_string_value(item), err);
	}
	return r;
}

static void
add_list(const struct sb_toolcall *c, const char *name, struct sb_strlist *l)
{
	const json_t *v = sb_params_list(&c->params, name), *item;
	size_t i;

	if (json_is_string(v))
		sb_strlist_add(l, json_string_value(v));
	json_array_foreach(v, i, item)
	{
		sb_strlist_add(l, json_string_value(item));
	}
}

/* Filters have names of the repository's choice: each is asked for and emptied. */
static int
without_filters(struct sb_toolcall *c, struct sb_strlist *l, struct sb_error *err)
{
	const char *const argv[] = { "git", "config", "--name-only", "--get-regexp",
		"^filter\\..*\\.(clean|smudge|process|required)$", NULL };
	sb_auto(sb_toolrun_out) struct sb_toolrun_out run = { 0 };
	const char *p;
	int n = 0, r = sb_toolcall_exec(c, argv, env, GIT_MS, 65536, &run, err);

	for (p = (const char *)run.out.data; r == 0 && p && *p && n < FILTERS_MAX; n++) {
		size_t len = strcspn(p, "\n");
		bool required = len > 9 && strncmp(p + len - 9, ".required", 9) == 0;

		sb_strlist_add(l, "-c");
		sb_strlist_addf(l, "%.*s=%s", (int)len, p, required ? "false" : "");
		p += p[len] ? len + 1 : len;
	}
	if (r == 0 && (n == FILTERS_MAX || run.truncated))
		return sb_fail(err, SB_E_LIMIT, "the repository names more than %d filters",
			FILTERS_MAX);
	return r;
}

static int
begin(struct sb_toolcall *c, struct sb_strlist *l, struct sb_error *err)
{
	sb_strlist_add(l, "git");
	sb_strlist_add_all(l, common);
	if (c->s->rt->ops->isolates)
		return 0;
	sb_strlist_add_all(l, safe);
	return without_filters(c, l, err);
}

static int
finish(struct sb_toolcall *c, const struct sb_strlist *l, int64_t ms,
	struct sb_host_tool_result *out, struct sb_error *err)
{
	sb_auto(sb_toolrun_out) struct sb_toolrun_out run = { 0 };
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	int r = sb_strlist_check(l, err);

	if (r == 0)
		r = sb_toolcall_exec(c, (const char *const *)l->v, env, ms, sb_toolcall_output(c),
			&run, err);
	if (r < 0)
		return r;
	sb_buf_init(&text, SB_TOOL_TEXT_MAX);
	sb_buf_add(&text, run.out.data, run.out.len);
	if (run.errs.len) {
		if (text.len && text.data[text.len - 1] != '\n')
			sb_buf_add_char(&text, '\n');
		sb_buf_add(&text, run.errs.data, run.errs.len);
	}
	if (run.truncated)
		sb_buf_add_str(&text, "\n(output truncated)");
	if (run.timed_out)
		sb_buf_add_str(&text, "\n(timed out)");
	if (text.len == 0)
		sb_buf_add_str(&text, "(no output)");
	r = sb_toolcall_result(out, &text, false, err);
	sb_toolcall_flags(c, &run, out);
	return r;
}

static int
status_run(struct sb_toolcall *c, struct sb_host_tool_result *out, struct sb_error *err)
{
	static const char *const argv[] = { "status", "--porcelain=v1", NULL };
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };
	int r = begin(c, &l, err);

	sb_strlist_add_all(&l, argv);
	return r < 0 ? r : finish(c, &l, GIT_MS, out, err);
}

/* [ref] [-- path], behind what is there. */
static void
add_ref_path(const struct sb_toolcall *c, const char *def, struct sb_strlist *l)
{
	const char *ref = sb_params_str(&c->params, "ref");
	const char *path = sb_params_str(&c->params, "path");

	ref = ref && *ref ? ref : def;
	if (ref)
		sb_strlist_add(l, ref);
	sb_strlist_add(l, "--");
	if (path && *path)
		sb_strlist_add(l, path);
}

static int
diff_run(struct sb_toolcall *c, struct sb_host_tool_result *out, struct sb_error *err)
{
	static const char *const argv[] = { "diff", "--no-ext-diff", "--no-textconv", NULL };
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };
	int r = begin(c, &l, err);

	sb_strlist_add_all(&l, argv);
	if (sb_params_bool(&c->params, "staged"))
		sb_strlist_add(&l, "--cached");
	add_ref_path(c, NULL, &l);
	return r < 0 ? r : finish(c, &l, GIT_MS, out, err);
}

static int
log_run(struct sb_toolcall *c, struct sb_host_tool_result *out, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };
	int r = begin(c, &l, err);

	sb_strlist_add(&l, "log");
	sb_strlist_addf(&l, "-n%lld", (long long)sb_params_int(&c->params, "n"));
	sb_strlist_add(&l, "--format=%h %an %ad %s");
	sb_strlist_add(&l, "--date=iso-strict");
	add_ref_path(c, NULL, &l);
	return r < 0 ? r : finish(c, &l, GIT_MS, out, err);
}

static int
show_run(struct sb_toolcall *c, struct sb_host_tool_result *out, struct sb_error *err)
{
	static const char *const argv[] = { "show", "--no-ext-diff", "--no-textconv", NULL };
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };
	int r = begin(c, &l, err);

	sb_strlist_add_all(&l, argv);
	add_ref_path(c, "HEAD", &l);
	return r < 0 ? r : finish(c, &l, GIT_MS, out, err);
}

static int
add_run(struct sb_toolcall *c, struct sb_host_tool_result *out, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };
	int r = begin(c, &l, err);

	sb_strlist_add(&l, "add");
	sb_strlist_add(&l, "--");
	add_list(c, "paths", &l);
	return r < 0 ? r : finish(c, &l, GIT_MS, out, err);
}

static int
commit_run(struct sb_toolcall *c, struct sb_host_tool_result *out, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };
	int r = begin(c, &l, err);

	sb_strlist_add_all(&l,
		(const char *[]){ "commit", "-m", sb_params_str(&c->params, "message"), NULL });
	return r < 0 ? r : finish(c, &l, GIT_MS, out, err);
}

/*
 * push, fetch, pull, clone: what they reach is the session's network. Arguments are names, no
 * options.
 */
static int
net_run(struct sb_toolcall *c, struct sb_host_tool_result *out, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };
	int r = begin(c, &l, err);

	sb_strlist_add(&l, c->req->tool + strlen("git_"));
	sb_strlist_add(&l, "--");
	add_list(c, "args", &l);
	return r < 0 ? r : finish(c, &l, GIT_NET_MS, out, err);
}

const struct sb_tool sb_tool_git_table[] = {
	{ "git_status", true, NULL, status_run, false },
	{ "git_diff", true, check_ref, diff_run, false },
	{ "git_log", true, check_ref, log_run, false },
	{ "git_show", true, check_ref, show_run, false },
	{ "git_add", true, NULL, add_run, false },
	{ "git_commit", true, NULL, commit_run, false },
	{ "git_push", true, net_check, net_run, false },
	{ "git_fetch", true, net_check, net_run, false },
	{ "git_pull", true, net_check, net_run, false },
	{ "git_clone", true, net_check, net_run, false },
	{ NULL, false, NULL, NULL, false },
};
