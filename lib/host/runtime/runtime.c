/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/runtime/runtime.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/str.h>
#include <base/strlist.h>
#include <host/runtime/proctree.h>

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

const char *
sb_host_runtime_name(enum sb_host_runtime r)
{
	static const char *const names[] = { "none", "bwrap", "gvisor", "auto" };

	return (unsigned)r < sizeof names / sizeof names[0] ? names[r] : "?";
}

bool
sb_host_runtime_from(const char *name, enum sb_host_runtime *out)
{
	for (int i = 0; i <= SB_HOST_RUNTIME_AUTO; i++)
		if (strcmp(name, sb_host_runtime_name((enum sb_host_runtime)i)) == 0) {
			*out = (enum sb_host_runtime)i;
			return true;
		}
	return false;
}

struct sb_runtime *
sb_runtime_open(enum sb_host_runtime kind, const struct sb_runtime_opts *o, struct sb_error *err)
{
	struct sb_runtime *rt = NULL;

	if (kind == SB_HOST_RUNTIME_AUTO) {
		struct sb_error strong = { 0 }, weak = { 0 };
		const struct sb_runtime_opts best = { .host = o->host,
			.key = o->key,
			.picky = true,
			.on_network = o->on_network,
			.network_arg = o->network_arg };

		rt = sb_runtime_gvisor_open(&best, &strong);
		if (!rt)
			rt = sb_runtime_bwrap_open(&best, &weak);
		if (!rt)
			(void)sb_fail(err, SB_E_UNSUPPORTED,
				"nothing here isolates (gvisor: %.120s; bwrap: %.120s): install "
				"bubblewrap or gVisor, or write out runtime none",
				strong.msg, weak.msg);
		return rt;
	}
	switch (kind) {
	case SB_HOST_RUNTIME_NONE: return sb_runtime_none_open(o, err);
	case SB_HOST_RUNTIME_BWRAP: return sb_runtime_bwrap_open(o, err);
	case SB_HOST_RUNTIME_GVISOR: return sb_runtime_gvisor_open(o, err);
	default: break;
	}
	(void)sb_fail(err, SB_E_INVAL, "unknown container_runtime %d", (int)kind);
	return NULL;
}

int
sb_runtime_network_check(struct sb_runtime *rt, const struct sb_host_opts *o,
	enum sb_host_network net, struct sb_error *err)
{
	if (net == SB_HOST_NET_DEFAULT)
		return 0;
	if (!(rt->ops->networks & (1u << net)))
		return sb_fail(err, SB_E_UNSUPPORTED, "network %s: runtime %s cannot enforce it",
			sb_host_network_name(net), rt->ops->name);
	if (net == SB_HOST_NET_HOST && rt->ops->isolates && !o->allow_host_network)
		return sb_fail(err, SB_E_DENIED,
			"network host: this host does not allow it (allow-host-network)");
	if (net == SB_HOST_NET_OUTBOUND)
		return rt->ops->outbound(rt, err);
	if (net == SB_HOST_NET_SANDBOX && !o->sandbox_netns)
		return sb_fail(err, SB_E_UNSUPPORTED,
			"network sandbox: this host has none prepared (sandbox-netns)");
	return 0;
}

static bool
same_key(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return strncmp(a, b, n + 1) == 0;
}

/* The mark comes first, where it is found soonest. */
int
sb_runtime_env(const struct sb_runtime_cmd *cmd, const char *const *fixed, struct sb_strlist *env,
	struct sb_error *err)
{
	sb_strlist_addf(env, "%s=%s", SB_PROCTREE_MARK, cmd->mark);
	for (size_t i = 0; cmd->env && cmd->env[i]; i++)
		if (!sb_str_starts(cmd->env[i], SB_PROCTREE_MARK "="))
			sb_strlist_add(env, cmd->env[i]);
	for (size_t i = 0; fixed[i]; i++) {
		bool given = false;

		for (size_t j = 0; cmd->env && cmd->env[j] && !given; j++)
			given = same_key(fixed[i], cmd->env[j]);
		if (!given)
			sb_strlist_add(env, fixed[i]);
	}
	return sb_strlist_check(env, err);
}

uid_t
sb_runtime_owner(const struct sb_host_opts *o, const char *workspace)
{
	struct stat st;

	if (!o->session_uid_count || lstat(workspace, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	return st.st_uid >= o->session_uid_first &&
			st.st_uid - o->session_uid_first < o->session_uid_count ?
		st.st_uid :
		0;
}

char *
sb_runtime_program(const char *name)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/'))
		return access(name, X_OK) == 0 ? strdup(name) : NULL;
	for (path = path && *path ? path : DEFAULT_PATH; *path;) {
		const char *colon = strchrnul(path, ':');
		char *file = *path == '/' ?
			sb_str_printf("%.*s/%s", (int)(colon - path), path, name) :
			NULL;

		if (file && access(file, X_OK) == 0)
			return file;
		free(file);
		path = *colon ? colon + 1 : colon;
	}
	return NULL;
}

/* Named, beside the running program (one up from libtool's place), or installed. */
char *
sb_runtime_helper(const struct sb_host_opts *o)
{
	const char *named = o->box_path ? o->box_path : getenv("SB_BOX");
	char dir[PATH_MAX];
	ssize_t n;

	if (named && *named)
		return access(named, X_OK) == 0 ? strdup(named) : NULL;
	n = readlink("/proc/self/exe", dir, sizeof dir - 1);
	if (n > 0) {
		char *slash, *path;

		dir[n] = '\0';
		for (int up = 0; up < 2 && (slash = strrchr(dir, '/')); up++) {
			*slash = '\0';
			path = sb_str_printf("%s/sb-box", dir);
			if (path && access(path, X_OK) == 0)
				return path;
			free(path);
		}
	}
	return access(SB_PKGLIBEXECDIR "/sb-box", X_OK) == 0 ? strdup(SB_PKGLIBEXECDIR "/sb-box") :
							       NULL;
}

char *
sb_runtime_helper_of(const struct sb_host_opts *o, const char *name)
{
	sb_autofree char *box = sb_runtime_helper(o);
	char *slash = box ? strrchr(box, '/') : NULL;
	char *path = slash ? sb_str_printf("%.*s/%s", (int)(slash - box), box, name) : NULL;

	if (path && access(path, X_OK) == 0)
		return path;
	free(path);
	return NULL;
}
