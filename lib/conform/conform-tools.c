/* SPDX-License-Identifier: MIT */
/* Checks of tool hosts: permissions, paths that lead out, files, terminals. */
#include "config.h"

#include <conform/conform-priv.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define RACE_MS 3000

/* The tool host of a sandbox, for one check. */
/* stat of today asks for more than every kernel knows. */
#define MODES "modes() { stat -c %a \"$@\" 2>/dev/null || find \"$@\" -prune -printf '%m\\n'; }; "

struct tools {
	struct sb_conform_sandbox *b;
	struct sb_tool_host *t;
	struct sb_call call;
};

static int
open_tools(struct sb_conform *c, enum sb_perm_mode mode, struct tools *out, struct sb_error *err)
{
	out->b = sb_conform_new(c, false, err);
	if (!out->b)
		return SB_E_STATE;
	out->b->req.permissions = mode;
	out->b->profile.permissions = mode;
	out->call = sb_conform_call(c);
	if (sb_conform_prepare(out->b, err) < 0)
		return SB_E_STATE;
	out->t = out->b->prepared.tools;
	return 0;
}

static int
tool_read(struct tools *x, const char *path, const char *want, struct sb_error *err)
{
	sb_autofree char *text = NULL;
	size_t len = 0;
	int r = x->t->ops->read_text_file(x->t, path, &x->call, &text, &len, err);

	if (r < 0)
		return sb_wrap(err, r, "read %s", path);
	if (len != strlen(want) || memcmp(text, want, len) != 0 || text[len])
		return broken(err, "%s reads as '%.60s', must be '%.60s'", path, text, want);
	return 0;
}

static int
tool_read_fails(struct tools *x, const char *path, int code, struct sb_error *err)
{
	struct sb_error why = { 0 };
	char what[200], *text = NULL;
	size_t len;
	int r = x->t->ops->read_text_file(x->t, path, &x->call, &text, &len, &why);

	if (r == 0)
		free(text);
	(void)snprintf(what, sizeof what, "read %.150s", path);
	return sb_conform_must_fail(r, code, what, &why, err);
}

static int
tool_write_fails(struct tools *x, const char *path, int code, struct sb_error *err)
{
	struct sb_error why = { 0 };
	char what[200];
	int r = x->t->ops->write_text_file(x->t, path, "x", 1, &x->call, &why);

	(void)snprintf(what, sizeof what, "write %.150s", path);
	return sb_conform_must_fail(r, code, what, &why, err);
}

static int
check_files(struct sb_conform *c, struct sb_error *err)
{
	struct tools x;
	int r = open_tools(c, SB_PERM_MODE_APPROVE_ALL, &x, err);

	if (r == 0)
		r = x.t->ops->write_text_file(x.t, "new/dir/file", "one\ntwo\n", 8, &x.call, err);
	if (r == 0)
		r = tool_read(&x, "new/dir/file", "one\ntwo\n", err);
	if (r == 0)
		r = sb_conform_sh_is(x.b, MODES "cat new/dir/file; modes new/dir/file new/dir",
			"one\ntwo\n600\n755\n", err);
	/* The mode stays, and who has the old file open keeps it. */
	if (r == 0)
		r = sb_conform_sh_is(x.b, "printf old >s; chmod 751 s; ln s other", "", err);
	if (r == 0)
		r = x.t->ops->write_text_file(x.t, "s", "", 0, &x.call, err);
	if (r == 0)
		r = sb_conform_sh_is(x.b, MODES "modes s; wc -c <s; cat other", "751\n0\nold", err);
	if (r == 0)
		r = sb_conform_sh_is(x.b, "ls -A", "new\nother\ns\n", err);
	if (r == 0)
		r = tool_read_fails(&x, "none", SB_E_NOTFOUND, err);
	if (r == 0)
		r = tool_read_fails(&x, "new", SB_E_INVAL, err);
	if (r == 0)
		r = tool_read_fails(&x, "", SB_E_INVAL, err);
	if (r == 0)
		r = tool_write_fails(&x, "new", SB_E_INVAL, err);
	if (r == 0)
		r = sb_conform_sh_is(x.b, "mkfifo pipe", "", err);
	return r < 0 ? r : tool_read_fails(&x, "pipe", SB_E_INVAL, err);
}

