/* SPDX-License-Identifier: MIT */
/* sbctl events: what happened to sandboxes. */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <base/buf.h>
#include <bin/sbctl/options.h>

#define LOOK_MS 200 /* how often new events are looked for */
#define EVENTS_AT_ONCE 65536

/* The events of one sandbox as they grow. */
struct tail {
	char *id;
	int fd;
	struct sb_buf rest; /* a line that is not complete yet */
};

static void
print_event(const struct ctl *ctl, const char *line)
{
	json_t *o = ctl->a.json ? NULL : json_loads(line, 0, NULL);
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
print_more(const struct ctl *ctl, struct tail *t)
{
	char buf[4096];
	ssize_t n;

	while ((n = read(t->fd, buf, sizeof buf)) > 0) {
		char *end;

		sb_buf_add(&t->rest, buf, (size_t)n);
		while (t->rest.len && (end = memchr(t->rest.data, '\n', t->rest.len))) {
			*end = '\0';
			print_event(ctl, (const char *)t->rest.data);
			sb_buf_consume(&t->rest, (size_t)(end - (char *)t->rest.data) + 1);
		}
	}
}

/* Opens the events of sandboxes that are new since the last look. */
static int
open_tails(struct ctl *ctl, const char *only, struct tail **v, size_t *n, struct sb_error *err)
{
	struct sb_state *s = NULL;
	size_t count = 0;
	int r = sb_keeper_list(ctl->keeper, &s, &count, err);

	for (size_t i = 0; r == 0 && i < count; i++) {
		struct tail t = { .fd = -1 }, *grown;
		bool known = only && strcmp(only, s[i].sandbox_id) != 0;

		for (size_t k = 0; k < *n; k++)
			known = known || strcmp((*v)[k].id, s[i].sandbox_id) == 0;
		if (known)
			continue;
		t.fd = sb_keeper_events_fd(ctl->keeper, s[i].sandbox_id, err);
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
events_verb(struct ctl *ctl, struct sb_error *err)
{
	sb_auto(sb_state) struct sb_state s = SB_STATE_INIT;
	struct tail *v = NULL;
	size_t n = 0;
	int r = ctl->a.n ? sb_keeper_load(ctl->keeper, ctl->a.v[0], &s, err) : 0;

	while (r == 0) {
		struct pollfd p = { sb_cancel_fd(ctl->cancel), POLLIN, 0 };

		r = open_tails(ctl, s.sandbox_id, &v, &n, err);
		for (size_t i = 0; r == 0 && i < n; i++)
			print_more(ctl, &v[i]);
		(void)fflush(stdout);
		if (r < 0 || !ctl->a.follow || ferror(stdout) ||
			sb_deadline_passed(ctl->call.deadline))
			break;
		(void)poll(&p, 1, LOOK_MS);
		if (sb_cancel_requested(ctl->cancel))
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

static const struct sb_opt options[] = {
	OPT_FLAG('f', "follow", follow, "keep printing until stopped"),
	OPTIONS_TIMEOUT,
	OPTIONS_COMMON,
	OPT_END,
};

const struct ctl_verb cmd_events = {
	.cmd = {
		.name = "events",
		.args = "[ID]",
		.help = "print what happened to sandboxes",
		.opts = options,
		.max_args = 1,
	},
	.run = events_verb,
};
