/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/run/run.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <base/file.h>
#include <base/str.h>
#include <base/work.h>
#include <sync/remote/conn.h>
#include <sync/run/run-priv.h>

void
sb_run_start(struct sb_run *run)
{
	sb_step_start(&run->clock, run->res, SB_STEP_CONNECT);
	run->before = sb_work_under(run->o->cancel);
	run->far.max_entries = run->o->max_entries;
}

void
sb_run_step(struct sb_run *run, enum sb_step step)
{
	sb_step_next(&run->clock, step);
	run->progress.step = step;
	if (run->o->progress && !run->early)
		run->o->progress(&run->progress, run->o->progress_arg);
}

void
sb_run_expect(struct sb_run *run, const struct sb_plan *plan)
{
	run->progress.files = run->progress.bytes = 0;
	run->progress.files_total = plan->n_data;
	run->progress.bytes_total = plan->data_bytes;
}

void
sb_run_progress(uint64_t files, uint64_t bytes, void *arg)
{
	struct sb_run *run = arg;
	struct sb_progress *p = &run->progress;

	/* What was asked for again counts once. */
	p->files = files < p->files_total ? files : p->files_total;
	p->bytes = bytes < p->bytes_total ? bytes : p->bytes_total;
	if (run->o->progress)
		run->o->progress(p, run->o->progress_arg);
}

void
sb_run_end(struct sb_run *run)
{
	sb_step_stop(&run->clock);
	(void)sb_work_under(run->before);
	run->before = NULL;
	free(run->source);
	sb_exchange_free(&run->far);
	sb_replica_free(run->local);
	sb_rules_free(run->rules);
	run->source = NULL;
	run->local = NULL;
	run->rules = NULL;
}

static int
by_path(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Is `path` in the sorted list, or beneath a member? `path` is written to and left as it was. */
static bool
covered(char *path, const char *const *sorted, size_t n)
{
	for (char *p = path;; p++) {
		char was = *(p = strchrnul(p, '/'));
		bool hit;

		*p = '\0';
		hit = bsearch(&path, sorted, n, sizeof *sorted, by_path) != NULL;
		*p = was;
		if (hit || !was)
			return hit;
	}
}

int
sb_run_keep_unseen(struct sb_diff *d, const struct sb_skipped *v, size_t n, struct sb_error *err)
{
	sb_autofree const char **sorted = n ? calloc(n, sizeof *sorted) : NULL;
	size_t kept = 0;
	int r = 0;

	if (!n)
		return 0;
	if (!sorted)
		return sb_fail(err, SB_E_NOMEM, "list of skipped entries: out of memory");
	for (size_t i = 0; i < n; i++)
		sorted[i] = v[i].path;
	qsort(sorted, n, sizeof *sorted, by_path);
	for (size_t i = 0; r == 0 && i < d->n; i++) {
		sb_autofree char *path = d->v[i].del ? strdup(d->v[i].path) : NULL;

		if (d->v[i].del && !path)
			return sb_fail(err, SB_E_NOMEM, "list of skipped entries: out of memory");
		if (!path || !covered(path, sorted, n))
			d->v[kept++] = d->v[i];
		r = sb_work_alive(err);
	}
	if (r == 0)
		d->n = kept;
	return r;
}

const char *
sb_run_source(struct sb_run *run, const char *path)
{
	const struct sb_conflict *best = NULL;
	size_t len = 0;

	/* Something in a directory that lies aside may lie aside once more: the longest name. */
	for (size_t i = 0; run->rec && i < run->rec->n_conflicts; i++) {
		const struct sb_conflict *c = &run->rec->conflicts[i];
		size_t n = c->saved_as ? strlen(c->saved_as) : 0;

		if (n > len && strncmp(path, c->saved_as, n) == 0 && (path[n] == '/' || !path[n])) {
			best = c;
			len = n;
		}
	}
	if (!best || !path[len])
		return best ? best->path : NULL;
	free(run->source);
	run->source = sb_str_printf("%s%s", best->path, path + len);
	return run->source;
}

int
sb_run_send_failed(struct sb_run *run, int code, struct sb_error *err)
{
	int told;

	if (code != SB_E_CLOSED && code != SB_E_SYS)
		return code;
	told = sb_wire_last_words(run->link->w, 10000, err);
	return told < 0 ? told : code;
}

/* A pattern that matches this directory beneath the root and nothing else. */
static char *
exact_pattern(const char *path)
{
	char *s = malloc(2 * strlen(path) + 3), *p = s;

	if (!s)
		return NULL;
	*p++ = '/';
	for (; *path; path++) {
		if (strchr("*?[]!# \\", *path))
			*p++ = '\\';
		*p++ = *path;
	}
	*p++ = '/';
	*p = '\0';
	return s;
}

static int
exclude_state(const struct sb_sync_opts *o, const char *root, struct sb_rules *rules,
	struct sb_error *err)
{
	sb_autofree char *dir = o->state_dir ? strdup(o->state_dir) : sb_replica_state_dir(NULL);
	sb_autofree char *real = dir ? realpath(dir, NULL) : NULL, *top = realpath(root, NULL);
	sb_autofree char *pattern = NULL;
	size_t n = top ? strlen(top) : 0;

	/* At the root of everything the slash is there already. */
	n -= n == 1;
	if (!real || !top || strncmp(real, top, n) != 0 || real[n] != '/' || !real[n + 1])
		return 0;
	pattern = exact_pattern(real + n + 1);
	return pattern ? sb_rules_add(rules, SB_RULES_COMMAND, pattern, err) :
			 sb_fail(err, SB_E_NOMEM, "exclude rules: out of memory");
}

int
sb_run_add_rules(const struct sb_sync_opts *o, const char *root, struct sb_rules *rules,
	struct sb_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && o->exclude_from && o->exclude_from[i]; i++) {
		sb_auto(sb_buf) struct sb_buf b = { 0 };

		sb_buf_init(&b, 0);
		r = sb_file_read(AT_FDCWD, o->exclude_from[i], 1u << 20, &b, err);
		if (r == 0)
			r = sb_rules_add_file(rules, SB_RULES_FROM_FILE, "", (const char *)b.data,
				b.len, err);
		if (r < 0)
			return sb_wrap(err, r, "--exclude-from %s", o->exclude_from[i]);
	}
	for (size_t i = 0; r == 0 && o->exclude && o->exclude[i]; i++)
		r = sb_rules_add(rules, SB_RULES_COMMAND, o->exclude[i], err);
	return r < 0 ? r : exclude_state(o, root, rules, err);
}

int
sb_run_open_local(struct sb_run *run, const char *root, const uint8_t pair[16], bool create,
	bool readonly, struct sb_error *err)
{
	struct sb_replica_opts o = SB_REPLICA_OPTS_INIT;

	sb_run_step(run, SB_STEP_SCAN);
	o.root = root;
	o.state_dir = run->o->state_dir;
	o.role = "local";
	memcpy(o.pair, pair, sizeof o.pair);
	o.create = create;
	o.readonly = readonly;
	o.recall = run->o->conn ? sb_conn_recall(run->o->conn) : NULL;
	o.cancel = run->o->cancel;
	o.log = run->o->log;
	run->local = sb_replica_open(&o, err);
	return run->local ? 0 : err ? err->code : SB_E_SYS;
}
