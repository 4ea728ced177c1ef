/* SPDX-License-Identifier: MIT */
/* sbsync status: one session, what is to be synced, and what to do next. */
#include "config.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bin/common/units.h>
#include <bin/sbsync/options.h>

#define ASK_MS 10000
#define EVERY_MS 2000

/* What a sync would do now. */
struct pending {
	bool asked, known;
	uint64_t to, from, conflicts;
	struct sb_error err;
};

static void
ask(const struct sync_args *a, struct sb_session *s, struct pending *p)
{
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_sync_result res = { 0 };

	*p = (struct pending){ 0 };
	if (s->state == SB_SESSION_STOPPED || s->state == SB_SESSION_STARTING || a->offline ||
		(a->json && !a->pending))
		return;
	p->asked = true;
	o.dry_run = true;
	o.never_ask = true;
	o.max_delete = INT64_MAX;
	o.timeout_ms = a->timeout ? a->timeout : ASK_MS;
	o.cancel = signals_cancel();
	p->known =
		sb_session_sync(s, SB_REASON_TURN, &o, SB_SESSION_AS_STARTED, &res, &p->err) == 0;
	for (size_t i = 0; p->known && i < res.n_changes; i++)
		if (strcmp(res.changes[i].side, "local") == 0)
			p->from++;
		else
			p->to++;
	p->conflicts = res.conflicts.n;
	sb_sync_result_free(&res);
}

static void
ago(int64_t t, char *out, size_t size)
{
	int64_t s = time(NULL) - t;

	if (s < 0)
		(void)snprintf(out, size, "in the future");
	else if (s < 120)
		(void)snprintf(out, size, "%lld s ago", (long long)s);
	else if (s < 7200)
		(void)snprintf(out, size, "%lld min ago", (long long)(s / 60));
	else if (s < 172800)
		(void)snprintf(out, size, "%lld h ago", (long long)(s / 3600));
	else
		(void)snprintf(out, size, "%lld days ago", (long long)(s / 86400));
}

static long long
number(const json_t *o, const char *key)
{
	return (long long)json_integer_value(json_object_get(o, key));
}

static void
show_last_run(const struct sb_session *s)
{
	json_t *run = last_run(s);
	const char *why = json_string_value(json_object_get(run, "error"));
	const char *reason = json_string_value(json_object_get(run, "reason"));
	char size[24];

	if (why)
		(void)printf("last run  %s failed: %s\n", reason ? reason : "it", why);
	else if (run)
		(void)printf(
			"last run  %s: %lld files (%s), %lld deleted, %lld moved, %lld conflicts "
			"in %.2f s\n",
			reason ? reason : "", number(run, "files_synced"),
			unit_bytes((uint64_t)number(run, "bytes_transferred"), size, sizeof size),
			number(run, "files_deleted"), number(run, "files_moved"),
			number(run, "conflicts"), (double)number(run, "duration_ms") / 1000);
	json_decref(run);
}

static void
show_pending(const struct pending *p)
{
	if (!p->asked)
		return;
	if (!p->known)
		(void)printf("pending   not known: %s\n", p->err.msg);
	else if (!p->to && !p->from && !p->conflicts)
		(void)printf("pending   nothing: both sides are the same\n");
	else
		(void)printf("pending   %llu to the other side, %llu from it, %llu conflicts\n",
			(unsigned long long)p->to, (unsigned long long)p->from,
			(unsigned long long)p->conflicts);
}

/* The command that this state asks for. */
static void
show_next(const struct sb_session *s, const struct pending *p, size_t conflicts, int64_t watcher)
{
	const char *n = s->name;

	if (s->state == SB_SESSION_STOPPED || s->state == SB_SESSION_STARTING)
		(void)printf("next      sbsync start --name %s %s %s\n", n, s->pairs[0].local,
			s->pairs[0].remote);
	else if (s->paused)
		(void)printf("next      sbsync resume %s\n", n);
	else if (s->state == SB_SESSION_UNSYNCED || s->state == SB_SESSION_ORPHANED)
		(void)printf("next      sbsync sync %s  (or sbsync stop %s)\n", n, n);
	else if (conflicts)
		(void)printf("next      sbsync conflicts --diff %s\n", n);
	else if (p->known && (p->to || p->from || p->conflicts) && !watcher)
		(void)printf("next      sbsync sync %s  (sbsync diff %s lists what)\n", n, n);
	else if (!watcher)
		(void)printf("next      sbsync watch %s, or sbsync stop %s\n", n, n);
	else
		(void)printf("next      sbsync stop %s, when all is done\n", n);
}

