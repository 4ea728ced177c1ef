/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <provider/provider.h>

#include <string.h>
#include <sys/stat.h>

/* What every provider checks and fills alike. */

int
sb_provider_check_request(const struct sb_prepare_request *req, enum sb_backend backend,
	bool enforces_network, struct sb_error *err)
{
	const struct sb_network *n = &req->profile->network;
	const char *const *d = req->local_dirs;
	struct stat st;

	if (req->profile->backend != backend)
		return sb_fail(err, SB_E_BACKEND_INVALID,
			"the profile \"%s\" is for backend %s, not for %s",
			req->profile->name ? req->profile->name : "",
			sb_backend_name(req->profile->backend), sb_backend_name(backend));
	if (n->required && !enforces_network)
		return sb_fail(err, SB_E_NETWORK_POLICY,
			"backend %s cannot enforce a network policy, and the profile requires one",
			sb_backend_name(backend));
	for (const char *path = req->local_root; path; path = d ? *d++ : NULL) {
		if (stat(path, &st) < 0)
			return sb_fail_errno(err, "%s", path);
		if (!S_ISDIR(st.st_mode))
			return sb_fail(err, SB_E_INVAL, "%s is no directory", path);
	}
	return 0;
}

int
sb_prepared_launch(const struct sb_prepare_request *req, struct sb_prepared *out,
	struct sb_error *err)
{
	int r = 0;

	out->launch = (struct sb_launch_spec)SB_LAUNCH_SPEC_INIT;
	if (req->agent_command)
		r = sb_texts_add(&out->keep, req->agent_command, err);
	if (r == 0)
		r = sb_texts_copy(req->agent_env, &out->keep_env, err);
	if (r < 0)
		return r;
	out->launch.command = out->keep ? out->keep[0] : NULL;
	out->launch.cwd = out->state.runtime_root;
	out->launch.dirs = (const char *const *)out->state.runtime_dirs;
	out->launch.env = (const char *const *)out->keep_env;
	return 0;
}
