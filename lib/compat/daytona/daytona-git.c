/* SPDX-License-Identifier: MIT */
/*
 * Git by the toolbox: the git of the sandbox does it, inside. A password goes by its environment
 * and is in no argument and no file, unless the caller asks to keep it there.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <compat/daytona/daytona-priv.h>

#define TEXT_MAX 65536
#define FILES_MAX 4096
#define HELPER \
	"credential.helper=!f() { echo \"username=$SB_GIT_USER\"; " \
	"echo \"password=$SB_GIT_PASSWORD\"; }; f"

/* A request under way: its fields, the command, what it said. */
struct job {
	struct sb_daytona_visit v;
	struct sb_rpc_fields f;
	json_t *in, *env;
	struct sb_strlist argv;
	struct sb_daytona_run run;
	char *dir;
};

static void
job_end(struct job *j)
{
	sb_daytona_visit_end(&j->v);
	sb_daytona_run_free(&j->run);
	sb_strlist_free(&j->argv);
	json_decref(j->in);
	json_decref(j->env);
	free(j->dir);
}

/* Enters, with a body (or the query as one); finds the directory. 0, 1: answered, or an error. */
static int
job_begin(struct sb_rpc_call *call, const struct sb_query *q, bool body, struct job *j,
	struct sb_error *err)
{
	int r;

	*j = (struct job){ .run.apart = true };
	j->in = body ? sb_answer_body(call, err) : json_object();
	if (!j->in)
		return SB_E_INVAL;
	for (size_t i = 0; !body && i + 1 < q->pairs.n; i += 2)
		sb_daytona_set(j->in, q->pairs.v[i], q->pairs.v[i + 1]);
	sb_rpc_fields_init(&j->f, j->in);
	r = sb_daytona_visit(call, q, &j->v, err);
	if (r != 0)
		return r;
	j->env = json_pack("{s:s, s:s, s:s}", "GIT_TERMINAL_PROMPT", "0", "LC_ALL", "C.UTF-8",
		"GIT_OPTIONAL_LOCKS", "0");
	j->dir = sb_daytona_path(&j->v, sb_rpc_field_str(&j->f, "path", 4096, 0), err);
	sb_strlist_add(&j->argv, "git");
	return j->dir ? 0 : SB_E_INVAL;
}

/* A text of the request; one that git would take for an option is a mistake. */
static const char *
word(struct job *j, const char *name, unsigned flags)
{
	const char *s = sb_rpc_field_str(&j->f, name, TEXT_MAX, flags);

	if (*s == '-')
		sb_rpc_field_bad(&j->f, name, "must not begin with '-'");
	return s;
}

static void
add(struct job *j, const char *text)
{
	sb_strlist_add(&j->argv, text);
}

/* With username and password, where they are given. */
static void
log_in(struct job *j)
{
	const char *user = sb_rpc_field_str(&j->f, "username", 1024, 0),
		   *password = sb_rpc_field_str(&j->f, "password", TEXT_MAX, 0);

	if (!*user && !*password)
		return;
	sb_daytona_set(j->env, "SB_GIT_USER", *user ? user : "git");
	sb_daytona_set(j->env, "SB_GIT_PASSWORD", password);
	add(j, "-c");
	add(j, "credential.helper=");
	add(j, "-c");
	add(j, HELPER);
}

static int
run(struct job *j, const char *cwd, struct sb_error *err)
{
	int r = sb_rpc_fields_check(&j->f, err);

	if (r == 0)
		r = sb_strlist_check(&j->argv, err);
	if (r < 0)
		return r;
	sb_daytona_run_free(&j->run);
	j->run.argv = (const char *const *)j->argv.v;
	j->run.env = j->env;
	j->run.cwd = cwd;
	return sb_daytona_run(&j->v, &j->run, err);
}

/* The next command of the same request. */
static void
again(struct job *j)
{
	sb_strlist_free(&j->argv);
	sb_strlist_add(&j->argv, "git");
}

