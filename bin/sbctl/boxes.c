/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <bin/sbctl/box.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include <base/buf.h>
#include <base/str.h>
#include <bin/sbctl/sbctl.h>
#include <provider/provider.h>
#include <session/session-priv.h>

#define LOOK_MS 200 /* how often things of other processes are looked at */
#define STOP_WAIT_MS 60000
#define EVENTS_AT_ONCE 65536

static int
ls(struct box *b, struct sb_error *err)
{
	struct sb_state *v = NULL;
	size_t n = 0, kept = 0;
	int r = sb_keeper_list(b->keeper, &v, &n, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (b->a.all || v[i].life != SB_LIFE_DESTROYED) {
			struct sb_state t = v[kept];

			v[kept++] = v[i];
			v[i] = t;
		}
	box_print_states(b, v, kept);
	sb_states_free(v, n);
	return 0;
}

static int
show(struct box *b, struct sb_error *err)
{
	sb_autofree char *id = box_pick(b, b->a.n ? b->a.v[0] : NULL, err);
	sb_auto(sb_state) struct sb_state s = SB_STATE_INIT;
	int r = id ? sb_keeper_load(b->keeper, id, &s, err) : err->code;

	if (r == 0)
		box_print_state(b, &s);
	return r;
}

static int
sync_verb(struct box *b, struct sb_error *err)
{
	sb_autofree char *id = box_pick(b, b->a.n ? b->a.v[0] : NULL, err);
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };
	struct sb_provider_sync o = SB_PROVIDER_SYNC_INIT;
	int r = id ? sb_sandbox_open(b->keeper, id, &sb, err) : err->code;

	if (r < 0)
		return r;
	o.dry_run = b->a.dry_run;
	o.take_local = b->a.conflict == 1;
	o.take_runtime = b->a.conflict == 2;
	o.max_delete = b->a.max_delete;
	r = sb_sandbox_sync(sb, &o, &b->call, &res, err);
	box_report_sync(b, sb_sandbox_state(sb), &res, r, err, stdout);
	return r < 0 ? r : res.conflicts.n ? BOX_CONFLICTS : 0;
}

