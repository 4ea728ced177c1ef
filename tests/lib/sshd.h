/* SPDX-License-Identifier: MIT */
#ifndef SB_TESTS_SSHD_H
#define SB_TESTS_SSHD_H

#include <stdbool.h>

#include <sync/ssh/ssh.h>

/* A real SSH server started by tests/lib/sshd.sh, in a folder of its own that goes with it. */
struct test_sshd {
	char dir[200];
	char user[64];
	int port;
	char known[256]; /* DIR/known_hosts */
	char key[256];   /* DIR/id_ed25519 */
	const char *known_list[1];
	const char *key_list[1];
};

/*
 * `verb` is "start" or "start-dropbear", `account` NULL or the name of an account of its own (needs
 * root), `lines` NULL or more configuration, NULL-terminated. True when it runs; else `why` says
 * why not, and *skip whether that is a matter of this machine.
 */
bool test_sshd_start(struct test_sshd *s, const char *verb, const char *account,
	const char *const *lines, bool *skip, char *why, size_t size);
void test_sshd_stop(struct test_sshd *s);

/* Options that log in there. The strings belong to `s`. */
void test_sshd_opts(struct test_sshd *s, struct sb_ssh_opts *o);

/* "DIR/name" in a static buffer (a few at a time). */
const char *test_sshd_path(const struct test_sshd *s, const char *name);

#endif