/* The answer for what git refused. */
static int
refuse(struct sb_rpc_call *call, struct job *j, int r, struct sb_error *err)
{
	const char *said = j->run.err.data ? (char *)j->run.err.data : "";

	if (r == SB_E_NOTFOUND || r == SB_E_DENIED)
		return sb_daytona_refuse(call, 400, "no git, or no directory %s", j->dir);
	if (r < 0)
		return r;
	return sb_daytona_refuse(call,
		strstr(said, "uthentication failed") || strstr(said, "could not read Username") ?
			401 :
			strstr(said, "already exists") ? 409 :
							 400,
		"%.400s", *said ? said : "git failed");
}

/* The common end: an answer without a body, or a refusal. */
static int
finish(struct sb_rpc_call *call, struct job *j, int r, int status, struct sb_error *err)
{
	if (r == 0 && j->run.code == 0)
		sb_rpc_http_reply(call, status, NULL, NULL, 0);
	else if (r <= 0)
		r = refuse(call, j, r, err);
	job_end(j);
	return r < 0 ? r : 0;
}

static const char *
output(const struct job *j)
{
	return j->run.out.data ? (char *)j->run.out.data : "";
}

static int
clone_it(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct job j;
	int r = job_begin(call, q, true, &j, err);
	const char *branch, *commit;
	int64_t depth;

	if (r == 0) {
		log_in(&j);
		if (sb_rpc_field_bool(&j.f, "insecure_skip_tls")) {
			add(&j, "-c");
			add(&j, "http.sslVerify=false");
		}
		add(&j, "clone");
		branch = word(&j, "branch", 0);
		commit = word(&j, "commit_id", 0);
		depth = sb_rpc_field(&j.f, "depth") ?
			sb_rpc_field_int(&j.f, "depth", 1, INT32_MAX) :
			0;
		if (*branch)
			sb_strlist_addf(&j.argv, "--branch=%s", branch);
		if (depth > 0)
			sb_strlist_addf(&j.argv, "--depth=%lld", (long long)depth);
		add(&j, "--");
		add(&j, word(&j, "url", SB_RPC_REQUIRED));
		add(&j, j.dir);
		r = run(&j, j.v.home, err);
		if (r == 0 && j.run.code == 0 && *commit) {
			again(&j);
			add(&j, "checkout");
			add(&j, commit);
			r = run(&j, j.dir, err);
		}
	}
	return finish(call, &j, r, 200, err);
}

static int
init(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct job j;
	int r = job_begin(call, q, true, &j, err);
	const char *branch;

	if (r == 0) {
		add(&j, "init");
		if (sb_rpc_field_bool(&j.f, "bare"))
			add(&j, "--bare");
		branch = word(&j, "initial_branch", 0);
		if (*branch)
			sb_strlist_addf(&j.argv, "--initial-branch=%s", branch);
		add(&j, "--");
		add(&j, j.dir);
		r = run(&j, j.v.home, err);
	}
	return finish(call, &j, r, 201, err);
}

/* Adds the files of the request behind "--". */
static void
add_files(struct job *j)
{
	add(j, "--");
	sb_rpc_field_list(&j->f, "files", FILES_MAX, 4096, &j->argv);
}

static int
add_them(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct job j;
	int r = job_begin(call, q, true, &j, err);

	if (r == 0) {
		add(&j, "add");
		add_files(&j);
		r = run(&j, j.dir, err);
	}
	return finish(call, &j, r, 200, err);
}

static int
commit(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct job j;
	int r = job_begin(call, q, true, &j, err);
	const char *author, *email;

	if (r == 0) {
		author = sb_rpc_field_str(&j.f, "author", 1024, SB_RPC_REQUIRED);
		email = sb_rpc_field_str(&j.f, "email", 1024, SB_RPC_REQUIRED);
		sb_daytona_set(j.env, "GIT_AUTHOR_NAME", author);
		sb_daytona_set(j.env, "GIT_AUTHOR_EMAIL", email);
		sb_daytona_set(j.env, "GIT_COMMITTER_NAME", author);
		sb_daytona_set(j.env, "GIT_COMMITTER_EMAIL", email);
		add(&j, "commit");
		if (sb_rpc_field_bool(&j.f, "allow_empty"))
			add(&j, "--allow-empty");
		sb_strlist_addf(&j.argv, "--message=%s",
			sb_rpc_field_str(&j.f, "message", TEXT_MAX, SB_RPC_REQUIRED));
		r = run(&j, j.dir, err);
		/* It says on its output that there is nothing to commit. */
		if (r == 0 && j.run.code != 0 && j.run.err.len == 0)
			sb_buf_add(&j.run.err, j.run.out.data, j.run.out.len);
		if (r == 0 && j.run.code == 0) {
			again(&j);
			add(&j, "rev-parse");
			add(&j, "HEAD");
			r = run(&j, j.dir, err);
		}
		if (r == 0 && j.run.code == 0)
			r = sb_answer_json(call, 200,
				json_pack("{s:o}", "hash",
					json_sprintf("%.*s", (int)strcspn(output(&j), "\n"),
						output(&j))),
				err);
	}
	return finish(call, &j, r, 200, err);
}