static void
show(struct sb_session *s, const struct pending *p)
{
	size_t conflicts = count_conflicts(s);
	int64_t watcher = sb_session_watcher(s, NULL);
	char t[32], past[32] = "";

	(void)printf("session   %s\nstate     %s%s%s%s\n", s->name, sb_session_state_name(s->state),
		s->paused ? ", paused since " : "",
		s->paused ? time_text(s->paused, t, sizeof t) : "",
		s->state == SB_SESSION_UNSYNCED ? ": the runtime has work that is not here" : "");
	if (s->last_sync)
		ago(s->last_sync, past, sizeof past);
	(void)printf("last sync %s%s%s%s\n", time_text(s->last_sync, t, sizeof t),
		past[0] ? " (" : "", past, past[0] ? ")" : "");
	show_last_run(s);
	show_pending(p);
	(void)printf("conflicts %zu%s%s\n", conflicts, conflicts ? ": sbsync conflicts " : "",
		conflicts ? s->name : "");
	if (watcher)
		(void)printf("watcher   process %lld\n", (long long)watcher);
	else
		(void)printf("watcher   none\n");
	(void)printf("owner     %s\n",
		!s->owner_pid               ? "none" :
			sb_session_owned(s) ? "alive" :
					      "gone");
	for (size_t i = 0; i < s->labels.n; i++)
		(void)printf("label     %s\n", s->labels.v[i]);
	for (size_t i = 0; i < s->n_pairs; i++)
		(void)printf("pair      %s <-> %s\n", s->pairs[i].local, s->pairs[i].remote);
	if (s->last_error)
		(void)printf("error     %s\n", s->last_error);
	show_next(s, p, conflicts, watcher);
}

static void
show_json(const struct sb_session *s, const struct pending *p)
{
	json_t *o = session_json(s), *run = last_run(s);

	json_object_set_new(o, "conflicts_kept", json_integer((json_int_t)count_conflicts(s)));
	json_object_set_new(o, "last_run", run ? run : json_null());
	if (p->asked && p->known)
		json_object_set_new(o, "pending",
			json_pack("{s:I, s:I, s:I}", "to_runtime", (json_int_t)p->to,
				"from_runtime", (json_int_t)p->from, "conflicts",
				(json_int_t)p->conflicts));
	else if (p->asked)
		json_object_set_new(o, "pending_error", json_string(p->err.msg));
	print_json(o);
}

/* Again and again, until a signal comes. */
static int
watch(const struct sync_args *a, int argc, char **argv)
{
	const struct sb_cancel *cancel = signals_cancel();
	struct pollfd stop = { .fd = sb_cancel_fd(cancel), .events = POLLIN };
	int64_t every = a->every > 0 ? a->every : EVERY_MS;

	while (!sb_cancel_requested(cancel)) {
		struct sb_session s = { 0 };
		struct pending p;
		int r = load_session(argc, argv, &s);

		if (r)
			return r;
		ask(a, &s, &p);
		if (!sb_cancel_requested(cancel)) {
			if (isatty(STDOUT_FILENO) && !a->json)
				(void)fputs("\033[H\033[J", stdout);
			if (a->json)
				show_json(&s, &p);
			else
				show(&s, &p);
			if (!isatty(STDOUT_FILENO) && !a->json)
				(void)putchar('\n');
		}
		sb_session_free(&s);
		if (fflush(stdout) != 0)
			return EXIT_FAILED;
		(void)poll(&stop, 1, (int)(every < INT_MAX ? every : INT_MAX));
	}
	return EXIT_DONE;
}

static int
status_verb(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct sb_session s = { 0 };
	struct pending p;
	struct sb_error err = { 0 };
	int r;

	if (a->watch)
		return watch(a, argc, argv);
	r = find_session(argc ? argv[0] : NULL, &s, &err);
	if (r < 0) {
		complain("%s", err.msg);
		return exit_code(r);
	}
	ask(a, &s, &p);
	if (a->json)
		show_json(&s, &p);
	else
		show(&s, &p);
	sb_session_free(&s);
	return EXIT_DONE;
}

static const struct sb_opt options[] = {
	OPT_FLAG(0, "watch", watch, "show it again and again, until Ctrl-C"),
	OPT_TIME(0, "every", every, "TIME", 0, 0, "with --watch: so often (default 2s)"),
	OPT_FLAG(0, "offline", offline, "do not ask the other side what is pending"),
	OPT_FLAG(0, "pending", pending, "with --json: ask it"),
	OPT_TIME(0, "timeout", timeout, "TIME", 0, 0, "ask for so long (default 10s)"),
	OPTIONS_JSON,
	OPTIONS_HELP,
	OPT_END,
};

const struct sb_cmd cmd_status = {
	.name = "status",
	.args = "[SESSION]",
	.help = "show a session, what is pending, and what to do next",
	.opts = options,
	.max_args = 1,
	.run = status_verb,
};
