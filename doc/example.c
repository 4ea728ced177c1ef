/* SPDX-License-Identifier: MIT */
/*
 * Runs a command in a sandbox that has a copy of this directory, and brings the work back:
 *
 *     example BACKEND [OPTION=VALUE]...
 *     example ssh host=box user=me
 *
 * Built outside the tree:  cc example.c $(pkg-config --cflags --libs libsandbox)
 */
#include <stdio.h>

#include <sb/session.h>

/* What runs in the sandbox. */
static const char *const command[] = { "sh", "-c", "echo hello >>greeting", NULL };

/* Which sandbox: a backend and its options, as a profile in a configuration file would say. */
static int
choose(struct sb_profile *profile, int argc, char **argv, struct sb_error *err)
{
	enum sb_backend backend;
	int r = sb_backend_parse(argc > 1 ? argv[1] : "local", &backend, err);

	if (r == 0)
		r = sb_profile_default(backend, "example", profile, err);
	for (int i = 2; r == 0 && i < argc; i++)
		sb_strlist_put(&profile->options, argv[i]);
	return r;
}

/* Launches the command and waits for its end. Returns its exit status, or an error. */
static int
run(struct sb_sandbox *sandbox, struct sb_error *err)
{
	struct sb_launch_spec spec = SB_LAUNCH_SPEC_INIT;
	struct sb_ended end = { 0 };
	struct sb_handle *handle = NULL;
	int r;

	spec.argv = command;
	r = sb_sandbox_launch(sandbox, &spec, NULL, &handle, err);
	if (r == 0)
		r = sb_handle_wait(handle, NULL, &end, err);
	sb_handle_free(handle);
	return r < 0 ? r : end.code;
}

/*
 * The life of one sandbox. Once it has started, it is stopped whatever happened: that syncs back
 * what there is, and only then destroys it.
 */
static int
work(struct sb_keeper *keeper, const struct sb_profile *profile, struct sb_error *err)
{
	struct sb_start_opts start = SB_START_OPTS_INIT;
	struct sb_sync_result back = { 0 };
	struct sb_sandbox *sandbox = NULL;
	int status, r;

	start.profile = profile;
	start.local_root = ".";
	r = sb_sandbox_start(keeper, &start, NULL, &sandbox, NULL, err);
	if (r < 0)
		return r;

	status = run(sandbox, err);
	/* An error of the command is worth more than one of the end: it is kept. */
	r = sb_sandbox_stop(sandbox, NULL, NULL, &back, status < 0 ? NULL : err);
	if (r == 0 && status >= 0)
		printf("exit %d, %llu files back, %s\n", status,
			(unsigned long long)back.files_synced,
			sb_life_name(sb_sandbox_state(sandbox)->life));
	sb_sync_result_free(&back);
	sb_sandbox_free(sandbox);
	return status < 0 ? status : r < 0 ? r : status;
}

int
main(int argc, char **argv)
{
	struct sb_keeper_opts opts = SB_KEEPER_OPTS_INIT; /* keeps sandboxes on record */
	struct sb_profile profile = { 0 };
	struct sb_keeper *keeper = NULL;
	struct sb_error err = { 0 };
	int r = choose(&profile, argc, argv, &err);

	if (r == 0) {
		opts.registry = sb_registry_builtin(NULL, &err);
		keeper = opts.registry ? sb_keeper_new(&opts, &err) : NULL;
		r = keeper ? work(keeper, &profile, &err) : err.code;
	}
	if (r < 0)
		fprintf(stderr, "example: %s\n", err.msg);
	sb_keeper_free(keeper);
	sb_registry_free(opts.registry);
	sb_profile_free(&profile);
	return r < 0 ? 1 : r;
}