static int
branches(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct job j;
	int r = job_begin(call, q, false, &j, err);
	json_t *list = json_array();

	if (r == 0) {
		add(&j, "for-each-ref");
		add(&j, "--format=%(refname:short)");
		add(&j, "refs/heads");
		r = run(&j, j.dir, err);
		for (const char *p = output(&j); r == 0 && *p;) {
			size_t n = strcspn(p, "\n");

			(void)json_array_append_new(list, sb_rpc_json_text(p, n));
			p += n + (p[n] == '\n');
		}
		if (r == 0 && j.run.code == 0)
			r = sb_answer_json(call, 200, json_pack("{s:O}", "branches", list), err);
	}
	json_decref(list);
	return finish(call, &j, r, 200, err);
}

static int
branch_new(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct job j;
	int r = job_begin(call, q, true, &j, err);

	if (r == 0) {
		add(&j, "branch");
		add(&j, word(&j, "name", SB_RPC_REQUIRED));
		r = run(&j, j.dir, err);
	}
	return finish(call, &j, r, 201, err);
}

static int
branch_delete(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct job j;
	int r = job_begin(call, q, true, &j, err);

	if (r == 0) {
		add(&j, "branch");
		add(&j, "-D");
		add(&j, word(&j, "name", SB_RPC_REQUIRED));
		r = run(&j, j.dir, err);
	}
	return finish(call, &j, r, 204, err);
}

static int
checkout(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct job j;
	int r = job_begin(call, q, true, &j, err);

	if (r == 0) {
		add(&j, "checkout");
		add(&j, word(&j, "branch", SB_RPC_REQUIRED));
		add(&j, "--");
		r = run(&j, j.dir, err);
	}
	return finish(call, &j, r, 200, err);
}

/* pull and push [REMOTE [BRANCH]] */
static int
transfer(struct sb_rpc_call *call, const struct sb_query *q, const char *verb, struct sb_error *err)
{
	struct job j;
	int r = job_begin(call, q, true, &j, err);
	const char *remote, *branch;

	if (r == 0) {
		log_in(&j);
		add(&j, verb);
		if (strcmp(verb, "push") == 0 && sb_rpc_field_bool(&j.f, "set_upstream"))
			add(&j, "--set-upstream");
		remote = word(&j, "remote", 0);
		branch = word(&j, "branch", 0);
		if (*remote || *branch)
			add(&j, *remote ? remote : "origin");
		if (*branch)
			add(&j, branch);
		r = run(&j, j.dir, err);
	}
	return finish(call, &j, r, 200, err);
}

static int
pull(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	return transfer(call, q, "pull", err);
}

static int
push(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	return transfer(call, q, "push", err);
}

static int
reset(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct job j;
	int r = job_begin(call, q, true, &j, err);
	const char *mode, *target;

	if (r == 0) {
		mode = word(&j, "mode", 0);
		target = word(&j, "target", 0);
		add(&j, "reset");
		if (*mode && strcmp(mode, "soft") != 0 && strcmp(mode, "mixed") != 0 &&
			strcmp(mode, "hard") != 0 && strcmp(mode, "merge") != 0 &&
			strcmp(mode, "keep") != 0)
			sb_rpc_field_bad(&j.f, "mode", "must be soft, mixed, hard, merge or keep");
		if (*mode && !sb_rpc_field(&j.f, "files"))
			sb_strlist_addf(&j.argv, "--%s", mode);
		if (*target)
			add(&j, target);
		if (sb_rpc_field(&j.f, "files"))
			add_files(&j);
		r = run(&j, j.dir, err);
	}
	return finish(call, &j, r, 200, err);
}

