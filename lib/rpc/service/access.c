/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <rpc/service/access.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include <base/file.h>
#include <base/owndir.h>
#include <base/random.h>
#include <base/str.h>

#define DIGEST 32
#define SECRET 20
#define PREFIX "ssh-"
#define RECORD_MAX 1024

struct record {
	struct record *next;
	struct sb_rpc_access_entry e;
	uint8_t digest[DIGEST];
};

struct sb_rpc_access {
	int dir;
	pthread_mutex_t mu; /* guards all below */
	struct record *list, **last;
};

static bool
is_good(const struct record *r, int64_t now)
{
	return r->e.expires_s > now;
}

static int
save(const struct sb_rpc_access *a, const struct record *r, struct sb_error *err)
{
	char hex[2 * DIGEST + 1];
	sb_autofree char *text = sb_str_printf("%s %s %" PRId64 " %" PRId64 " %s\n", r->e.session,
		r->e.nonce, r->e.created_s, r->e.expires_s, sb_str_hex(r->digest, DIGEST, hex));

	if (!text)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	return sb_file_replace(a->dir, r->e.id, text, strlen(text), 0600, err);
}

static void
add(struct sb_rpc_access *a, struct record *r)
{
	*a->last = r;
	a->last = &r->next;
}

static void
drop(struct sb_rpc_access *a, struct record **p)
{
	struct record *old = *p;

	(void)unlinkat(a->dir, old->e.id, 0);
	*p = old->next;
	if (a->last == &old->next)
		a->last = p;
	free(old);
}

/* What is no record of ours is left where it is, and opens nothing. */
static void
load_one(struct sb_rpc_access *a, const char *id)
{
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	char hex[2 * DIGEST + 1], end;
	struct record *r = calloc(1, sizeof *r);
	/* As long as their members: checked when the session is looked up. */
	bool ok = r && strlen(id) == SB_RPC_ACCESS_ID &&
		sb_file_read(a->dir, id, RECORD_MAX, &text, NULL) == 0 &&
		sscanf((const char *)text.data, "%128s %32s %" SCNd64 " %" SCNd64 " %64s%c",
			r->e.session, r->e.nonce, &r->e.created_s, &r->e.expires_s, hex,
			&end) == 6 &&
		end == '\n' && sb_str_unhex(hex, r->digest, DIGEST);

	if (!ok) {
		free(r);
		return;
	}
	memcpy(r->e.id, id, SB_RPC_ACCESS_ID + 1);
	add(a, r);
}

static int
load(struct sb_rpc_access *a, struct sb_error *err)
{
	sb_autoclosedir DIR *d = NULL;
	int fd = dup(a->dir);
	const struct dirent *e;

	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		if (fd >= 0)
			(void)close(fd);
		return sb_fail_errno(err, "SSH access tokens");
	}
	while ((e = readdir(d)))
		load_one(a, e->d_name);
	return 0;
}

struct sb_rpc_access *
sb_rpc_access_open(const char *dir, struct sb_error *err)
{
	struct sb_rpc_access *a = calloc(1, sizeof *a);

	_Static_assert(SB_HOST_ID_MAX == 128 && SB_HOST_NONCE_LEN == 32, "as load_one reads them");
	if (!a) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	(void)pthread_mutex_init(&a->mu, NULL);
	a->last = &a->list;
	a->dir = sb_owndir_open(dir, "", true, err);
	if (a->dir >= 0 && load(a, err) == 0)
		return a;
	sb_rpc_access_close(a);
	return NULL;
}

void
sb_rpc_access_close(struct sb_rpc_access *a)
{
	if (!a)
		return;
	while (a->list) {
		struct record *r = a->list;

		a->list = r->next;
		free(r);
	}
	if (a->dir >= 0)
		(void)close(a->dir);
	(void)pthread_mutex_destroy(&a->mu);
	free(a);
}

/* Those whose time is over go; counts the others of the session. `mu` held. */
static unsigned
tidy(struct sb_rpc_access *a, const char *session)
{
	int64_t now = time(NULL);
	unsigned n = 0;

	for (struct record **p = &a->list; *p;) {
		if (!is_good(*p, now)) {
			drop(a, p);
			continue;
		}
		n += strcmp((*p)->e.session, session) == 0;
		p = &(*p)->next;
	}
	return n;
}

