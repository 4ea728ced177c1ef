/* SPDX-License-Identifier: MIT */
/* Who may enter which session by SSH. The door says what it was told; this decides. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/str.h>
#include <compat/ssh/sshgate-priv.h>
#include <compat/ssh/sshkeys.h>

/* How often an API whose token let somebody in hears that they are there. */
#define ACTIVE_MS 45000

static int
refuse(struct sb_error *err)
{
	return sb_fail(err, SB_E_AUTH, "nobody may enter by that");
}

/* The session is there, and the one that is meant (`nonce` "": any of that id). */
static int
find_session(struct sb_sshgate *g, const char *id, const char *nonce,
	char out_nonce[SB_HOST_NONCE_LEN + 1], struct sb_error *err)
{
	struct sb_host_session s;
	bool same;

	if (sb_host_session_id_check(id, NULL) < 0 ||
		sb_host_session_get(g->host, id, false, &s, NULL) < 0)
		return refuse(err);
	same = !nonce[0] || strcmp(s.nonce, nonce) == 0;
	memcpy(out_nonce, s.nonce, sizeof s.nonce);
	sb_host_session_clear(&s);
	return same ? 0 : refuse(err);
}

/* `session`: the one that is asked for, or NULL: the token says it. */
static int
by_token(struct sb_sshgate *g, const char *token, const char *session, char *out_session,
	char *out_nonce, struct sb_error *err)
{
	sb_autofree char *header = sb_str_printf("Bearer %s", token);
	struct sb_rpc_who who;
	int r;

	if (!header)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	r = sb_rpc_auth_check(g->auth, header, time(NULL), &who, NULL);
	explicit_bzero(header, strlen(header));
	if (r < 0 || (who.role != SB_RPC_ROLE_SESSION && who.role != SB_RPC_ROLE_ADMIN))
		return refuse(err);
	/* A token that is for all sessions does not say which. */
	if (who.role == SB_RPC_ROLE_SESSION && session && strcmp(session, who.session) != 0)
		return refuse(err);
	if (who.role == SB_RPC_ROLE_SESSION)
		session = who.session;
	if (!session)
		return refuse(err);
	r = find_session(g, session, who.role == SB_RPC_ROLE_SESSION ? who.nonce : "", out_nonce,
		err);
	if (r == 0)
		(void)snprintf(out_session, SB_HOST_ID_MAX + 1, "%s", session);
	return r;
}

/* A token for SSH alone, of ours or of another API. */
static int
by_access(struct sb_sshgate_conn *c, const char *token, char *session, char *nonce,
	struct sb_error *err)
{
	struct sb_sshgate *g = c->gate;
	struct sb_rpc_access_entry e;
	struct sb_access_grant grant;

	if (sb_rpc_access_check(g->access, token, &e, NULL) == 0) {
		(void)snprintf(session, SB_HOST_ID_MAX + 1, "%s", e.session);
		return find_session(g, e.session, e.nonce, nonce, err);
	}
	for (const struct sb_access *const *a = g->o.access; a && *a; a++)
		if ((*a)->lookup(token, &grant, (*a)->arg) && grant.expires_s > time(NULL)) {
			c->from = *a;
			memcpy(session, grant.session, sizeof grant.session);
			return find_session(g, grant.session, "", nonce, err);
		}
	return refuse(err);
}

static int
by_key(struct sb_sshgate *g, const char *key, const char *session, char *out_nonce,
	struct sb_error *err)
{
	sb_autofree char *path = NULL;
	int r = find_session(g, session, "", out_nonce, err);

	if (r < 0)
		return r;
	if (g->keys && sb_sshkeys_file(g->keys, key, NULL) == 0)
		return 0;
	if (!g->session_keys)
		return refuse(err);
	path = sb_str_printf("%s/%s", g->session_keys, session);
	return path && sb_sshkeys_file(path, key, NULL) == 0 ? 0 : refuse(err);
}

int
sb_sshgate_login(struct sb_sshgate_conn *c, const struct sb_sshwire_frame *f, struct sb_error *err)
{
	sb_autofree char *user = sb_sshwire_text(f->a, f->a_len);
	sb_autofree char *secret = sb_sshwire_text(f->b, f->b_len);
	char session[SB_HOST_ID_MAX + 1] = "";
	enum sb_sshgate_way way = SB_SSHGATE_TOKEN;
	int r;

	if (!user || !secret)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	switch ((enum sb_sshwire_login)f->kind) {
	case SB_SSHWIRE_NONE:
		r = by_token(c->gate, user, NULL, session, c->nonce, err);
		if (r == SB_E_AUTH) {
			way = SB_SSHGATE_ACCESS;
			r = by_access(c, user, session, c->nonce, err);
		}
		break;
	case SB_SSHWIRE_PASSWORD:
		r = by_token(c->gate, secret, user, session, c->nonce, err);
		break;
	default:
		way = SB_SSHGATE_KEY;
		r = by_key(c->gate, secret, user, c->nonce, err);
		if (r == 0)
			(void)snprintf(session, sizeof session, "%s", user);
	}
	if (r == 0 && f->kind != SB_SSHWIRE_OFFER) {
		c->way = way;
		c->credential = f->kind == SB_SSHWIRE_NONE ? user : secret;
		if (f->kind == SB_SSHWIRE_NONE)
			user = NULL;
		else
			secret = NULL;
		(void)pthread_mutex_lock(&c->gate->mu);
		memcpy(c->session, session, sizeof c->session);
		(void)pthread_mutex_unlock(&c->gate->mu);
	}
	if (user)
		explicit_bzero(user, strlen(user));
	if (secret)
		explicit_bzero(secret, strlen(secret));
	return r;
}

int
sb_sshgate_login_again(struct sb_sshgate_conn *c, struct sb_error *err)
{
	char session[SB_HOST_ID_MAX + 1] = "", nonce[SB_HOST_NONCE_LEN + 1];
	int r;

	switch (c->way) {
	case SB_SSHGATE_KEY: r = by_key(c->gate, c->credential, c->session, nonce, err); break;
	case SB_SSHGATE_ACCESS:
		r = by_access(c, c->credential, session, nonce, err);
		if (r == 0 && strcmp(session, c->session) != 0)
			r = refuse(err);
		break;
	default: r = by_token(c->gate, c->credential, c->session, session, nonce, err);
	}
	if (r == 0 && strcmp(nonce, c->nonce) != 0)
		r = refuse(err);
	if (r == 0 && c->from && sb_deadline_passed(c->active_at)) {
		c->from->active(c->session, c->from->arg);
		c->active_at = sb_deadline_in(ACTIVE_MS);
	}
	return r;
}