/* Asks the process that works with it to stop, and waits until it has. */
static int
stop_owner(struct box *b, struct sb_state *s, struct sb_error *err)
{
	sb_deadline d = sb_deadline_min(b->call.deadline, sb_deadline_in(STOP_WAIT_MS));
	sb_autofree char *id = strdup(s->sandbox_id);
	int r;

	if (!id)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	if (kill((pid_t)s->owner_pid, SIGTERM) < 0 && errno != ESRCH)
		return sb_fail_errno(err, "process %lld, which works with sandbox %s",
			(long long)s->owner_pid, id);
	while (sb_state_owned(s)) {
		struct pollfd p = { sb_cancel_fd(b->cancel), POLLIN, 0 };

		r = sb_check_alive(b->cancel, d, "stop", err);
		if (r < 0)
			return r;
		(void)poll(&p, 1, LOOK_MS);
		sb_state_free(s);
		r = sb_keeper_load(b->keeper, id, s, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int
stop_verb(struct box *b, struct sb_error *err)
{
	sb_autofree char *id = box_pick(b, b->a.n ? b->a.v[0] : NULL, err);
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };
	sb_auto(sb_state) struct sb_state s = SB_STATE_INIT;
	struct sb_stop_opts o = SB_STOP_OPTS_INIT;
	int r = id ? sb_keeper_load(b->keeper, id, &s, err) : err->code;

	if (r == 0 && sb_state_owned(&s))
		r = stop_owner(b, &s, err);
	if (r == 0)
		r = sb_sandbox_open(b->keeper, s.sandbox_id, &sb, err);
	if (r < 0)
		return r;
	o.snapshot = b->a.snapshot ? "end" : NULL;
	o.max_delete = b->a.max_delete;
	r = sb_sandbox_stop(sb, &o, &b->call, &res, err);
	box_report_sync(b, sb_sandbox_state(sb), &res, r, err, stdout);
	return r < 0 ? r : res.conflicts.n ? BOX_CONFLICTS : 0;
}

static int
destroy_verb(struct box *b, struct sb_error *err)
{
	sb_auto(sb_sandbox) struct sb_sandbox *sb = NULL;
	sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };
	int r = sb_sandbox_open(b->keeper, b->a.v[0], &sb, err);

	if (r < 0)
		return r;
	if (sb_state_owned(sb_sandbox_state(sb)))
		return sb_fail(err, SB_E_LOCKED,
			"process %lld works with sandbox %s: sbctl stop %s first",
			(long long)sb_sandbox_state(sb)->owner_pid,
			sb_sandbox_state(sb)->sandbox_id, sb_sandbox_state(sb)->sandbox_id);
	if (b->a.discard && !b->a.quiet && sb_sandbox_state(sb)->life == SB_LIFE_UNSYNCED)
		(void)fprintf(stderr, "sbctl: %s: its work since the last sync is thrown away\n",
			sb_sandbox_state(sb)->sandbox_id);
	r = sb_sandbox_destroy(sb, b->a.discard, &b->call, &res, err);
	box_report_sync(b, sb_sandbox_state(sb), &res, r, err, stdout);
	return r < 0 ? r : res.conflicts.n ? BOX_CONFLICTS : 0;
}

struct recovery {
	struct box *b;
	json_t *all;
};

static void
recovered(const struct sb_state *s, const char *result, const struct sb_sync_result *res,
	const struct sb_error *err, void *arg)
{
	struct recovery *c = arg;

	if (c->all) {
		json_t *o = json_pack("{s:s, s:s, s:s, s:I, s:I}", "sandbox_id", s->sandbox_id,
			"result", result, "state", sb_life_name(s->life), "files_synced",
			(json_int_t)res->files_synced, "conflicts", (json_int_t)res->conflicts.n);

		if (err->code < 0)
			(void)json_object_set_new(o, "error", json_string(err->msg));
		(void)json_array_append_new(c->all, o);
		return;
	}
	if (strcmp(result, "failed") == 0) {
		(void)fprintf(stderr, "sbctl: %s: %s\n", s->sandbox_id, err->msg);
		return;
	}
	if (c->b->a.quiet || (strcmp(result, "nothing") == 0 && !c->b->a.verbose))
		return;
	(void)printf("%s: %s; %llu files synced, %zu conflicts; sandbox %s\n", s->sandbox_id,
		result, (unsigned long long)res->files_synced, res->conflicts.n,
		sb_life_name(s->life));
}

static int
recover_verb(struct box *b, struct sb_error *err)
{
	struct recovery c = { .b = b, .all = b->a.json ? json_array() : NULL };
	int r;

	if (b->a.n && b->a.all)
		return sb_fail(err, SB_E_USAGE, "name a sandbox or say --all, not both");
	r = sb_keeper_recover(b->keeper, b->a.n ? b->a.v[0] : NULL, &b->call, recovered, &c, err);
	if (c.all) {
		(void)json_dumpf(c.all, stdout, JSON_INDENT(2));
		(void)fputc('\n', stdout);
		json_decref(c.all);
	}
	return r < 0 ? r : r > 0 ? BOX_FAILED : 0;
}

/* The events of one sandbox as they grow. */
struct tail {
	char *id;
	int fd;
	struct sb_buf rest; /* a line that is not complete yet */
};

static void
print_event(const struct box *b, const char *line)
{
	json_t *o = b->a.json ? NULL : json_loads(line, 0, NULL);
	const char *error = json_string_value(json_object_get(o, "error"));
	const char *way = json_string_value(json_object_get(o, "direction"));
	json_int_t t = json_integer_value(json_object_get(o, "time_ms"));
	json_int_t ms = json_integer_value(json_object_get(o, "duration_ms"));
	time_t when = (time_t)(t / 1000);
	char text[32] = "", shown[1024];
	struct tm tm;

	if (!o) {
		(void)printf("%s\n", line);
		return;
	}
	if (gmtime_r(&when, &tm))
		(void)strftime(text, sizeof text, "%H:%M:%S", &tm);
	(void)printf("%s.%03d %s %s%s%s", text, (int)(t % 1000),
		json_string_value(json_object_get(o, "sandbox_id")),
		json_string_value(json_object_get(o, "event")), way ? " " : "", way ? way : "");
	if (ms)
		(void)printf(" %lld ms", (long long)ms);
	if (json_object_get(o, "files_synced"))
		(void)printf(" %lld files",
			(long long)json_integer_value(json_object_get(o, "files_synced")));
	if (json_object_get(o, "exit_code"))
		(void)printf(" exit %lld",
			(long long)json_integer_value(json_object_get(o, "exit_code")));
	if (error)
		(void)printf(": %s", sb_escape(error, strlen(error), shown, sizeof shown));
	(void)putchar('\n');
	json_decref(o);
}

static void
print_more(const struct box *b, struct tail *t)
{
	char buf[4096];
	ssize_t n;

	while ((n = read(t->fd, buf, sizeof buf)) > 0) {
		char *end;

		sb_buf_add(&t->rest, buf, (size_t)n);
		while (t->rest.len && (end = memchr(t->rest.data, '\n', t->rest.len))) {
			*end = '\0';
			print_event(b, (const char *)t->rest.data);
			sb_buf_consume(&t->rest, (size_t)(end - (char *)t->rest.data) + 1);
		}
	}
}

/* Opens what has come up since the last look. */
static int
open_tails(struct box *b, const char *only, struct tail **v, size_t *n, struct sb_error *err)
{
	struct sb_state *s = NULL;
	size_t count = 0;
	int r = sb_keeper_list(b->keeper, &s, &count, err);

	for (size_t i = 0; r == 0 && i < count; i++) {
		struct tail t = { .fd = -1 }, *grown;
		bool known = only && strcmp(only, s[i].sandbox_id) != 0;

		for (size_t k = 0; k < *n; k++)
			known = known || strcmp((*v)[k].id, s[i].sandbox_id) == 0;
		if (known)
			continue;
		t.fd = sb_keeper_events_fd(b->keeper, s[i].sandbox_id, err);
		t.id = strdup(s[i].sandbox_id);
		grown = t.id && t.fd >= 0 ? reallocarray(*v, *n + 1, sizeof *grown) : NULL;
		if (!grown) {
			r = t.fd < 0 ? t.fd : sb_fail(err, SB_E_NOMEM, "out of memory");
			free(t.id);
			break;
		}
		sb_buf_init(&t.rest, EVENTS_AT_ONCE);
		*v = grown;
		(*v)[(*n)++] = t;
	}
	sb_states_free(s, count);
	return r;
}

static int
events_verb(struct box *b, struct sb_error *err)
{
	sb_auto(sb_state) struct sb_state s = SB_STATE_INIT;
	struct tail *v = NULL;
	size_t n = 0;
	int r = b->a.n ? sb_keeper_load(b->keeper, b->a.v[0], &s, err) : 0;

	while (r == 0) {
		struct pollfd p = { sb_cancel_fd(b->cancel), POLLIN, 0 };

		r = open_tails(b, s.sandbox_id, &v, &n, err);
		for (size_t i = 0; r == 0 && i < n; i++)
			print_more(b, &v[i]);
		(void)fflush(stdout);
		if (r < 0 || !b->a.follow || ferror(stdout) || sb_deadline_passed(b->call.deadline))
			break;
		(void)poll(&p, 1, LOOK_MS);
		if (sb_cancel_requested(b->cancel))
			break;
	}
	for (size_t i = 0; i < n; i++) {
		(void)close(v[i].fd);
		free(v[i].id);
		sb_buf_free(&v[i].rest);
	}
	free(v);
	return r;
}

#define VERB(noun, fn) \
	static int noun##_main(void *values, int argc, char **argv) \
	{ \
		(void)values; \
		return box_main(&sbctl_##noun, argc, argv, fn); \
	}

VERB(ls, ls)
VERB(show, show)
VERB(sync, sync_verb)
VERB(stop, stop_verb)
VERB(destroy, destroy_verb)
VERB(recover, recover_verb)
VERB(events, events_verb)

static const char *const conflict_words[] = { "keep", "local", "runtime", NULL };

static const struct sb_opt ls_opts[] = {
	{ 'a', "all", SB_OPT_FLAG, BOX_AT(all), NULL, "those that are gone, too", NULL, 0, 0 },
	BOX_COMMON,
};
static const struct sb_opt plain_opts[] = { BOX_COMMON };
static const struct sb_opt sync_opts[] = {
	{ 'n', "dry-run", SB_OPT_FLAG, BOX_AT(dry_run), NULL,
		"tell what would be done, change nothing", NULL, 0, 0 },
	{ 0, "conflict", SB_OPT_CHOICE, BOX_AT(conflict), "SIDE", "keep (both), local or runtime",
		conflict_words, 0, 0 },
	{ 0, "max-delete", SB_OPT_INT, BOX_AT(max_delete), "N", "let a sync delete up to N entries",
		NULL, 0, INT64_MAX },
	BOX_TIMEOUT,
	BOX_COMMON,
};
static const struct sb_opt stop_opts[] = {
	{ 0, "snapshot", SB_OPT_FLAG, BOX_AT(snapshot), NULL, "snapshot it before anything goes",
		NULL, 0, 0 },
	{ 0, "max-delete", SB_OPT_INT, BOX_AT(max_delete), "N",
		"let a sync back delete up to N entries", NULL, 0, INT64_MAX },
	BOX_TIMEOUT,
	BOX_COMMON,
};
static const struct sb_opt destroy_opts[] = {
	{ 0, "discard", SB_OPT_FLAG, BOX_AT(discard), NULL,
		"throw away work that is not synced back", NULL, 0, 0 },
	BOX_TIMEOUT,
	BOX_COMMON,
};
static const struct sb_opt recover_opts[] = {
	{ 'a', "all", SB_OPT_FLAG, BOX_AT(all), NULL, "all of them (as without an ID)", NULL, 0,
		0 },
	BOX_TIMEOUT,
	BOX_COMMON,
};
static const struct sb_opt events_opts[] = {
	{ 'f', "follow", SB_OPT_FLAG, BOX_AT(follow), NULL, "go on until stopped", NULL, 0, 0 },
	BOX_TIMEOUT,
	BOX_COMMON,
};

const struct sb_cmd sbctl_ls = {
	.name = "ls", .args = "", .help = "list sandboxes", .opts = ls_opts, .run = ls_main
};
const struct sb_cmd sbctl_show = { .name = "show",
	.args = "[ID]",
	.help = "all about one sandbox",
	.opts = plain_opts,
	.max_args = 1,
	.run = show_main };
const struct sb_cmd sbctl_sync = { .name = "sync",
	.args = "[ID]",
	.help = "sync a sandbox both ways now",
	.opts = sync_opts,
	.max_args = 1,
	.run = sync_main };
const struct sb_cmd sbctl_stop = { .name = "stop",
	.args = "[ID]",
	.help = "sync back, then end the sandbox by its policy",
	.opts = stop_opts,
	.max_args = 1,
	.run = stop_main };
const struct sb_cmd sbctl_destroy = { .name = "destroy",
	.args = "ID",
	.help = "sync back, then take the sandbox away",
	.opts = destroy_opts,
	.min_args = 1,
	.max_args = 1,
	.run = destroy_main };
const struct sb_cmd sbctl_recover = { .name = "recover",
	.args = "[ID]",
	.help = "finish what a crash interrupted",
	.opts = recover_opts,
	.max_args = 1,
	.run = recover_main };
const struct sb_cmd sbctl_events = { .name = "events",
	.args = "[ID]",
	.help = "what happened to sandboxes",
	.opts = events_opts,
	.max_args = 1,
	.run = events_main };