static int
check_paths(struct sb_conform *c, struct sb_error *err)
{
	static const char *const bad[] = { "../x", "/etc/passwd", "out/passwd", "up/x", "chain",
		"d/../../x", "loop" };
	sb_autofree char *path = NULL, *want = NULL;
	struct tools x;
	int r = open_tools(c, SB_PERM_MODE_APPROVE_ALL, &x, err);

	if (r == 0)
		r = sb_conform_sh_is(x.b,
			"mkdir d; printf in >d/f; ln -s d l; ln -s ../d/f d/g; ln -s /etc out; ln "
			"-s /tmp/sb-conform-$$ dangling; "
			"ln -s ../.. up; ln -s up/x chain; ln -s loop loop",
			"", err);
	if (r == 0)
		r = x.t->ops->resolve_path(x.t, "l/../l/./f", &x.call, &path, err);
	if (r < 0)
		return r;
	want = sb_str_printf("%s/d/f", x.b->prepared.state.runtime_root);
	if (!want || !sb_str_ends(path, "/d/f"))
		return broken(err, "l/../l/./f resolves to %s", path);
	r = tool_read(&x, "l/f", "in", err);
	if (r == 0)
		r = tool_read(&x, path, "in", err);
	if (r == 0)
		r = tool_read(&x, "d/g", "in", err);
	for (size_t i = 0; r == 0 && i < sizeof bad / sizeof *bad; i++) {
		r = tool_read_fails(&x, bad[i], SB_E_ESCAPE, err);
		if (r == 0)
			r = tool_write_fails(&x, bad[i], SB_E_ESCAPE, err);
	}
	/* The link that leads to nothing, outside: nothing may come to be there. */
	if (r == 0)
		r = tool_write_fails(&x, "dangling", SB_E_ESCAPE, err);
	return r < 0 ? r :
		       sb_conform_sh_is(x.b,
			       "test -e dangling && echo made; ls -d /tmp/sb-conform-* 2>/dev/null",
			       "", err);
}

/*
 * A path that changes between look and use: the runtime swaps a directory and a link to the outside
 * as fast as it can.
 */
static int
check_races(struct sb_conform *c, struct sb_error *err)
{
	struct sb_terminal_spec swap = SB_TERMINAL_SPEC_INIT;
	char id[SB_TERMINAL_ID_MAX + 1];
	struct tools x;
	sb_deadline end;
	int cleared, r = open_tools(c, SB_PERM_MODE_APPROVE_ALL, &x, err);

	if (r < 0)
		return r;
	r = sb_conform_sh_is(x.b,
		"mkdir d; printf mine >d/f; o=$(mktemp -d) && printf secret >$o/f && ln -s "
		"$o l && printf $o >where",
		"", err);
	/* A write that comes while there is no d makes one: it must not stop the swapping. */
	swap.command = "sh -c 'exec 2>/dev/null; while :; do mv -T d e; mv -T l d; mv -T d l; "
		       "rm -rf d; mv -T e d; done'";
	if (r == 0)
		r = x.t->ops->terminal_create(x.t, &swap, &x.call, id, err);
	/*
	 * Until both sides of the swap were met often enough. A swapper that is too slow for that
	 * gets RACE_MS, and as long as the call lasts for the first time of each side: without it
	 * nothing is shown.
	 */
	end = sb_deadline_in(RACE_MS);
	for (unsigned i = 0, met = 0, refused = 0; r == 0 && (met < 100 || refused < 100) &&
		(met == 0 || refused == 0 || !sb_deadline_passed(end));
		i++) {
		sb_autofree char *text = NULL;
		size_t len = 0;
		int got = x.t->ops->read_text_file(x.t, "d/f", &x.call, &text, &len, NULL);

		met += got == 0;
		refused += got < 0;
		if (got == 0 && strcmp(text, "mine") != 0)
			r = broken(err,
				"a swap between check and open reads what is outside: '%.20s'",
				text);
		if (i % 10 == 0)
			(void)x.t->ops->write_text_file(x.t, "d/w", "x", 1, &x.call, NULL);
		if (r == 0)
			r = sb_call_check(&x.call, "reading both sides of a swap", err);
	}
	if (r == 0)
		r = x.t->ops->terminal_release(x.t, id, &x.call, err);
	/* The directory outside goes, however the race ended. */
	cleared = sb_conform_sh_is(x.b, "o=$(cat where) && cd \"$o\" && ls && rm -rf \"$o\"", "f\n",
		r < 0 ? NULL : err);
	return r < 0 ? r : cleared;
}

