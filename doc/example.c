/* SPDX-License-Identifier: MIT */
/* example BACKEND [OPTION=VALUE]...: runs a command in a sandbox that has this directory. */
#include <stdio.h>
#include <sb/session.h>

int
main(int argc, char **argv)
{
	const char *cmd[] = { "sh", "-c", "echo hello >>greeting", NULL };
	struct sb_profile profile = { 0 };
	struct sb_keeper_opts opts = SB_KEEPER_OPTS_INIT;
	struct sb_start_opts start = SB_START_OPTS_INIT;
	struct sb_launch_spec spec = SB_LAUNCH_SPEC_INIT;
	struct sb_sync_result back = { 0 };
	struct sb_ended end = { 0 };
	struct sb_sandbox *sandbox = NULL;
	struct sb_handle *run = NULL;
	struct sb_error err = { 0 };
	enum sb_backend backend;

	opts.registry = sb_registry_builtin(NULL, &err);
	struct sb_keeper *keeper = opts.registry ? sb_keeper_new(&opts, &err) : NULL;
	bool ok = keeper && sb_backend_parse(argc > 1 ? argv[1] : "local", &backend, &err) == 0;
	ok = ok && sb_profile_default(backend, "example", &profile, &err) == 0;
	for (int i = 2; ok && i < argc; i++)
		sb_strlist_put(&profile.options, argv[i]);
	start.profile = &profile, start.local_root = ".", spec.argv = cmd;
	/* Prepares and syncs in; runs; syncs back, and destroys only after that. */
	ok = ok && sb_sandbox_start(keeper, &start, NULL, &sandbox, NULL, &err) == 0;
	bool ran = ok && sb_sandbox_launch(sandbox, &spec, NULL, &run, &err) == 0;
	ran = ran && sb_handle_wait(run, NULL, &end, &err) == 0;
	sb_handle_free(run);
	ok = ok && sb_sandbox_stop(sandbox, NULL, NULL, &back, ran ? &err : NULL) == 0;
	if (ok && ran)
		printf("exit %d, %d files back, %s\n", end.code, (int)back.files_synced,
			sb_life_name(sb_sandbox_state(sandbox)->life));
	sb_sync_result_free(&back), sb_sandbox_free(sandbox), sb_keeper_free(keeper);
	sb_profile_free(&profile), sb_registry_free(opts.registry);
	return ok && ran ? end.code : (fprintf(stderr, "%s\n", err.msg), 1);
}
