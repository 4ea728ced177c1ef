/* SPDX-License-Identifier: MIT */
/* sbctl cold: looks after cold storage, where hosts keep deep-paused sessions. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <bin/sbctl/ctl.h>
#include <sb/cold.h>

#define DAY_MS (INT64_C(24) * 3600 * 1000)

struct cold_args {
	const char *space, *key_file;
	int64_t older;
	bool json, help;
};

#define OPT_VALUES struct cold_args
#include <bin/common/opt-rows.h>

static const struct sb_opt options[] = {
	OPT_TEXT(0, "space", space, "NAME", "the tenant's part of the store (default)"),
	OPT_TEXT(0, "key-file", key_file, "FILE",
		"keys of encrypted archives (else those of SBHOSTD_COLD_KEYS)"),
	OPT_TIME(0, "older-than", older, "TIME", 0, 0,
		"gc: what is younger stays, for it may be being written (24h)"),
	OPT_FLAG('j', "json", json, "print a JSON object for each session"),
	OPT_FLAG('h', "help", help, "show this help"),
	OPT_END,
};

/* What a listing prints as, and what it found. */
struct listing {
	const struct cold_args *a;
	bool check;
	unsigned wrong;
};

static int
print_json(const struct sb_cold_entry *e, const struct listing *l)
{
	json_t *j = json_pack("{s:o, s:s, s:s, s:s, s:s, s:I}", "id", ctl_json_text(e->id), "nonce",
		e->nonce, "where", e->where, "host", e->host, "index", e->index, "time",
		(json_int_t)e->time_s);

	if (l->check && strcmp(e->where, "cold") == 0) {
		(void)json_object_set_new(j, "size", json_integer((json_int_t)e->size));
		(void)json_object_set_new(j, "stored", json_integer((json_int_t)e->stored));
		(void)json_object_set_new(j, "snapshots", json_integer((json_int_t)e->snapshots));
		(void)json_object_set_new(j, "encrypted", json_boolean(e->encrypted));
	}
	if (e->wrong)
		(void)json_object_set_new(j, "wrong", ctl_json_text(e->wrong));
	ctl_print_json(j, stdout);
	json_decref(j);
	return 0;
}

static int
on_entry(const struct sb_cold_entry *e, void *arg, struct sb_error *err)
{
	struct listing *l = arg;
	char when[32] = "", wrong[CTL_SHOWN];
	time_t at = (time_t)e->time_s;
	struct tm tm;

	(void)err;
	l->wrong += e->wrong != NULL;
	if (l->a->json)
		return print_json(e, l);
	if (at && gmtime_r(&at, &tm))
		(void)strftime(when, sizeof when, "%Y-%m-%d %H:%M", &tm);
	(void)printf("%-24s %-5s %s", e->id, e->where, when);
	if (strcmp(e->where, "host") == 0)
		(void)printf("  host %s", e->host);
	if (e->wrong)
		(void)printf("  WRONG: %s", ctl_safe(e->wrong, wrong));
	else if (l->check && strcmp(e->where, "cold") == 0)
		(void)printf("  good: %" PRIu64 " bytes, %" PRIu64 " stored, %" PRIu64
			     " snapshots%s",
			e->size, e->stored, e->snapshots, e->encrypted ? ", encrypted" : "");
	(void)printf("\n");
	return 0;
}

static int
list(struct sb_cold *c, const struct cold_args *a, bool check, const char *id, struct sb_error *err)
{
	struct listing l = { .a = a, .check = check };
	int r = sb_cold_list(c, id, check, NULL, on_entry, &l, err);

	if (r == 0 && l.wrong)
		r = sb_fail(err, SB_E_CORRUPT, "%u session%s cannot come back as %s", l.wrong,
			l.wrong == 1 ? "" : "s", l.wrong == 1 ? "it was" : "they were");
	return r;
}

static int
collect(struct sb_cold *c, const struct cold_args *a, struct sb_error *err)
{
	struct sb_cold_collected got = { 0 };
	int r = sb_cold_collect(c, a->older / 1000, NULL, &got, err);

	if (r == 0 && !a->json)
		(void)printf("%" PRIu64 " parts removed (%" PRIu64 " bytes), %" PRIu64 " kept\n",
			got.removed, got.bytes, got.kept);
	else if (r == 0)
		(void)printf("{\"removed\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"kept\":%" PRIu64
			     "}\n",
			got.removed, got.bytes, got.kept);
	return r;
}

static int
do_verb(const struct cold_args *a, char **v, int n, struct sb_error *err)
{
	const char *verb = v[0], *id = n > 2 ? v[2] : NULL;
	struct sb_cold_opts o = SB_COLD_OPTS_INIT;
	struct sb_cold *c;
	int r;

	if (strcmp(verb, "ls") != 0 && strcmp(verb, "check") != 0 && strcmp(verb, "gc") != 0)
		return sb_fail(err, SB_E_USAGE, "\"%s\" is none of ls, check and gc", verb);
	if (id && strcmp(verb, "gc") == 0)
		return sb_fail(err, SB_E_USAGE,
			"gc takes no session: it cleans up the whole space");
	o.url = v[1];
	o.space = a->space;
	o.key_file = a->key_file;
	c = sb_cold_open(&o, err);
	if (!c)
		return err->code;
	r = strcmp(verb, "gc") == 0 ? collect(c, a, err) :
				      list(c, a, strcmp(verb, "check") == 0, id, err);
	sb_cold_close(c);
	return r;
}

static int
cold_main(void *values, int argc, char **argv)
{
	struct cold_args a = { .older = DAY_MS };
	struct sb_error err = { 0 };
	char **rest = NULL;
	int n = 0, r;

	(void)values;
	r = sb_opt_parse(options, argc, argv, false, &a, &rest, &n, &err);
	if (r == 0 && a.help) {
		sb_opt_print_help(stdout, "sbctl", &cmd_cold.cmd);
		return CTL_DONE;
	}
	if (r == 0 && (n < 2 || n > 3))
		r = sb_fail(&err, SB_E_USAGE, "usage: sbctl cold %s", cmd_cold.cmd.args);
	if (r == 0)
		r = do_verb(&a, rest, n, &err);
	return r < 0 ? ctl_complain(&err) : CTL_DONE;
}

const struct ctl_verb cmd_cold = {
	.cmd = {
		.name = "cold",
		.args = "ls|check|gc STORE [SESSION]",
		.help = "list, verify or clean up cold storage",
		.opts = options,
		.run = cold_main,
	},
};
