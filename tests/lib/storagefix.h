/* SPDX-License-Identifier: MIT */
#ifndef SB_TESTS_STORAGEFIX_H
#define SB_TESTS_STORAGEFIX_H

#include <host/storage/storage.h>

#include "tests/lib/tmpdir.h"

/*
 * A storage to test, on a file system of its own: a loop image of the kind that the test program
 * was compiled for (TEST_STORAGE: "overlay-ext4", "overlay-xfs", "btrfs"). One image a program;
 * every test has its own directories in it. Where that cannot be had, `why` says so and tests skip.
 */
struct storagefix {
	char sessions[400], bases[400];
	struct sb_host_opts o;
	struct sb_storage *st;
	const char *boot; /* NULL: the running one */
	struct sb_error err;
};

extern const char *storagefix_kind;

/* For cmocka's group: the image is made and mounted, and all is gone afterwards. */
int storagefix_group_setup(void **state);
int storagefix_group_teardown(void **state);
/* For each test: *state is the struct storagefix, with the storage open. */
int storagefix_setup(void **state);
int storagefix_teardown(void **state);

/* Where the image is mounted, and its file. NULL: there is none. */
const char *storagefix_place(void);
const char *storagefix_image(void);
/* Closes and opens again. */
void storagefix_reopen(struct storagefix *f);
void storagefix_open(struct storagefix *f);

/* A session from the base image `img`, which has `hello`, `dir/deep` and the symlink `link`. */
void storagefix_create(struct storagefix *f, const char *id);
void storagefix_fork(struct storagefix *f, const char *id, const char *from, const char *snap);
void storagefix_snap(struct storagefix *f, const char *id, const char *snap);
void storagefix_rollback(struct storagefix *f, const char *id, const char *snap);
/* Where a file of the session is, in one of a few static buffers. */
const char *storagefix_path(struct storagefix *f, const char *id, const char *name);
void storagefix_write(struct storagefix *f, const char *id, const char *name, const char *text);
/* Whether the file holds exactly `text` (NULL: is not there). */
bool storagefix_holds(struct storagefix *f, const char *id, const char *name, const char *text);
/* The names of the session's snapshots, joined by spaces, in a static buffer. */
const char *storagefix_snaps(struct storagefix *f, const char *id);
/* Runs a program, exit code; its output is thrown away. */
int storagefix_run(const char *const *argv);

#endif
