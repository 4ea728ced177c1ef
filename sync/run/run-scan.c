/* SPDX-License-Identifier: MIT */
/* The scan and exchange steps of a run: both sides read their trees, under the same rules. */
#include "config.h"

#include <sync/run/run.h>

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <base/file.h>
#include <sync/run/run-priv.h>
#include <sync/scan/gitrules.h>

/*
 * The rules of the last run, when they grew from the same options: the agent can begin to scan with
 * them at once.
 */
static struct sb_rules *
last_rules(struct sb_replica *local, const struct sb_digest *given)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };

	sb_buf_init(&b, 0);
	if (local->statefd < 0 || sb_file_read(local->statefd, "rules", 16u << 20, &b, NULL) < 0 ||
		b.len < 16 || memcmp(b.data, given->b, 16) != 0)
		return NULL;
	return sb_rules_decode(b.data + 16, b.len - 16, NULL);
}

static void
keep_rules(struct sb_replica *local, const struct sb_digest *given, const struct sb_rules *rules)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };

	sb_buf_init(&b, 16u << 20);
	sb_buf_add(&b, given->b, 16);
	if (local->statefd >= 0 && sb_rules_encode(rules, &b, NULL) == 0 && !b.failed)
		(void)sb_file_replace(local->statefd, "rules", b.data, b.len, 0600, NULL);
}

static void
scan_progress(uint64_t entries, uint64_t bytes, uint64_t total, void *arg)
{
	struct sb_run *run = arg;
	struct sb_progress p = { .step = SB_STEP_SCAN,
		.files = entries,
		.bytes = bytes,
		.bytes_total = total };

	if (run->o->progress)
		run->o->progress(&p, run->o->progress_arg);
}

int
sb_run_scan_local(struct sb_run *run, bool source, struct sb_error *err)
{
	struct sb_scan_opts so = SB_SCAN_OPTS_INIT;

	so.rules = run->rules;
	so.collect_sbsyncignore = true;
	so.collect_gitignore = run->o->gitignore && !run->frozen;
	so.checksum = run->o->checksum;
	so.cross_mounts = run->o->cross_mounts;
	so.jobs = run->o->jobs;
	so.lazy_below = source && !run->o->checksum ? 1u << 20 : 0;
	so.progress = scan_progress;
	so.progress_arg = run;
	if (run->local->rootfd >= 0 &&
		(so.collect_gitignore || (run->frozen && sb_rules_has_git(run->rules)))) {
		int r = sb_gitrules_prepare(run->local->rootfd, run->rules, so.collect_gitignore,
			&run->o->log, err);

		if (r < 0)
			return r;
	}
	return sb_replica_scan(run->local, &so, err);
}

static bool
is_empty_dir(const char *path)
{
	struct stat st;
	sb_autoclosedir DIR *d = NULL;
	struct dirent *e;

	if (lstat(path, &st) < 0)
		return errno == ENOENT;
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			return false;
	return d != NULL;
}

/* An ignore file came, went or changed: once more, with the rules that hold now. */
static int
begin_again(struct sb_run *run, struct sb_begin *b, struct sb_error *err)
{
	sb_auto(sb_exchange) struct sb_exchange old = { 0 };
	struct sb_manifest *known = NULL;
	int r = sb_exchange_wait(run->link, sb_digest_known(&b->base) ? &run->local->base : &known,
		NULL, &old, err);

	if (r < 0)
		return r;
	sb_manifest_free(sb_steal(&run->local->base));
	b->base = (struct sb_digest){ 0 };
	b->rules = run->rules_digest;
	return sb_exchange_begin(run->link, b, run->rules, err);
}

/*
 * Starts the agent on its scan with the best rules known, scans here, then makes sure both used the
 * same rules.
 */
int
sb_run_scan_both(struct sb_run *run, struct sb_begin *b, bool source, struct sb_error *err)
{
	const struct sb_rules *asked = sb_run_early_rules(run);
	sb_auto(sb_rules) struct sb_rules *guess = NULL;
	struct sb_digest given, guessed;
	int r = sb_rules_digest(asked, &given, err);

	if (r < 0)
		return r;
	guess = last_rules(run->local, &given);
	r = sb_rules_digest(guess ? guess : asked, &guessed, err);
	if (r < 0)
		return r;
	b->rules = guessed;
	if (run->local->base && sb_digest_eq(&run->local->base_rules, &guessed))
		b->base = run->local->base->id;
	if (!source && is_empty_dir(run->local->root))
		b->flags |= SB_BEGIN_LAZY;
	/*
	 * In a session it is our own agent as well, of a sync that was canceled or killed: the
	 * session's lock is here.
	 */
	if ((run->retry && run->retry->was_lost) || (b->flags & SB_BEGIN_SESSION))
		b->flags |= SB_BEGIN_AGAIN;
	/* A link that is not connected yet connects now. */
	sb_run_step(run, SB_STEP_CONNECT);
	r = sb_exchange_begin(run->link, b, guess ? guess : asked, err);
	if (r < 0)
		return sb_run_send_failed(run, r, err);
	sb_run_step(run, SB_STEP_SCAN);
	r = run->early ? sb_run_early_join(run, err) : sb_run_scan_local(run, source, err);
	if (r < 0)
		return sb_wrap(err, r, "scan %s", run->local->root);
	sb_run_step(run, SB_STEP_EXCHANGE);
	r = sb_rules_digest(run->rules, &run->rules_digest, err);
	if (r == 0 && !sb_digest_eq(&run->rules_digest, &guessed)) {
		keep_rules(run->local, &given, run->rules);
		r = begin_again(run, b, err);
	}
	if (r < 0)
		return r;
	if (!sb_rules_empty(run->rules) && !guess)
		keep_rules(run->local, &given, run->rules);
	return sb_exchange_wait(run->link, &run->local->base, run->local->scan.manifest, &run->far,
		err);
}

/* Whose bytes do not travel in the stream, and so are not hashed on the way. */
static bool
not_streamed(const char *path, const struct sb_entry *e, void *arg)
{
	(void)path;
	(void)arg;
	return !e->size || e->link;
}

int
sb_run_hash_rest(struct sb_run *run, bool based, struct sb_error *err)
{
	struct sb_scan_opts so = SB_SCAN_OPTS_INIT;
	/* What an interrupted run left is found by its digest. */
	bool all = based || run->far.reply.count > 0 || run->far.n_have;
	int r;

	if (!run->local->scan.unhashed)
		return 0;
	sb_run_step(run, SB_STEP_SCAN);
	so.cancel = run->o->cancel;
	so.jobs = run->o->jobs;
	so.progress = scan_progress;
	so.progress_arg = run;
	r = sb_scan_hash_rest(run->local->rootfd, &so, &run->local->scan, all ? NULL : not_streamed,
		NULL, err);
	if (r == 0 && run->local->scan.unhashed)
		r = sb_manifest_finish(run->local->scan.manifest, err);
	return r;
}