static int
restore(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct job j;
	int r = job_begin(call, q, true, &j, err);
	const char *source;

	if (r == 0) {
		source = word(&j, "source", 0);
		add(&j, "restore");
		if (sb_rpc_field_bool(&j.f, "staged"))
			add(&j, "--staged");
		if (sb_rpc_field_bool(&j.f, "worktree"))
			add(&j, "--worktree");
		if (*source)
			sb_strlist_addf(&j.argv, "--source=%s", source);
		add_files(&j);
		r = run(&j, j.dir, err);
	}
	return finish(call, &j, r, 200, err);
}

static int
history(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct job j;
	int r = job_begin(call, q, false, &j, err);
	json_t *list = json_array();

	if (r == 0) {
		add(&j, "log");
		add(&j, "-z");
		add(&j, "--max-count=1000");
		add(&j, "--format=%H%n%an%n%ae%n%aI%n%B");
		r = run(&j, j.dir, err);
		for (const char *p = output(&j), *end = p + j.run.out.len;
			r == 0 && j.run.code == 0 && p < end; p += strlen(p) + 1) {
			const char *at = p;
			json_t *o = json_object();
			static const char *const names[] = { "hash", "author", "email",
				"timestamp" };

			for (int i = 0; i < 4; i++) {
				size_t n = strcspn(at, "\n");

				(void)json_object_set_new(o, names[i], sb_rpc_json_text(at, n));
				at += n + (at[n] == '\n');
			}
			(void)json_object_set_new(o, "message", sb_answer_text(at));
			(void)json_array_append_new(list, o);
		}
		if (r == 0 && j.run.code == 0)
			r = sb_answer_json(call, 200, json_incref(list), err);
	}
	json_decref(list);
	return finish(call, &j, r, 200, err);
}

static const char *
status_word(char c)
{
	switch (c) {
	case '?': return "Untracked";
	case 'M':
	case 'T': return "Modified";
	case 'A': return "Added";
	case 'D': return "Deleted";
	case 'R': return "Renamed";
	case 'C': return "Copied";
	case 'U': return "Updated but unmerged";
	default: return "Unmodified";
	}
}

/* One line of "status --porcelain=v2 --branch -z"; `next` is the one behind it. True: it took it.
 */
static bool
status_line(const char *p, const char *next, json_t *o)
{
	json_t *files = json_object_get(o, "fileStatus");
	int skip = *p == '1' ? 8 : *p == '2' ? 9 : *p == 'u' ? 10 : 1;
	const char *name = p;
	int ahead, behind;

	if (strncmp(p, "# branch.head ", 14) == 0) {
		bool off = strcmp(p + 14, "(detached)") == 0;

		(void)json_object_set_new(o, "detached", json_boolean(off));
		sb_daytona_set(o, "currentBranch", off ? "HEAD" : p + 14);
	} else if (strncmp(p, "# branch.upstream ", 18) == 0) {
		sb_daytona_set(o, "upstream", p + 18);
		(void)json_object_set_new(o, "branchPublished", json_true());
	} else if (sscanf(p, "# branch.ab +%d -%d", &ahead, &behind) == 2) {
		sb_daytona_set_number(o, "ahead", ahead);
		sb_daytona_set_number(o, "behind", behind);
	}
	if (!strchr("12u?", *p))
		return false;
	for (int i = 0; i < skip && name; i++) {
		name = strchr(name, ' ');
		name = name ? name + 1 : NULL;
	}
	(void)json_array_append_new(files,
		json_pack("{s:o, s:s, s:s, s:o}", "name", sb_answer_text(name ? name : p),
			"staging", *p == '?' ? "Untracked" : status_word(p[2]), "worktree",
			*p == '?' ? "Untracked" : status_word(p[3]), "extra",
			sb_answer_text(*p == '2' ? next : "")));
	return *p == '2';
}

