/* SPDX-License-Identifier: MIT */
/* sbctl recover: finishes what a crash interrupted. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <bin/sbctl/options.h>

struct recovery {
	struct ctl *ctl;
	json_t *all;
};

static void
recovered(const struct sb_state *s, const char *result, const struct sb_sync_result *res,
	const struct sb_error *err, void *arg)
{
	struct recovery *r = arg;

	if (r->all) {
		json_t *o = json_pack("{s:s, s:s, s:s, s:I, s:I}", "sandbox_id", s->sandbox_id,
			"result", result, "state", sb_life_name(s->life), "files_synced",
			(json_int_t)res->files_synced, "conflicts", (json_int_t)res->conflicts.n);

		if (err->code < 0)
			(void)json_object_set_new(o, "error", json_string(err->msg));
		(void)json_array_append_new(r->all, o);
		return;
	}
	if (strcmp(result, "away") == 0) {
		if (!r->ctl->a.quiet)
			(void)fprintf(stderr, "sbctl: %s is kept, but cannot be reached now: %s\n",
				s->sandbox_id, err->msg);
		return;
	}
	if (strcmp(result, "failed") == 0) {
		(void)fprintf(stderr, "sbctl: %s: %s\n", s->sandbox_id, err->msg);
		return;
	}
	if (r->ctl->a.quiet || (strcmp(result, "nothing") == 0 && !r->ctl->a.verbose))
		return;
	(void)printf("%s: %s; %llu files synced, %zu conflicts; sandbox %s\n", s->sandbox_id,
		result, (unsigned long long)res->files_synced, res->conflicts.n,
		sb_life_name(s->life));
}

static int
recover_verb(struct ctl *ctl, struct sb_error *err)
{
	struct recovery c = { .ctl = ctl, .all = ctl->a.json ? json_array() : NULL };
	int r;

	if (ctl->a.n && ctl->a.all)
		return sb_fail(err, SB_E_USAGE, "name a sandbox or say --all, not both");
	r = sb_keeper_recover(ctl->keeper, ctl->a.n ? ctl->a.v[0] : NULL, &ctl->call, recovered, &c,
		err);
	if (c.all)
		ctl_print_json(c.all, stdout);
	json_decref(c.all);
	return r < 0 ? r : r > 0 ? CTL_FAILED : 0;
}

static const struct sb_opt options[] = {
	OPT_FLAG('a', "all", all, "recover every sandbox (the default without an ID)"),
	OPTIONS_TIMEOUT,
	OPTIONS_PROGRESS,
	OPTIONS_COMMON,
	OPT_END,
};

const struct ctl_verb cmd_recover = {
	.cmd = {
		.name = "recover",
		.args = "[ID]",
		.help = "finish what a crash interrupted",
		.details = "Syncs back every sandbox whose process is gone, then ends it by its "
			   "policy. Of one that is kept, brings what is new there, each time. A "
			   "failure alone never removes a sandbox.",
		.opts = options,
		.max_args = 1,
	},
	.run = recover_verb,
};
