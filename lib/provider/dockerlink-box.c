/* SPDX-License-Identifier: MIT */
/* A sandbox of "sbx" or "docker sandbox": what a profile means there. */
#include "config.h"

#include <provider/dockerlink.h>

#include <stdlib.h>
#include <string.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/str.h>
#include <provider/provider.h>

#define DEFAULT_AGENT "shell"

static const char *
option(const struct sb_dockerlink *l, const char *key)
{
	return sb_strlist_get(sb_strlist_borrow(&l->options), key);
}

/* What the installed "create" knows, by its help text. */
struct knows {
	bool name, cpus, memory, mountless;
};

static int
ask_create(struct sb_dockerlink *l, const char *agent, const struct sb_call *call,
	struct knows *out, struct sb_error *err)
{
	sb_autofree char *text = NULL;
	const char *const args[] = { "create", agent, "--help", NULL };
	int r = sb_docker_output(l->docker, args, call, &text, err);

	if (r < 0)
		return r;
	*out = (struct knows){ .name = strstr(text, "--name") != NULL,
		.cpus = strstr(text, "--cpus") != NULL,
		.memory = strstr(text, "--memory") != NULL,
		.mountless = strstr(text, "[PATH...]") && !strstr(text, "PATH [PATH...]") };
	return 0;
}

/* Refuses what this command line has no word for. */
static int
check_options(const struct sb_dockerlink *l, const struct sb_prepare_request *req,
	const struct knows *k, struct sb_error *err)
{
	static const char *const containers[] = { "engine", "pids", "user", "read_only", "cap_add",
		"runtime", NULL };
	const char *label = sb_dockerlink_label(l);

	for (size_t i = 0; containers[i]; i++)
		if (option(l, containers[i]))
			return sb_fail(err, SB_E_UNSUPPORTED,
				"option %s is one of containers, and this is %s: take it out, or "
				"set kind: container",
				containers[i], label);
	if (option(l, "cpus") && !k->cpus)
		return sb_fail(err, SB_E_UNSUPPORTED, "this %s cannot limit cpus", label);
	if (option(l, "memory") && !k->memory)
		return sb_fail(err, SB_E_UNSUPPORTED, "this %s cannot limit memory", label);
	if (!k->name)
		return sb_fail(err, SB_E_UNSUPPORTED,
			"this %s cannot name a sandbox: it is too old, install sbx", label);
	if (l->kind == SB_DOCKERLINK_SANDBOX && req->profile->persist == SB_PERSIST_ARCHIVE)
		return sb_fail(err, SB_E_UNSUPPORTED,
			"docker sandbox cannot archive: use persistence reuse, or sbx");
	return 0;
}

/*
 * Allow lists: docker sandbox can deny all the rest; of sbx only the user can, for all sandboxes,
 * so there a list cannot be promised.
 */
static int
check_network(const struct sb_dockerlink *l, const struct sb_network *n, struct sb_error *err)
{
	if (n->deny_list.n)
		return sb_fail(err, SB_E_NETWORK_POLICY,
			"backend docker: %s has no deny list for one sandbox: use kind: container",
			sb_dockerlink_label(l));
	if (l->kind == SB_DOCKERLINK_SBX && n->allow_list.n && n->required)
		return sb_fail(err, SB_E_NETWORK_POLICY,
			"backend docker: sbx allows what its own policy allows besides the list, "
			"which is required here: use kind: container");
	return 0;
}

static int
create(struct sb_dockerlink *l, const struct sb_prepare_request *req, const struct knows *k,
	const struct sb_call *call, struct sb_error *err)
{
	const char *agent = option(l, "agent");
	sb_auto(sb_strlist) struct sb_strlist args = { 0 };
	sb_autofree char *archive = NULL;
	sb_autofree char *dir = NULL;
	sb_autofree char *empty = NULL;
	int r;

	/* What an archive has kept of one that is gone. */
	if (l->kind == SB_DOCKERLINK_SBX && sb_dockerlink_is_archived(l))
		archive = sb_dockerlink_archive_name(l);
	sb_strlist_add_all(&args, (const char *[]){ "create", "--name", l->name, NULL });
	if (archive || option(l, "image"))
		sb_strlist_add_all(&args,
			(const char *[]){ "-t", archive ? archive : option(l, "image"), NULL });
	if (option(l, "cpus"))
		sb_strlist_add_all(&args, (const char *[]){ "--cpus", option(l, "cpus"), NULL });
	if (option(l, "memory"))
		sb_strlist_add_all(&args, (const char *[]){ "-m", option(l, "memory"), NULL });
	sb_strlist_add(&args, agent ? agent : DEFAULT_AGENT);
	if (l->mounted) {
		sb_strlist_add(&args, req->local_root);
		sb_strlist_add_all(&args, req->local_dirs);
		for (size_t i = args.n - 1; i > 0 && args.v[i][0] == '/'; i--)
			if (sb_str_ends(args.v[i], ":ro"))
				return sb_fail(err, SB_E_INVAL,
					"%s: a directory whose name ends in \":ro\" cannot be "
					"mounted: rename it, or use sync: synced",
					args.v[i]);
	} else if (!k->mountless) {
		/* It wants a directory: it gets an empty one, which nobody uses. */
		dir = sb_dockerlink_dir(l, true, err);
		empty = dir ? sb_str_printf("%s/empty", dir) : NULL;
		if (!empty || sb_file_mkdirs(empty, 0700, err) < 0)
			return err->code ? err->code : SB_E_NOMEM;
		sb_strlist_add(&args, empty);
	}
	r = sb_strlist_check(&args, err);
	if (r == 0)
		r = sb_docker_run(l->docker, sb_strlist_borrow(&args), call, err);
	return r;
}

