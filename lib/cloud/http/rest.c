/* SPDX-License-Identifier: MIT */
/* A client with its settings and its pool of connections; a call with its tries. */
#include "config.h"

#include <cloud/http/rest.h>

#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <cloud/http/rest-priv.h>

#define IDLE_MAX 8

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void
init_curl(void)
{
	(void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void
handle_free(struct sb_rest_handle *h)
{
	if (!h)
		return;
	if (h->easy)
		curl_easy_cleanup(h->easy);
	if (h->multi)
		(void)curl_multi_cleanup(h->multi);
	free(h);
}

static void
wipe(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

void
sb_rest_free(struct sb_rest *r)
{
	if (!r)
		return;
	while (r->idle) {
		struct sb_rest_handle *next = r->idle->next;

		handle_free(r->idle);
		r->idle = next;
	}
	for (size_t i = 0; i < r->n_headers; i++) {
		free(r->headers[i].name);
		wipe(r->headers[i].value);
	}
	free(r->headers);
	free(r->base);
	free(r->name);
	free(r->shown);
	free(r->socket);
	wipe(r->proxy);
	free(r->ca_file);
	free(r->ca_dir);
	free(r->cert_file);
	free(r->key_file);
	(void)pthread_mutex_destroy(&r->mu);
	free(r);
}

static int
copy(char **to, const char *text, struct sb_error *err)
{
	*to = text ? strdup(text) : NULL;
	return text && !*to ? sb_fail(err, SB_E_NOMEM, "out of memory") : 0;
}

static int
set_address(struct sb_rest *r, const char *base, struct sb_error *err)
{
	const char *host = strstr(base, "://");
	size_t len = strlen(base);
	int rc;

	for (const char *p = base; *p; p++)
		if ((unsigned char)*p <= ' ' || *p == '\x7f')
			return sb_fail(err, SB_E_INVAL, "an address has no blanks");
	if (sb_str_starts(base, "unix:") && base[5] == '/') {
		rc = copy(&r->socket, base + 5, err);
		rc = rc < 0 ? rc : copy(&r->base, "http://localhost", err);
		return rc < 0 ? rc : copy(&r->shown, base, err);
	}
	if ((!sb_str_starts(base, "http://") && !sb_str_starts(base, "https://")) || !host[3] ||
		host[3] == '/')
		return sb_fail(err, SB_E_INVAL,
			"address %s must be unix:PATH, http://HOST:PORT or https://HOST:PORT",
			base);
	if (memchr(host + 3, '@', strcspn(host + 3, "/?#")) || strpbrk(host, "?#"))
		return sb_fail(err, SB_E_INVAL,
			"an address has a host and a path, no user, query or fragment");
	while (base[len - 1] == '/')
		len--;
	r->base = strndup(base, len);
	r->shown = strndup(base, len);
	return r->base && r->shown ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
}

/* Where nothing is said, what libcurl's own programs take from the environment. */
static int
set_authorities(struct sb_rest *r, const char *given, struct sb_error *err)
{
	const char *file = given, *dir = getenv("SSL_CERT_DIR");

	if (!file)
		file = getenv("CURL_CA_BUNDLE");
	if (!file || !*file)
		file = getenv("SSL_CERT_FILE");
	if (file && *file)
		return copy(&r->ca_file, file, err);
	return dir && *dir ? copy(&r->ca_dir, dir, err) : 0;
}

/* What this side shows of itself. */
static int
set_certificate(struct sb_rest *r, const char *cert, const char *key, struct sb_error *err)
{
	int rc;

	if (!cert != !key)
		return sb_fail(err, SB_E_INVAL, "%s %s needs its %s, too",
			cert ? "certificate" : "key", cert ? cert : key,
			cert ? "key" : "certificate");
	rc = copy(&r->cert_file, cert, err);
	return rc < 0 ? rc : copy(&r->key_file, key, err);
}

static int
set_headers(struct sb_rest *r, const struct sb_rest_header *h, size_t n, struct sb_error *err)
{
	int rc = 0;

	if (n == 0)
		return 0;
	r->headers = calloc(n, sizeof *r->headers);
	if (!r->headers)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	r->n_headers = n;
	for (size_t i = 0; i < n && rc == 0; i++) {
		rc = copy(&r->headers[i].name, h[i].name, err);
		if (rc == 0)
			rc = copy(&r->headers[i].value, h[i].value, err);
		r->headers[i].secret =
			h[i].secret || sb_rest_log_secret(h[i].name, strlen(h[i].name));
	}
	return rc;
}

struct sb_rest *
sb_rest_new(const struct sb_rest_opts *given, struct sb_error *err)
{
	struct sb_rest_opts o = SB_REST_OPTS_INIT;
	struct sb_rest *r = calloc(1, sizeof *r);
	int rc;

	(void)pthread_once(&curl_once, init_curl);
	if (!r) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
	r->o = o;
	(void)pthread_mutex_init(&r->mu, NULL);
	rc = set_address(r, o.base, err);
	if (rc == 0)
		rc = copy(&r->name, o.name ? o.name : r->shown, err);
	if (rc == 0)
		rc = copy(&r->proxy, r->socket ? "" : o.proxy, err);
	if (rc == 0)
		rc = set_authorities(r, o.ca_file, err);
	if (rc == 0)
		rc = set_certificate(r, o.cert_file, o.key_file, err);
	if (rc == 0)
		rc = set_headers(r, o.headers, o.n_headers, err);
	if (rc < 0) {
		sb_rest_free(r);
		return NULL;
	}
	return r;
}

const char *
sb_rest_name(const struct sb_rest *r)
{
	return r->name;
}

const char *
sb_rest_base(const struct sb_rest *r)
{
	return r->shown;
}

static struct sb_rest_handle *
handle_take(struct sb_rest *r, struct sb_error *err)
{
	struct sb_rest_handle *h;

	(void)pthread_mutex_lock(&r->mu);
	h = r->idle;
	if (h) {
		r->idle = h->next;
		r->n_idle--;
	}
	(void)pthread_mutex_unlock(&r->mu);
	if (h)
		return h;
	h = calloc(1, sizeof *h);
	if (h) {
		h->multi = curl_multi_init();
		h->easy = curl_easy_init();
	}
	if (!h || !h->multi || !h->easy) {
		handle_free(h);
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	return h;
}

static void
handle_give(struct sb_rest *r, struct sb_rest_handle *h)
{
	/* Nothing of the caller's stays in it. */
	curl_easy_reset(h->easy);
	(void)pthread_mutex_lock(&r->mu);
	if (r->n_idle < IDLE_MAX) {
		h->next = r->idle;
		r->idle = h;
		r->n_idle++;
		h = NULL;
	}
	(void)pthread_mutex_unlock(&r->mu);
	handle_free(h);
}

static int
check_request(const struct sb_rest *r, const struct sb_rest_request *q, struct sb_error *err)
{
	if (q->target[0] != '/')
		return sb_fail(err, SB_E_INVAL, "%s: a target begins with a slash", r->name);
	for (const char *p = q->target; *p; p++)
		if ((unsigned char)*p <= ' ' || *p == '\x7f' || *p == '#')
			return sb_fail(err, SB_E_INVAL, "%s: the target is not escaped", r->name);
	return 0;
}

/* One try; `*again_ms` is when to make the next. */
static int
once(struct sb_rest *r, const struct sb_rest_request *q, unsigned n, const struct sb_rest_wait *w,
	struct sb_rest_answer *a, int64_t *again_ms, struct sb_error *err)
{
	struct sb_rest_try t = { .client = r, .q = q, .a = a, .n = n };
	struct sb_error own = { 0 };
	int64_t start = sb_now_ms(), left;
	int rc;

	*again_ms = -1;
	err = err ? err : &own;
	t.h = handle_take(r, err);
	if (!t.h)
		return SB_E_NOMEM;
	rc = sb_rest_try_run(&t, w, err);
	*again_ms = sb_rest_again_in(&t, rc);
	left = w->deadline == SB_NEVER ? INT64_MAX : w->deadline - sb_now_ms();
	if (*again_ms >= 0 && *again_ms >= left)
		*again_ms = -1;
	if (*again_ms >= 0 && t.read_begun) {
		int rr = q->rewind(q->read_arg, err);

		if (rr < 0) {
			*again_ms = -1;
			rc = rr;
		}
	}
	sb_rest_log_came(&t, rc, sb_now_ms() - start, *again_ms, err);
	sb_rest_try_end(&t);
	handle_give(r, t.h);
	return rc;
}

int
sb_rest_call(struct sb_rest *r, const struct sb_rest_request *given,
	const struct sb_rest_wait *wait, struct sb_rest_answer *out, struct sb_error *err)
{
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	struct sb_rest_wait w = SB_REST_WAIT_INIT;
	struct sb_rest_answer a = { 0 };
	struct sb_error last = { 0 };
	int64_t again_ms;
	int rc;

	memcpy(&q, given, given->size < sizeof q ? given->size : sizeof q);
	w = wait ? *wait : w;
	rc = check_request(r, &q, err);
	if (rc < 0)
		return rc;
	for (unsigned n = 1;; n++) {
		rc = once(r, &q, n, &w, &a, &again_ms, &last);
		a.tries = n;
		if (again_ms < 0)
			break;
		/* Who loses patience hears of that, not of the try before. */
		rc = sb_rest_again_pause(again_ms, &w, r->name, &last);
		if (rc < 0)
			break;
		sb_rest_answer_free(&a);
	}
	if (rc < 0) {
		sb_rest_answer_free(&a);
		if (err)
			*err = last;
		return rc;
	}
	*out = a;
	return 0;
}
