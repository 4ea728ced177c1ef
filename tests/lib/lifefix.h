/* SPDX-License-Identifier: MIT */
#ifndef SB_TESTS_LIFEFIX_H
#define SB_TESTS_LIFEFIX_H

#include <provider/provider.h>
#include <session/session-priv.h>

#include "tests/lib/tmpdir.h"

/*
 * A keeper whose providers write down what they are asked, fail where they are told to, and
 * launch programs that end at once, with the code that their command names.
 */
struct lifefix {
	struct tmpdir tmp;
	struct sb_provider provider; /* backend fly */
	struct sb_provider other;    /* backend daytona */
	struct sb_registry *registry;
	struct sb_keeper *k;
	struct sb_profile profile;
	char seen[8192]; /* kinds of events */
};

/* What the provider knows. Each thread has one of its own. */
struct lifefix_far {
	char asked[4096];         /* what it was asked, in order */
	const char *fail_at;      /* the request that fails; NULL: none */
	const char *die_at;       /* the request during which the process ends; NULL: none */
	bool fail_all;            /* every request fails */
	bool exists;              /* the sandbox is there */
	unsigned brought;         /* files that a sync back brings */
	enum sb_persist ended_as; /* by the last destroy */
	char env[256];            /* of the last launch, secrets last */
	char excludes[256];       /* of the last preparation */
	char left_out[256];       /* exclude patterns of the last sync */
	char found_by[1024];      /* what the last search was told */
	const char *told;         /* the state of its own that a preparation gives; NULL: none */
	int64_t expires;          /* when the access that it gives ends */
};
extern _Thread_local struct lifefix_far lifefix_far;

/* For cmocka_unit_test_setup_teardown: *state is the struct lifefix. */
int lifefix_setup(void **state);
int lifefix_teardown(void **state);
#define LIFEFIX_TEST(f) cmocka_unit_test_setup_teardown(f, lifefix_setup, lifefix_teardown)

/* Starts a sandbox of the profile, which syncs the scratch directory. */
int lifefix_start(struct lifefix *w, const char *id, struct sb_sandbox **out, struct sb_error *err);
/* Launches a program that ends with `code`, and waits for it: its exit code. */
int lifefix_run(struct sb_sandbox *sb, const char *code, struct sb_error *err);
int lifefix_stop(struct sb_sandbox *sb, struct sb_error *err);
/* The sandbox's record says so. */
void lifefix_life_is(struct lifefix *w, const char *id, enum sb_life want);
/* Makes the sandbox one that another process, long dead, owned. */
void lifefix_orphan(struct lifefix *w, const char *id);
/* Recovers one or (NULL) all; `result` (32 bytes) gets the last outcome. */
int lifefix_recover(struct lifefix *w, const char *id, char *result);

#endif
