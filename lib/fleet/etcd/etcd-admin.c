/* SPDX-License-Identifier: MIT */
/* How an etcd cluster is, and compaction. */
#include "config.h"

#include "etcd-priv.h"

#include <string.h>

/* Adds what one member says of itself. */
static int
ask_member(struct sb_etcd *e, size_t member, struct sb_etcd_status *st,
	const struct sb_rest_wait *wait, struct sb_error *err)
{
	json_t *ask = json_object(), *answer;
	int64_t rev, bytes;
	const json_t *errors;
	const char *leader;
	int r;

	r = sb_etcd_call_one(e, member, "/v3/maintenance/status", ask, true, wait, &answer, err);
	json_decref(ask);
	if (r < 0)
		return r;
	st->reached++;
	if (sb_etcd_revision(answer, &rev) && rev > st->revision)
		st->revision = rev;
	if (sb_etcd_number(answer, "dbSize", &bytes) && bytes > st->db_bytes)
		st->db_bytes = bytes;
	/* Members have 64 bits without a sign. */
	leader = json_string_value(json_object_get(answer, "leader"));
	if (leader && strcmp(leader, "0") != 0)
		st->leader = true;
	errors = json_object_get(answer, "errors");
	for (size_t i = 0; i < json_array_size(errors); i++) {
		const char *text = json_string_value(json_array_get(errors, i));

		if (text && strstr(text, "NOSPACE"))
			st->nospace = true;
	}
	json_decref(answer);
	return 0;
}

int
sb_etcd_status(struct sb_etcd *e, struct sb_etcd_status *st, const struct sb_cancel *cancel,
	struct sb_error *err)
{
	struct sb_error why = { 0 };

	memset(st, 0, sizeof *st);
	for (size_t i = 0; i < e->n; i++) {
		struct sb_rest_wait wait = { .cancel = cancel,
			.deadline = sb_deadline_in(e->call_ms / (int64_t)e->n) };

		st->members++;
		(void)ask_member(e, i, st, &wait, &why);
		if (sb_cancel_requested(cancel))
			return sb_fail(err, SB_E_CANCELED, "etcd: canceled");
	}
	if (st->reached == 0)
		return sb_fail(err, SB_E_UNAVAILABLE, "%s", why.msg);
	return 0;
}

int
sb_etcd_compact(struct sb_etcd *e, int64_t rev, const struct sb_cancel *cancel,
	struct sb_error *err)
{
	json_t *answer = NULL;
	struct sb_error why = { 0 };
	int r;

	r = sb_etcd_call(e, "/v3/kv/compaction", json_pack("{s:I}", "revision", (json_int_t)rev),
		true, cancel, &answer, &why);
	json_decref(answer);
	if (r == SB_E_CHANGED && strstr(why.msg, "compacted"))
		return 0;
	return r < 0 ? sb_fail(err, r, "%s", why.msg) : 0;
}