static int
make(struct record *r, char *token, struct sb_error *err)
{
	uint8_t secret[SECRET];
	int e = sb_random(secret, sizeof secret, err);

	if (e < 0)
		return e;
	memcpy(token, PREFIX, sizeof PREFIX);
	(void)sb_str_hex(secret, sizeof secret, token + sizeof PREFIX - 1);
	explicit_bzero(secret, sizeof secret);
	if (gnutls_hash_fast(GNUTLS_DIG_SHA256, token, SB_RPC_ACCESS_TOKEN, r->digest) != 0)
		return sb_fail(err, SB_E_SYS, "SHA-256 failed");
	(void)sb_str_hex(r->digest, SB_RPC_ACCESS_ID / 2, r->e.id);
	return 0;
}

int
sb_rpc_access_create(struct sb_rpc_access *a, const char *session, const char *nonce, int64_t ttl_s,
	struct sb_rpc_access_entry *out, char token[SB_RPC_ACCESS_TOKEN + 1], struct sb_error *err)
{
	struct record *r = calloc(1, sizeof *r);
	int e;

	if (!r)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	(void)snprintf(r->e.session, sizeof r->e.session, "%s", session);
	(void)snprintf(r->e.nonce, sizeof r->e.nonce, "%s", nonce);
	r->e.created_s = time(NULL);
	r->e.expires_s = r->e.created_s + ttl_s;
	e = make(r, token, err);
	(void)pthread_mutex_lock(&a->mu);
	if (e == 0 && tidy(a, session) >= SB_RPC_ACCESS_EACH_MAX)
		e = sb_fail(err, SB_E_LIMIT, "session %s has %d SSH access tokens: revoke some",
			session, SB_RPC_ACCESS_EACH_MAX);
	if (e == 0)
		e = save(a, r, err);
	if (e == 0) {
		*out = r->e;
		add(a, r);
		r = NULL;
	}
	(void)pthread_mutex_unlock(&a->mu);
	free(r);
	return e;
}

int
sb_rpc_access_list(struct sb_rpc_access *a, const char *session, const char *nonce,
	struct sb_rpc_access_entry **out, size_t *out_n, struct sb_error *err)
{
	int e = 0;

	*out_n = 0;
	(void)pthread_mutex_lock(&a->mu);
	*out = calloc((size_t)tidy(a, session) + 1, sizeof **out);
	if (!*out)
		e = sb_fail(err, SB_E_NOMEM, "out of memory");
	for (const struct record *r = a->list; *out && r; r = r->next)
		if (strcmp(r->e.session, session) == 0 && strcmp(r->e.nonce, nonce) == 0)
			(*out)[(*out_n)++] = r->e;
	(void)pthread_mutex_unlock(&a->mu);
	return e;
}

int
sb_rpc_access_revoke(struct sb_rpc_access *a, const char *session, const char *id,
	struct sb_error *err)
{
	unsigned n = 0;

	(void)pthread_mutex_lock(&a->mu);
	for (struct record **p = &a->list; *p;) {
		if (strcmp((*p)->e.session, session) == 0 && (!id || strcmp((*p)->e.id, id) == 0)) {
			drop(a, p);
			n++;
		} else {
			p = &(*p)->next;
		}
	}
	(void)fsync(a->dir);
	(void)pthread_mutex_unlock(&a->mu);
	return n > 0 || !id ?
		0 :
		sb_fail(err, SB_E_NOTFOUND, "session %s has no SSH access token %s", session, id);
}

int
sb_rpc_access_check(struct sb_rpc_access *a, const char *token, struct sb_rpc_access_entry *out,
	struct sb_error *err)
{
	uint8_t digest[DIGEST];
	int64_t now = time(NULL);
	bool found = false;

	if (strlen(token) != SB_RPC_ACCESS_TOKEN ||
		gnutls_hash_fast(GNUTLS_DIG_SHA256, token, SB_RPC_ACCESS_TOKEN, digest) != 0)
		return sb_fail(err, SB_E_AUTH, "token is not valid");
	(void)pthread_mutex_lock(&a->mu);
	for (const struct record *r = a->list; r; r = r->next)
		if (gnutls_memcmp(r->digest, digest, DIGEST) == 0 && is_good(r, now)) {
			*out = r->e;
			found = true;
		}
	(void)pthread_mutex_unlock(&a->mu);
	return found ? 0 : sb_fail(err, SB_E_AUTH, "token is not valid");
}