static int
check_permissions(struct sb_conform *c, struct sb_error *err)
{
	/* operation by mode: what the one table says. */
	static const struct {
		enum sb_perm_mode mode;
		bool read, write, terminal;
		enum sb_decision for_read, for_edit;
		bool ask;
	} rows[] = {
		{ SB_PERM_MODE_APPROVE_ALL, true, true, true, SB_DECISION_ALLOW_ONCE,
			SB_DECISION_ALLOW_ONCE, false },
		{ SB_PERM_MODE_APPROVE_READS, true, false, false, SB_DECISION_ALLOW_ONCE,
			SB_DECISION_PENDING, true },
		{ SB_PERM_MODE_DENY_ALL, false, false, false, SB_DECISION_REJECT_ONCE,
			SB_DECISION_REJECT_ONCE, false },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof rows / sizeof *rows; i++) {
		const char *in[] = { "f", NULL }, *out[] = { "f", "../x", NULL };
		struct sb_permission_request req = SB_PERMISSION_REQUEST_INIT;
		struct sb_terminal_spec spec = SB_TERMINAL_SPEC_INIT;
		char id[SB_TERMINAL_ID_MAX + 1], *text = NULL;
		struct sb_error why = { 0 };
		enum sb_decision d;
		bool ask = false;
		struct tools x;
		size_t len;

		r = open_tools(c, rows[i].mode, &x, err);
		if (r == 0)
			r = sb_conform_sh_is(x.b, "printf 1 >f", "", err);
		if (r < 0)
			return r;
		spec.command = "true";
		r = sb_conform_must_fail(
			x.t->ops->read_text_file(x.t, "f", &x.call, &text, &len, &why),
			rows[i].read ? 0 : SB_E_DENIED, "read", &why, err);
		free(text);
		if (r == 0)
			r = sb_conform_must_fail(
				x.t->ops->write_text_file(x.t, "g", "", 0, &x.call, &why),
				rows[i].write ? 0 : SB_E_DENIED, "write", &why, err);
		if (r == 0)
			r = sb_conform_must_fail(
				x.t->ops->terminal_create(x.t, &spec, &x.call, id, &why),
				rows[i].terminal ? 0 : SB_E_DENIED, "terminal", &why, err);
		if (r == 0)
			r = sb_conform_must_fail(x.t->ops->authorize(x.t, SB_PERM_OP_WRITE, &why),
				rows[i].write ? 0 : SB_E_DENIED, "authorize", &why, err);
		req.kind = "read";
		req.locations = in;
		if (r == 0)
			r = x.t->ops->permission_decision(x.t, &req, &x.call, &d, &ask, err);
		if (r == 0 && (d != rows[i].for_read || ask))
			r = broken(err, "%s decides %s for reading",
				sb_perm_mode_name(rows[i].mode), sb_decision_name(d));
		req.kind = "edit";
		if (r == 0)
			r = x.t->ops->permission_decision(x.t, &req, &x.call, &d, &ask, err);
		if (r == 0 && (d != rows[i].for_edit || ask != rows[i].ask))
			r = broken(err, "%s decides %s for editing",
				sb_perm_mode_name(rows[i].mode), sb_decision_name(d));
		req.locations = out;
		if (r == 0)
			r = x.t->ops->permission_decision(x.t, &req, &x.call, &d, &ask, err);
		if (r == 0 && (d != SB_DECISION_REJECT_ONCE || ask))
			r = broken(err, "%s decides %s for a path that leads out",
				sb_perm_mode_name(rows[i].mode), sb_decision_name(d));
	}
	return r;
}

