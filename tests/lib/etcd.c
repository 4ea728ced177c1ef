/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/lib/etcd.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/file.h>
#include <base/path.h>
#include <base/spawn.h>
#include <base/str.h>

static int
run_script(const char *const *words, struct sb_buf *out, struct sb_buf *err_out)
{
	const char *src = getenv("SB_TOP_SRCDIR");
	sb_autofree char *script = sb_str_printf("%s/tests/lib/etcd.sh", src ? src : ".");
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	const char *argv[40] = { "sh", script };
	size_t n = 2;

	for (; *words && n < 39; words++)
		argv[n++] = *words;
	o.search_path = true;
	return sb_child_run(argv, &o, NULL, 0, out, err_out, NULL, sb_deadline_in(120000), NULL);
}

static void
read_endpoints(struct test_etcd *t)
{
	sb_autofree char *path = sb_str_printf("%s/endpoints", t->dir);
	sb_auto(sb_buf) struct sb_buf b;
	char *at = NULL;

	sb_buf_init(&b, 0);
	if (sb_file_read(AT_FDCWD, path, 4096, &b, NULL) < 0)
		return;
	for (char *p = strtok_r((char *)b.data, "\n", &at); p && t->n < TEST_ETCD_MAX;
		p = strtok_r(NULL, "\n", &at)) {
		(void)snprintf(t->text[t->n], sizeof t->text[t->n], "%s", p);
		t->endpoint[t->n] = t->text[t->n];
		t->n++;
	}
}

bool
test_etcd_start(struct test_etcd *t, int members, const char *const *args, bool *skip, char *why,
	size_t size)
{
	const char *tmp = getenv("TMPDIR");
	sb_auto(sb_buf) struct sb_buf out;
	sb_auto(sb_buf) struct sb_buf err;
	const char *words[32] = { "start", t->dir };
	char count[16];
	size_t n = 3;
	int r;

	sb_buf_init(&out, 65536);
	sb_buf_init(&err, 65536);
	memset(t, 0, sizeof *t);
	*skip = false;
	(void)snprintf(t->dir, sizeof t->dir, "%s/sbetcd.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(t->dir)) {
		(void)snprintf(why, size, "mkdtemp failed");
		return false;
	}
	(void)snprintf(count, sizeof count, "%d", members);
	words[2] = count;
	for (; args && *args && n < 31; args++)
		words[n++] = *args;
	r = run_script(words, &out, &err);
	if (r != 0) {
		*skip = r == 77;
		(void)snprintf(why, size, "%.*s",
			(int)strcspn((char *)(r == 77 ? out.data : err.data), "\n"),
			(char *)(r == 77 ? out.data : err.data));
		return false;
	}
	read_endpoints(t);
	return true;
}

bool
test_etcd_do(const struct test_etcd *t, const char *verb, int member)
{
	char number[16];
	const char *words[] = { verb, t->dir, number, NULL };

	(void)snprintf(number, sizeof number, "%d", member);
	return run_script(words, NULL, NULL) == 0;
}

void
test_etcd_stop(struct test_etcd *t)
{
	const char *words[] = { "stop", t->dir, NULL };
	sb_autoclose int parent = -1;
	char *name;

	if (!t->dir[0])
		return;
	(void)run_script(words, NULL, NULL);
	name = strrchr(t->dir, '/');
	*name++ = '\0';
	parent = sb_path_open_root(t->dir, NULL);
	if (parent >= 0)
		(void)sb_path_remove_tree(parent, name, NULL);
	t->dir[0] = '\0';
}