/* Closes the network of a sandbox, but for the hosts of the list. */
static int
close_network(struct sb_dockerlink *l, const struct sb_network *n, const struct sb_call *call,
	struct sb_error *err)
{
	const char *const deny[] = { "policy", "deny", "network", "--sandbox", l->name, "**",
		NULL };
	const char *const proxy[] = { "network", "proxy", l->name, "--policy", "deny", NULL };
	struct sb_error why = { 0 };
	int r = sb_docker_probe(l->docker, call, &why);

	if (r == 0 && sb_docker_era_of(l->docker) == SB_DOCKER_ERA_C && !n->allow_list.n)
		r = sb_docker_run(l->docker, deny, call, &why);
	else if (r == 0 && l->kind == SB_DOCKERLINK_SANDBOX)
		r = sb_docker_run(l->docker, proxy, call, &why);
	else if (r == 0)
		r = sb_fail(&why, SB_E_UNSUPPORTED, "it is too old");
	if (r == 0 && n->allow_list.n)
		r = sb_docker_allow_hosts(l->docker, l->name, sb_strlist_borrow(&n->allow_list),
			call, &why);
	return r < 0 ? sb_fail(err, SB_E_NETWORK_POLICY, "%s cannot enforce the network policy: %s",
			       sb_dockerlink_label(l), why.msg) :
		       0;
}

static int
set_network(struct sb_dockerlink *l, const struct sb_network *n, const struct sb_call *call,
	struct sb_error *err)
{
	struct sb_error why = { 0 };

	if (n->required && (!n->allow_outbound || n->allow_list.n))
		return close_network(l, n, call, err);
	if (!n->allow_list.n)
		return 0;
	/* A wish: what it cannot have is told, and the work goes on. */
	if (sb_docker_allow_hosts(l->docker, l->name, sb_strlist_borrow(&n->allow_list), call,
		    &why) < 0) {
		if (why.code == SB_E_INVAL)
			return sb_fail(err, SB_E_INVAL, "%s", why.msg);
		if (call)
			sb_log(&call->log, SB_LOG_WARN, "docker", "%s", why.msg);
	}
	return 0;
}

/* Our protocol needs stdout for itself; some versions put both streams into one. */
static int
check_streams(struct sb_dockerlink *l, const struct sb_call *call, struct sb_error *err)
{
	const char *const args[] = { "exec", "-i", l->name, "sh", "-c", "echo out; echo err >&2",
		NULL };
	sb_autofree char *text = NULL;
	int r = sb_docker_output(l->docker, args, call, &text, err);

	if (r == 0 && strcmp(text, "out\n") != 0)
		r = sb_fail(err, SB_E_UNSUPPORTED,
			"exec of %s mixes stdout and stderr: run 'sbx setup ssh' and set via: ssh",
			sb_dockerlink_label(l));
	return r;
}

int
sb_dockerlink_box_ensure(struct sb_dockerlink *l, const struct sb_prepare_request *req,
	const struct sb_call *call, struct sb_error *err)
{
	const char *via = option(l, "via");
	struct sb_error why = { 0 };
	struct knows k = { 0 };
	bool running;
	int r = check_network(l, &req->profile->network, err);

	if (r < 0)
		return r;
	r = sb_dockerlink_find(l, NULL, call, &running, &why);
	if (r == SB_E_SANDBOX_NOT_FOUND && req->may_create) {
		r = ask_create(l, option(l, "agent") ? option(l, "agent") : DEFAULT_AGENT, call, &k,
			err);
		if (r == 0)
			r = check_options(l, req, &k, err);
		if (r == 0)
			r = create(l, req, &k, call, err);
		l->fresh = r == 0;
	} else if (r < 0 && err) {
		*err = why;
	}
	if (r == 0)
		r = set_network(l, &req->profile->network, call, err);
	if (r == 0 && !(via && strcmp(via, "ssh") == 0))
		r = check_streams(l, call, err);
	return r;
}