/* Runs a command in a terminal to its end. */
static int
terminal(struct tools *x, const struct sb_terminal_spec *spec, char id[SB_TERMINAL_ID_MAX + 1],
	struct sb_ended *how, struct sb_terminal_output *out, struct sb_error *err)
{
	int r = x->t->ops->terminal_create(x->t, spec, &x->call, id, err);

	if (r == 0)
		r = x->t->ops->terminal_wait(x->t, id, &x->call, how, err);
	return r < 0 ? r : x->t->ops->terminal_output(x->t, id, &x->call, out, err);
}

static int
check_terminal(struct sb_conform *c, struct sb_error *err)
{
	const char *args[] = { "-c", "echo out; echo err >&2; echo \"$ADDED\"; exit 9", NULL },
		   *env[] = { "ADDED=a b", NULL };
	struct sb_terminal_spec spec = SB_TERMINAL_SPEC_INIT;
	char id[SB_TERMINAL_ID_MAX + 1], second[SB_TERMINAL_ID_MAX + 1];
	struct sb_terminal_output out = { 0 };
	struct sb_ended how = { 0 };
	struct sb_error why = { 0 };
	struct tools x;
	int r = open_tools(c, SB_PERM_MODE_APPROVE_ALL, &x, err);

	spec.command = "sh";
	spec.args = args;
	spec.env = env;
	if (r == 0)
		r = terminal(&x, &spec, id, &how, &out, err);
	if (r == 0 &&
		(strcmp(out.text, "out\nerr\na b\n") != 0 || out.truncated || !out.ended ||
			out.how.code != 9 || how.code != 9))
		r = broken(err, "a terminal gives '%.60s', exit %d%s", out.text, how.code,
			out.truncated ? ", truncated" : "");
	sb_terminal_output_free(&out);
	/* Only the last bytes, cut at a character. */
	spec.args = NULL;
	spec.command = "printf '12\\303\\251\\303\\251'";
	spec.output_limit = 3;
	if (r == 0)
		r = terminal(&x, &spec, second, &how, &out, err);
	if (r == 0 && (strcmp(out.text, "\303\251") != 0 || !out.truncated))
		r = broken(err, "the last 3 bytes of 12éé are '%.20s'%s", out.text,
			out.truncated ? "" : ", not truncated");
	sb_terminal_output_free(&out);
	if (r == 0 && strcmp(id, second) == 0)
		r = broken(err, "two terminals have the name %s", id);
	if (r == 0)
		r = x.t->ops->terminal_release(x.t, id, &x.call, err);
	if (r == 0)
		r = sb_conform_must_fail(x.t->ops->terminal_output(x.t, id, &x.call, &out, &why),
			SB_E_TERMINAL_NOT_FOUND, "output of a released terminal", &why, err);
	if (r == 0)
		r = sb_conform_must_fail(x.t->ops->terminal_release(x.t, id, &x.call, &why),
			SB_E_TERMINAL_NOT_FOUND, "release twice", &why, err);
	spec.command = "true";
	spec.cwd = "..";
	if (r == 0)
		r = sb_conform_must_fail(x.t->ops->terminal_create(x.t, &spec, &x.call, id, &why),
			SB_E_ESCAPE, "a terminal outside", &why, err);
	spec.cwd = NULL;
	spec.command = "no-such-program-here";
	return r < 0 ?
		r :
		sb_conform_must_fail(x.t->ops->terminal_create(x.t, &spec, &x.call, id, &why),
			SB_E_NOTFOUND, "a terminal for no program", &why, err);
}

