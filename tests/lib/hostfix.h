/* SPDX-License-Identifier: MIT */
#ifndef SB_TESTS_HOSTFIX_H
#define SB_TESTS_HOSTFIX_H

#include <stdbool.h>

#include <sb/host-snapshot.h>
#include <sb/host.h>

#include "tests/lib/tmpdir.h"

/*
 * A host to test with: on ZFS when SB_TEST_POOL names a pool (with `POOL/bases/img@initial`, see
 * tests/lib/zfs.sh), on the storage SB_TEST_STORAGE in the directory SB_TEST_PLACE (see
 * tests/lib/loop.sh), else on local-disk, with the same base image; in the runtime SB_TEST_RUNTIME
 * names, else none. Every test has its own sessions and state.
 */
struct hostfix {
	struct tmpdir t;
	bool zfs;
	bool snaps; /* the storage has snapshots */
	bool quota;
	char bases[300], sessions[300]; /* datasets or directories */
	char state_dir[300];
	const char *base; /* of the image: holds `hello` ("hello\n"), `dir/deep` and the symlink
			     `link` */
	struct sb_host_opts o;
	struct sb_host *h;
	struct sb_error err;
};

bool hostfix_is_zfs(void);
/* Of the storage that SB_TEST_POOL or SB_TEST_STORAGE choose. */
bool hostfix_has_snapshots(void);
const char *hostfix_storage(void);
int hostfix_setup(void **state);
int hostfix_teardown(void **state);
/* The options without opening. */
void hostfix_prepare(struct hostfix *f);
/* Opens with `f->o`; the test fails when it does not work. */
void hostfix_open(struct hostfix *f);
/* Closes without a shutdown, as a crash would leave it, and opens again. */
void hostfix_reopen(struct hostfix *f);

/* A new session from the base image; `id` NULL: its name goes to the result only. */
void hostfix_create(struct hostfix *f, const char *id, struct sb_host_session *out);
void hostfix_session(struct hostfix *f, const char *id);
/* Changes something and ends a turn, which is number `want`. */
void hostfix_turn(struct hostfix *f, const char *id, uint64_t want);
uint64_t hostfix_turns(struct hostfix *f, const char *id);
/* The names of its snapshots, joined by spaces, in a static buffer. */
const char *hostfix_snaps(struct hostfix *f, const char *id);
enum sb_host_state hostfix_state(struct hostfix *f, const char *id);
/* Where a file of the session is, in a static buffer of the calling thread. */
const char *hostfix_path(struct hostfix *f, const char *id, const char *name);
void hostfix_write(struct hostfix *f, const char *id, const char *name, const char *text);
/* Whether the file holds exactly `text` (NULL: is not there). */
bool hostfix_holds(struct hostfix *f, const char *id, const char *name, const char *text);
/* Runs a command, exit code. */
int hostfix_run(const char *const *argv);
/* How many workspaces the storage has, left-overs included. */
size_t hostfix_storage_count(struct hostfix *f);

/* The output of a command in a session; `out` may be NULL. Its exit code. */
int hostfix_bash(struct hostfix *f, const char *session, const char *cmd, char *out, size_t size);

#endif
