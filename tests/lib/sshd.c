/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/lib/sshd.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/file.h>
#include <base/path.h>
#include <base/spawn.h>
#include <base/str.h>

static int
run_script(const char *verb, const char *dir, const char *account, const char *const *lines,
	struct sb_buf *out, struct sb_buf *err_out)
{
	const char *src = getenv("SB_TOP_SRCDIR");
	sb_autofree char *script = sb_str_printf("%s/tests/lib/sshd.sh", src ? src : ".");
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	const char *argv[40] = { "sh", script, verb, dir };
	size_t n = 4;

	for (; lines && *lines && n < 39; lines++)
		argv[n++] = *lines;
	if (account)
		(void)setenv("SSHD_ACCOUNT", account, 1);
	else
		(void)unsetenv("SSHD_ACCOUNT");
	o.search_path = true;
	return sb_child_run(argv, &o, NULL, 0, out, err_out, NULL, sb_deadline_in(60000), NULL);
}

static void
read_word(const struct test_sshd *s, const char *name, char *out, size_t size)
{
	sb_auto(sb_buf) struct sb_buf b;

	sb_buf_init(&b, 0);
	*out = '\0';
	if (sb_file_read(AT_FDCWD, test_sshd_path(s, name), 4096, &b, NULL) < 0)
		return;
	(void)snprintf(out, size, "%.*s", (int)strcspn((char *)b.data, "\n"), (char *)b.data);
}

bool
test_sshd_start(struct test_sshd *s, const char *verb, const char *account,
	const char *const *lines, bool *skip, char *why, size_t size)
{
	const char *tmp = getenv("TMPDIR");
	sb_auto(sb_buf) struct sb_buf out;
	sb_auto(sb_buf) struct sb_buf err;
	char port[16];
	int r;

	sb_buf_init(&out, 4096);
	sb_buf_init(&err, 4096);
	memset(s, 0, sizeof *s);
	(void)snprintf(s->dir, sizeof s->dir, "%s/sbsshd.XXXXXX", tmp ? tmp : "/tmp");
	*skip = false;
	if (!mkdtemp(s->dir)) {
		(void)snprintf(why, size, "mkdtemp failed");
		return false;
	}
	r = run_script(verb, s->dir, account, lines, &out, &err);
	if (r != 0) {
		*skip = r == 77;
		(void)snprintf(why, size, "%.*s",
			(int)strcspn((char *)(r == 77 ? out.data : err.data), "\n"),
			(char *)(r == 77 ? out.data : err.data));
		return false;
	}
	/*
	 * Making keys takes longer than everything else: the first server's serve the others too.
	 */
	if (strcmp(verb, "start") == 0)
		(void)setenv("SSHD_KEYS", s->dir, 0);
	read_word(s, "port", port, sizeof port);
	read_word(s, "user", s->user, sizeof s->user);
	s->port = (int)strtol(port, NULL, 10);
	(void)snprintf(s->known, sizeof s->known, "%s/known_hosts", s->dir);
	(void)snprintf(s->key, sizeof s->key, "%s/id_ed25519", s->dir);
	return true;
}

void
test_sshd_stop(struct test_sshd *s)
{
	sb_autoclose int parent = -1;
	char *name;

	if (!s->dir[0])
		return;
	if (getenv("SSHD_KEYS") && strcmp(getenv("SSHD_KEYS"), s->dir) == 0)
		(void)unsetenv("SSHD_KEYS");
	(void)run_script("stop", s->dir, NULL, NULL, NULL, NULL);
	name = strrchr(s->dir, '/');
	*name++ = '\0';
	parent = sb_path_open_root(s->dir, NULL);
	if (parent >= 0)
		(void)sb_path_remove_tree(parent, name, NULL);
	s->dir[0] = '\0';
}

void
test_sshd_opts(struct test_sshd *s, struct sb_ssh_opts *o)
{
	*o = (struct sb_ssh_opts)SB_SSH_OPTS_INIT;
	s->known_list[0] = s->known;
	s->key_list[0] = s->key;
	o->host = "127.0.0.1";
	o->port = s->port;
	o->user = s->user;
	o->known_hosts = s->known_list;
	o->n_known_hosts = 1;
	o->identities = s->key_list;
	o->n_identities = 1;
}

const char *
test_sshd_path(const struct test_sshd *s, const char *name)
{
	static char bufs[8][320];
	static unsigned next;
	char *buf = bufs[next++ % 8];

	(void)snprintf(buf, sizeof bufs[0], "%s/%s", s->dir, name);
	return buf;
}
