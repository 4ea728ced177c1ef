/* SPDX-License-Identifier: MIT */
/*
 * Prepares a sandbox, syncs this directory in, runs a command, syncs back, destroys. example
 * BACKEND [OPTION=VALUE]...
 */
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
	struct sb_sandbox *box = NULL;
	struct sb_handle *run = NULL;
	struct sb_error err = { 0 };
	enum sb_backend backend;

	opts.registry = sb_registry_builtin(NULL, &err);
	struct sb_keeper *keeper = opts.registry ? sb_keeper_new(&opts, &err) : NULL;
	bool ok = keeper && sb_backend_parse(argc > 1 ? argv[1] : "local", &backend, &err) == 0 &&
		sb_profile_default(backend, "example", &profile, &err) == 0;
	for (int i = 2; ok && i < argc; i++)
		ok = sb_texts_add(&profile.options, argv[i], &err) == 0;
	start.profile = &profile, start.local_root = ".", spec.argv = cmd;
	ok = ok &&
		sb_sandbox_start(keeper, &start, NULL, &box, NULL, &err) ==
			0; /* prepares and syncs in */
	if (ok &&
		(sb_sandbox_launch(box, &spec, NULL, &run, &err) < 0 ||
			sb_handle_wait(run, NULL, &end, &err) < 0))
		fprintf(stderr, "%s\n", err.msg);
	sb_handle_free(run);
	ok = ok &&
		sb_sandbox_stop(box, NULL, NULL, &back, &err) ==
			0; /* syncs back; destroys after that only */
	if (ok)
		printf("exit %d, %d files back, %s\n", end.code, (int)back.files_synced,
			sb_life_name(sb_sandbox_state(box)->life));
	else
		fprintf(stderr, "%s\n", err.msg);
	sb_sync_result_free(&back), sb_sandbox_free(box), sb_keeper_free(keeper);
	sb_profile_free(&profile), sb_registry_free(opts.registry);
	return ok ? end.code : 1;
}