static int
status(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct job j;
	int r = job_begin(call, q, false, &j, err);
	json_t *o = json_pack("{s:s, s:[], s:i, s:i, s:b, s:b}", "currentBranch", "", "fileStatus",
		"ahead", 0, "behind", 0, "branchPublished", 0, "detached", 0);

	if (r == 0) {
		add(&j, "status");
		add(&j, "--porcelain=v2");
		add(&j, "--branch");
		add(&j, "-z");
		add(&j, "--untracked-files=all");
		r = run(&j, j.dir, err);
		for (const char *p = output(&j), *end = p + j.run.out.len;
			r == 0 && j.run.code == 0 && p < end;) {
			const char *next = p + strlen(p) + 1;

			/* A cut output ends in its NUL all the same. */
			if (status_line(p, next < end ? next : "", o) && next < end)
				next += strlen(next) + 1;
			p = next;
		}
		if (r == 0 && j.run.code == 0)
			r = sb_answer_json(call, 200, json_incref(o), err);
	}
	json_decref(o);
	return finish(call, &j, r, 200, err);
}

static int
remotes(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct job j;
	int r = job_begin(call, q, false, &j, err);
	json_t *list = json_array();

	if (r == 0) {
		add(&j, "config");
		add(&j, "-z");
		add(&j, "--get-regexp");
		add(&j, "^remote\\..*\\.url$");
		r = run(&j, j.dir, err);
		for (const char *p = output(&j), *end = p + j.run.out.len; r == 0 && p < end;
			p += strlen(p) + 1) {
			const char *nl = strchr(p, '\n');

			/* remote.NAME.url, then its value */
			if (nl && nl - p > 11)
				(void)json_array_append_new(list,
					json_pack("{s:o, s:o}", "name",
						sb_rpc_json_text(p + 7, (size_t)(nl - p - 11)),
						"url", sb_answer_text(nl + 1)));
		}
		/* 1: there are none. */
		if (r == 0 && j.run.code <= 1)
			r = sb_answer_json(call, 200, json_pack("{s:O}", "remotes", list), err);
		j.run.code = j.run.code == 1 ? 0 : j.run.code;
	}
	json_decref(list);
	return finish(call, &j, r, 200, err);
}

static int
remote_new(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct job j;
	int r = job_begin(call, q, true, &j, err);
	const char *name, *url;

	if (r == 0) {
		name = word(&j, "name", SB_RPC_REQUIRED);
		url = word(&j, "url", SB_RPC_REQUIRED);
		if (sb_rpc_field_bool(&j.f, "overwrite")) {
			add(&j, "remote");
			add(&j, "remove");
			add(&j, name);
			r = run(&j, j.dir, err);
			again(&j);
		}
		add(&j, "remote");
		add(&j, "add");
		if (sb_rpc_field_bool(&j.f, "fetch"))
			add(&j, "-f");
		add(&j, name);
		add(&j, url);
		if (r == 0)
			r = run(&j, j.dir, err);
	}
	return finish(call, &j, r, 201, err);
}

/* "git config" of that scope. */
static void
config_of(struct job *j)
{
	const char *scope = sb_rpc_field_str(&j->f, "scope", 16, 0);

	if (*scope && strcmp(scope, "global") != 0 && strcmp(scope, "local") != 0)
		sb_rpc_field_bad(&j->f, "scope", "must be global or local");
	add(j, "config");
	add(j, strcmp(scope, "local") == 0 ? "--local" : "--global");
}

static int
config_set(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct job j;
	int r = job_begin(call, q, true, &j, err);

	if (r == 0) {
		config_of(&j);
		add(&j, word(&j, "key", SB_RPC_REQUIRED));
		add(&j, sb_rpc_field_str(&j.f, "value", TEXT_MAX, 0));
		r = run(&j, j.dir, err);
	}
	return finish(call, &j, r, 200, err);
}