static int
check_terminal_kill(struct sb_conform *c, struct sb_error *err)
{
	struct sb_terminal_spec spec = SB_TERMINAL_SPEC_INIT;
	char id[SB_TERMINAL_ID_MAX + 1];
	struct sb_terminal_output out = { 0 };
	struct sb_ended how = { 0 };
	struct sb_error why = { 0 };
	struct sb_call late;
	struct tools x;
	bool up = false;
	int r = open_tools(c, SB_PERM_MODE_APPROVE_ALL, &x, err);

	spec.command = "sh -c 'trap \"\" TERM; echo up; while :; do sleep 1000; done'";
	if (r == 0)
		r = x.t->ops->terminal_create(x.t, &spec, &x.call, id, err);
	while (r == 0 && !up) {
		r = x.t->ops->terminal_output(x.t, id, &x.call, &out, err);
		up = r == 0 && strcmp(out.text, "up\n") == 0;
		if (r == 0 && out.ended)
			r = broken(err, "a terminal that runs is told to have ended");
		sb_terminal_output_free(&out);
		if (r == 0 && !up)
			r = sb_call_check(&x.call, "output of a terminal", err);
		(void)poll(NULL, 0, up ? 0 : 5);
	}
	late = sb_call_within(NULL, 5);
	if (r == 0)
		r = sb_conform_must_fail(x.t->ops->terminal_wait(x.t, id, &late, &how, &why),
			SB_E_TIMEOUT, "wait with a deadline", &why, err);
	if (r == 0)
		r = x.t->ops->terminal_kill(x.t, id, &x.call, err);
	if (r == 0)
		r = x.t->ops->terminal_wait(x.t, id, &x.call, &how, err);
	if (r == 0 && how.signal != SIGKILL)
		r = broken(err, "a killed terminal ended with %d, signal %d", how.code, how.signal);
	if (r == 0)
		r = x.t->ops->terminal_output(x.t, id, &x.call, &out, err);
	if (r == 0 && (strcmp(out.text, "up\n") != 0 || !out.ended))
		r = broken(err, "a killed terminal's output is '%.20s'", out.text);
	sb_terminal_output_free(&out);
	if (r == 0)
		r = x.t->ops->terminal_kill(x.t, id, &x.call, err);
	return r;
}

static int
check_terminal_secrets(struct sb_conform *c, struct sb_error *err)
{
	struct sb_terminal_spec spec = SB_TERMINAL_SPEC_INIT;
	char id[SB_TERMINAL_ID_MAX + 1];
	struct sb_terminal_output out = { 0 };
	struct sb_ended how = { 0 };
	struct tools x;
	int r;

	/* Of this process: it must reach no terminal, whether that is here or elsewhere. */
	if (setenv("CONFORM_API_TOKEN", "t0p-s3cret", 1) < 0 ||
		setenv("CONFORM_DEPLOY_KEY", "t0p-s3cret", 1) < 0)
		return sb_fail_errno(err, "setenv");
	r = open_tools(c, SB_PERM_MODE_APPROVE_ALL, &x, err);
	spec.command = "env";
	if (r == 0)
		r = terminal(&x, &spec, id, &how, &out, err);
	if (r == 0 && strstr(out.text, "t0p-s3cret"))
		r = broken(err, "a secret of this process's environment is in a terminal's");
	sb_terminal_output_free(&out);
	(void)unsetenv("CONFORM_API_TOKEN");
	(void)unsetenv("CONFORM_DEPLOY_KEY");
	return r;
}

const struct sb_conform_check sb_conform_tools_checks[] = {
	{ "tools-files", "read and write, atomic, mode kept; what is no file is refused",
		check_files },
	{ "tools-paths", "links inside are followed, everything else stays inside", check_paths },
	{ "tools-races", "a swap between check and use leads nowhere", check_races },
	{ "tools-permissions", "one table of operations and modes", check_permissions },
	{ "tools-terminal", "output, exit code, limit, names, release", check_terminal },
	{ "tools-terminal-kill", "wait, deadline, kill; the output stays", check_terminal_kill },
	{ "tools-terminal-secrets", "no secret of this process in its environment",
		check_terminal_secrets },
	{ NULL, NULL, NULL },
};
