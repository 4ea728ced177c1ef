/* SPDX-License-Identifier: MIT */
/* What a sandbox of this API has besides its session: one file each. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <gnutls/crypto.h>

#include <base/base64.h>
#include <base/random.h>
#include <base/str.h>
#include <compat/e2b/e2b-priv.h>
#include <host/host.h>

void
sb_e2b_record_free(struct sb_e2b_record *r)
{
	if (!r)
		return;
	free(r->template);
	free(r->name);
	json_decref(r->env);
	explicit_bzero(r->token, sizeof r->token);
	free(r);
}

struct sb_e2b_record *
sb_e2b_record_new(bool snapshot, struct sb_error *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	struct sb_e2b_record *r = calloc(1, sizeof *r);
	uint8_t random[SB_E2B_ID_LEN + 32];

	if (!r || sb_random(random, sizeof random, err) < 0) {
		if (!r)
			(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		free(r);
		return NULL;
	}
	for (size_t i = 0; i < SB_E2B_ID_LEN; i++)
		r->id[i] = letters[random[i] % 36];
	r->id[0] = letters[random[0] % 26];
	(void)sb_str_hex(random + SB_E2B_ID_LEN, 32, r->token);
	r->snapshot = snapshot;
	r->template = strdup("base");
	r->name = strdup("");
	r->env = json_object();
	r->internet = true;
	if (!r->template || !r->name || !r->env) {
		sb_e2b_record_free(r);
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	return r;
}

static json_t *
to_json(const struct sb_e2b_record *r)
{
	return json_pack("{s:s, s:b, s:s, s:s, s:s, s:s, s:O, s:I, s:I, s:b, s:b, s:b}", "id",
		r->id, "snapshot", r->snapshot, "template", r->template, "name", r->name, "token",
		r->token, "origin", r->origin, "env", r->env, "started_ns",
		(json_int_t)r->started_ns, "end_ns", (json_int_t)r->end_ns, "pause", r->pause,
		"auto_resume", r->auto_resume, "internet", r->internet);
}

static struct sb_e2b_record *
from_json(const json_t *o, struct sb_error *err)
{
	const char *id = NULL, *template = NULL, *name = NULL, *token = NULL, *origin = NULL;
	struct sb_e2b_record *r = calloc(1, sizeof *r);
	json_int_t started = 0, end = 0;
	int snapshot = 0, pause = 0, resume = 0, internet = 0;
	json_t *env = NULL;

	if (!r ||
		json_unpack((json_t *)(uintptr_t)o,
			"{s:s, s:b, s:s, s:s, s:s, s:s, s:o, s:I, s:I, s:b, s:b, s:b}", "id", &id,
			"snapshot", &snapshot, "template", &template, "name", &name, "token",
			&token, "origin", &origin, "env", &env, "started_ns", &started, "end_ns",
			&end, "pause", &pause, "auto_resume", &resume, "internet",
			&internet) != 0 ||
		strlen(id) > SB_E2B_ID_LEN || strlen(token) != 64 ||
		strlen(origin) > SB_E2B_ID_LEN || !json_is_object(env)) {
		free(r);
		(void)sb_fail(err, SB_E_CORRUPT, "the record is damaged");
		return NULL;
	}
	memcpy(r->id, id, strlen(id));
	memcpy(r->token, token, 64);
	memcpy(r->origin, origin, strlen(origin));
	r->snapshot = snapshot;
	r->template = strdup(template);
	r->name = strdup(name);
	r->env = json_incref(env);
	r->started_ns = started;
	r->end_ns = end;
	r->pause = pause;
	r->auto_resume = resume;
	r->internet = internet;
	return r;
}

struct sb_e2b_record *
sb_e2b_record_find(struct sb_e2b *e, const char *id)
{
	json_t *o = sb_records_get(e->records, id);
	struct sb_e2b_record *r = o ? from_json(o, NULL) : NULL;

	json_decref(o);
	return r;
}

int
sb_e2b_record_save(struct sb_e2b *e, const struct sb_e2b_record *r, struct sb_error *err)
{
	int res = sb_records_put(e->records, r->id, to_json(r), err);

	if (res == 0)
		sb_alarm_wake(e->keeper);
	return res;
}

void
sb_e2b_record_drop(struct sb_e2b *e, const char *id)
{
	sb_records_drop(e->records, id);
}

struct sb_e2b_record **
sb_e2b_record_all(struct sb_e2b *e, bool snapshots, size_t *n)
{
	size_t all;
	json_t **o = sb_records_all(e->records, &all);
	struct sb_e2b_record **v = o ? calloc(all + 1, sizeof(*v)) : NULL;

	*n = 0;
	for (size_t i = 0; o && i < all; i++) {
		struct sb_e2b_record *r = v ? from_json(o[i], NULL) : NULL;

		json_decref(o[i]);
		if (r && r->snapshot == snapshots)
			v[(*n)++] = r;
		else
			sb_e2b_record_free(r);
	}
	free(o);
	return v;
}

bool
sb_e2b_record_signed(struct sb_e2b *e, const char *signature, const char *text, const char *expires,
	char id[SB_E2B_ID_LEN + 1])
{
	bool found = false;
	size_t n;
	struct sb_e2b_record **v = sb_e2b_record_all(e, false, &n);

	for (size_t i = 0; v && i < n; i++) {
		sb_autofree char *all = sb_str_printf("%s:%s%s%s", text, v[i]->token,
			expires ? ":" : "", expires ? expires : "");
		uint8_t digest[32];
		char made[64] = "v1_";

		if (all && gnutls_hash_fast(GNUTLS_DIG_SHA256, all, strlen(all), digest) == 0 &&
			sb_base64_encode(digest, sizeof digest, made + 3, sizeof made - 3) &&
			sb_keys_same(made, signature)) {
			memcpy(id, v[i]->id, SB_E2B_ID_LEN + 1);
			found = true;
		}
		sb_e2b_record_free(v[i]);
	}
	free(v);
	return found;
}

/*
 * A record whose session is gone was left by a crash, or the session was destroyed elsewhere. A
 * damaged one keeps its sandbox from being lost sight of: it stays.
 */
static bool
wanted(const char *id, const json_t *o, void *arg)
{
	struct sb_e2b *e = arg;
	struct sb_host_session s;
	struct sb_error why = { 0 };
	struct sb_e2b_record *r = from_json(o, &why);

	if (!r)
		sb_log(&e->log, SB_LOG_WARN, "e2b", "sandbox %s is left out: %s", id, why.msg);
	sb_e2b_record_free(r);
	if (!r)
		return true;
	if (sb_host_session_get(e->host, id, false, &s, NULL) < 0)
		return false;
	sb_host_session_clear(&s);
	return true;
}

int
sb_e2b_record_load_all(struct sb_e2b *e, struct sb_error *err)
{
	sb_autofree char *dir = sb_str_printf("%s/e2b", sb_host_options(e->host)->state_dir);

	if (!dir)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	e->records = sb_records_open(dir, "e2b", &e->log, wanted, e, err);
	return e->records ? 0 : SB_E_SYS;
}