static int
config_get(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct job j;
	int r = job_begin(call, q, false, &j, err);

	if (r == 0) {
		config_of(&j);
		add(&j, "--get");
		add(&j, word(&j, "key", SB_RPC_REQUIRED));
		r = run(&j, j.dir, err);
		/* 1: it is not set. */
		if (r == 0 && j.run.code <= 1)
			r = sb_answer_json(call, 200,
				j.run.code ? json_object() :
					     json_pack("{s:o}", "value",
						     sb_rpc_json_text(output(&j),
							     strcspn(output(&j), "\n"))),
				err);
		j.run.code = j.run.code == 1 ? 0 : j.run.code;
	}
	return finish(call, &j, r, 200, err);
}

static int
config_user(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	static const char *const names[][2] = { { "user.name", "name" },
		{ "user.email", "email" } };
	struct job j;
	int r = job_begin(call, q, true, &j, err);

	for (int i = 0; r == 0 && j.run.code == 0 && i < 2; i++) {
		again(&j);
		config_of(&j);
		add(&j, names[i][0]);
		add(&j, sb_rpc_field_str(&j.f, names[i][1], 1024, SB_RPC_REQUIRED));
		r = run(&j, j.dir, err);
	}
	return finish(call, &j, r, 200, err);
}

/* Keeps it in the sandbox, in plain text, as the caller asks for. */
static int
credentials(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct job j;
	int r = job_begin(call, q, true, &j, err);
	sb_autofree char *text = NULL;
	const char *host, *protocol, *user, *password;

	if (r == 0) {
		host = sb_rpc_field_str(&j.f, "host", 255, 0);
		protocol = sb_rpc_field_str(&j.f, "protocol", 16, 0);
		user = sb_rpc_field_str(&j.f, "username", 1024, SB_RPC_REQUIRED);
		password = sb_rpc_field_str(&j.f, "password", TEXT_MAX, SB_RPC_REQUIRED);
		if (strchr(user, '\n') || strchr(password, '\n') || strchr(host, '\n') ||
			strchr(protocol, '\n'))
			sb_rpc_field_bad(&j.f, "password", "must be one line");
		text = sb_str_printf("protocol=%s\nhost=%s\nusername=%s\npassword=%s\n\n",
			*protocol ? protocol : "https", *host ? host : "github.com", user,
			password);
		add(&j, "config");
		add(&j, "--global");
		add(&j, "credential.helper");
		add(&j, "store");
		r = text ? run(&j, j.dir, err) : SB_E_NOMEM;
		if (r == 0 && j.run.code == 0) {
			again(&j);
			add(&j, "credential");
			add(&j, "approve");
			j.run.input = text;
			j.run.input_len = strlen(text);
			r = run(&j, j.dir, err);
			explicit_bzero(text, strlen(text));
		}
	}
	return finish(call, &j, r, 200, err);
}

#define ROUTE(verb, path, run, body) \
	{ \
		verb, "/git/" path, run, SB_RPC_HTTP_##body, SB_DAYTONA_LASTS, NULL \
	}
const struct sb_daytona_route sb_daytona_git_routes[] = {
	ROUTE("POST", "clone", clone_it, WHOLE),
	ROUTE("POST", "init", init, WHOLE),
	ROUTE("POST", "add", add_them, WHOLE),
	ROUTE("POST", "commit", commit, WHOLE),
	ROUTE("GET", "branches", branches, NO_BODY),
	ROUTE("POST", "branches", branch_new, WHOLE),
	ROUTE("DELETE", "branches", branch_delete, WHOLE),
	ROUTE("POST", "checkout", checkout, WHOLE),
	ROUTE("POST", "pull", pull, WHOLE),
	ROUTE("POST", "push", push, WHOLE),
	ROUTE("POST", "reset", reset, WHOLE),
	ROUTE("POST", "restore", restore, WHOLE),
	ROUTE("GET", "history", history, NO_BODY),
	ROUTE("GET", "status", status, NO_BODY),
	ROUTE("GET", "remotes", remotes, NO_BODY),
	ROUTE("POST", "remotes", remote_new, WHOLE),
	ROUTE("GET", "config", config_get, NO_BODY),
	ROUTE("POST", "config", config_set, WHOLE),
	ROUTE("POST", "config/user", config_user, WHOLE),
	ROUTE("POST", "credentials", credentials, WHOLE),
	{ NULL, NULL, NULL, SB_RPC_HTTP_NO_BODY, 0, NULL },
};
