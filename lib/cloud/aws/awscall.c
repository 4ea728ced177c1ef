/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <cloud/aws/awscall.h>

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <curl/curl.h>

#include <base/random.h>
#include <base/str.h>
#include <cloud/aws/sigv4.h>

/* Our clock may be so far off before it matters. */
#define SKEW_S 240
#define PAUSE_MAX_MS 20000
#define HEADERS_MAX 32

struct sb_awscall {
	struct sb_rest *rest;
	struct sb_awschain *chain;
	char *service, *region, *host;
	unsigned throttled;
	_Atomic int64_t offset_s; /* the server's clock minus ours */
	struct sb_log log;
	bool tls;
};

const char *
sb_awscall_region(const struct sb_awscall *a)
{
	return a->region;
}

const char *
sb_awscall_base(const struct sb_awscall *a)
{
	return sb_rest_base(a->rest);
}

/* The Host header of an address: without the port that is the default. */
static char *
host_of(const char *base, struct sb_error *err)
{
	bool tls = sb_str_starts(base, "https://");
	const char *p = strstr(base, "://");
	const char *port = tls ? ":443" : ":80";
	char *host;

	if (!p || p[3 + strcspn(p + 3, "/?#")]) {
		(void)sb_fail(err, SB_E_INVAL, "AWS endpoint \"%.100s\": want https://HOST[:PORT]",
			base);
		return NULL;
	}
	host = strdup(p + 3);
	if (!host)
		(void)sb_fail(err, SB_E_NOMEM, "AWS endpoint");
	else if (sb_str_ends(host, port))
		host[strlen(host) - strlen(port)] = '\0';
	return host;
}

static char *
endpoint_of(const struct sb_awscall *a, const char *given, struct sb_error *err)
{
	char upper[16] = "";
	char *out = NULL;

	if (given)
		return strdup(given);
	for (size_t i = 0; a->service[i] && i < sizeof upper - 1; i++)
		upper[i] = (char)(a->service[i] >= 'a' && a->service[i] <= 'z' ?
				a->service[i] - 'a' + 'A' :
				a->service[i]);
	if (sb_awschain_endpoint(a->chain, upper, &out, err) < 0)
		return NULL;
	if (out) {
		size_t len = strlen(out);

		while (len > 0 && out[len - 1] == '/')
			out[--len] = '\0';
		return out;
	}
	return sb_str_printf("https://%s.%s.amazonaws.com%s", a->service, a->region,
		sb_str_starts(a->region, "cn-") ? ".cn" : "");
}

struct sb_awscall *
sb_awscall_new(const struct sb_awscall_opts *o, struct sb_error *err)
{
	sb_auto(sb_awscall) struct sb_awscall *a = calloc(1, sizeof *a);
	sb_autofree char *base = NULL;
	struct sb_rest_opts ro = o->rest;

	if (!a || !(a->service = strdup(o->service))) {
		(void)sb_fail(err, SB_E_NOMEM, "AWS client");
		return NULL;
	}
	a->chain = o->chain;
	a->throttled = o->throttled;
	a->log = o->rest.log;
	a->region = o->region ? strdup(o->region) : sb_awschain_region(o->chain, o->cancel, err);
	if (!a->region)
		return NULL;
	base = endpoint_of(a, o->endpoint, err);
	a->host = base ? host_of(base, err) : NULL;
	if (!a->host)
		return NULL;
	a->tls = sb_str_starts(base, "https://");
	ro.base = base;
	a->rest = sb_rest_new(&ro, err);
	return a->rest ? sb_steal(&a) : NULL;
}

void
sb_awscall_free(struct sb_awscall *a)
{
	if (!a)
		return;
	sb_rest_free(a->rest);
	free(a->service);
	free(a->region);
	free(a->host);
	free(a);
}

/* One call as its signer sees it. */
struct call {
	struct sb_awscall *a;
	const struct sb_rest_request *q;
	const char *payload;
	const struct sb_cancel *cancel;
};

static int
sign(unsigned n, struct sb_strlist *out, void *arg, struct sb_error *err)
{
	const struct call *c = arg;
	sb_auto(sb_awschain_creds) struct sb_awschain_creds creds = { 0 };
	struct sb_sigv4_header h[HEADERS_MAX];
	struct sb_sigv4_request s = { .service = c->a->service,
		.region = c->a->region,
		.method = c->q->method,
		.host = c->a->host,
		.target = c->q->target,
		.headers = h,
		.payload = c->payload,
		.time_s = (int64_t)time(NULL) + atomic_load(&c->a->offset_s) };
	struct sb_sigv4_key key;
	int r = sb_awschain_get(c->a->chain, c->cancel, &creds, err);

	(void)n;
	if (r < 0)
		return r;
	if (c->q->n_headers + 1 > HEADERS_MAX)
		return sb_fail(err, SB_E_LIMIT, "more than %d headers", HEADERS_MAX - 1);
	for (size_t i = 0; i < c->q->n_headers; i++)
		/* Who sends Expect may take it back; proxies, too. */
		if (strcasecmp(c->q->headers[i].name, "expect") != 0)
			h[s.n_headers++] = (struct sb_sigv4_header){ c->q->headers[i].name,
				c->q->headers[i].value };
	if (c->q->type && (c->q->body || c->q->read))
		h[s.n_headers++] = (struct sb_sigv4_header){ "content-type", c->q->type };
	key = (struct sb_sigv4_key){ creds.access, creds.secret, creds.token };
	return sb_sigv4_sign(&key, &s, out, err);
}

bool
sb_awscall_xml_text(const char *xml, const char *name, char *out, size_t size)
{
	static const char *const entities[] = { "&lt;<", "&gt;>", "&amp;&", "&quot;\"", "&apos;'" };
	size_t len = strlen(name), n = 0;
	const char *p = xml;

	while ((p = strchr(p, '<')) && (strncmp(p + 1, name, len) != 0 || p[len + 1] != '>'))
		p++;
	if (!p)
		return false;
	for (p += len + 2; *p && *p != '<'; p++) {
		char c = *p;

		for (size_t i = 0; c == '&' && i < sizeof entities / sizeof entities[0]; i++) {
			size_t l = strlen(entities[i]) - 1;

			if (strncmp(p, entities[i], l) == 0) {
				c = entities[i][l];
				p += l - 1;
				break;
			}
		}
		if (n + 1 >= size)
			return false;
		out[n++] = c;
	}
	out[n] = '\0';
	return *p == '<';
}

/* The type of a JSON failure: "prefix#Name" or "Name:address". */
static void
json_code(const char *text, char out[SB_AWSCALL_CODE_MAX])
{
	const char *hash = strchr(text, '#');
	size_t len;

	text = hash ? hash + 1 : text;
	len = strcspn(text, ":");
	(void)snprintf(out, SB_AWSCALL_CODE_MAX, "%.*s", (int)(len < 80 ? len : 80), text);
}

void
sb_awscall_code(const struct sb_rest_answer *a, char out[SB_AWSCALL_CODE_MAX])
{
	const char *type = sb_rest_header(a, "x-amzn-errortype");
	const char *body = (char *)a->body.data;

	out[0] = '\0';
	if (type)
		json_code(type, out);
	else if (a->body.len > 0 && body[strspn(body, " \t\r\n")] == '{') {
		json_t *j = json_loadb(body, a->body.len, 0, NULL);
		const char *t = json_string_value(json_object_get(j, "__type"));

		if (t)
			json_code(t, out);
		json_decref(j);
	} else if (a->body.len > 0 &&
		!sb_awscall_xml_text(body, "Code", out, SB_AWSCALL_CODE_MAX)) {
		out[0] = '\0';
	}
}

static bool
in_list(const char *code, const char *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(code, v[i]) == 0)
			return true;
	return false;
}
#define IN(code, list) in_list(code, list, sizeof(list) / sizeof((list)[0]))

static bool
throttling(const char *code)
{
	static const char *const codes[] = { "Throttling", "ThrottlingException",
		"ThrottledException", "RequestThrottled", "RequestThrottledException",
		"TooManyRequestsException", "RequestLimitExceeded", "BandwidthLimitExceeded",
		"SlowDown", "PriorRequestNotComplete", "EC2ThrottledException" };

	return IN(code, codes);
}

static bool
expired(const char *code)
{
	static const char *const codes[] = { "RequestExpired", "ExpiredToken",
		"ExpiredTokenException" };

	return IN(code, codes);
}

/*
 * Whether the answer's Date shows our clock to be the trouble; then it is corrected. Anybody can
 * claim a time over plain HTTP: it is believed with TLS, and where the service said that our time
 * is wrong.
 */
static bool
correct_clock(struct sb_awscall *a, const struct sb_rest_answer *ans, const char *code)
{
	static const char *const codes[] = { "RequestTimeTooSkewed", "RequestExpired",
		"AuthFailure", "InvalidSignatureException", "SignatureDoesNotMatch" };
	const char *date = sb_rest_header(ans, "date");
	int64_t there = date ? (int64_t)curl_getdate(date, NULL) : -1;
	int64_t off = there - (int64_t)time(NULL);
	int64_t was = atomic_load(&a->offset_s);

	if (!IN(code, codes) || there < 0 || (!a->tls && strcmp(code, codes[0]) != 0))
		return false;
	if (llabs(off - was) <= SKEW_S)
		return false;
	atomic_store(&a->offset_s, off);
	sb_log(&a->log, SB_LOG_WARN, "aws", "our clock is %lld s %s that of %s: signed with theirs",
		(long long)llabs(off), off > 0 ? "behind" : "ahead of", a->host);
	return true;
}

/* Random, up to 2^n-1 seconds. */
static int
back_off(unsigned n, const struct sb_rest_wait *wait, struct sb_error *err)
{
	int64_t most = n < 6 ? INT64_C(1000) << (n - 1) : PAUSE_MAX_MS;
	const struct sb_cancel *cancel = wait ? wait->cancel : NULL;
	sb_deadline end = wait ? wait->deadline : SB_NEVER;
	uint32_t rnd;
	int64_t until;
	int r = sb_random(&rnd, sizeof rnd, err);

	if (most > PAUSE_MAX_MS)
		most = PAUSE_MAX_MS;
	until = sb_now_ms() + (int64_t)(rnd % (uint32_t)most) + 1;
	while (r == 0 && sb_now_ms() < until) {
		struct pollfd p = { .fd = sb_cancel_fd(cancel), .events = POLLIN };

		r = sb_check_alive(cancel, end, "AWS is throttling", err);
		if (r == 0)
			(void)poll(&p, 1, sb_deadline_poll_ms(sb_deadline_min(until, end)));
	}
	return r;
}

int
sb_awscall_do(struct sb_awscall *a, const struct sb_rest_request *q, const char *payload,
	const struct sb_rest_wait *wait, struct sb_rest_answer *out, struct sb_error *err)
{
	struct call c = { a, q, payload, wait ? wait->cancel : NULL };
	bool renewed = false, corrected = false;
	char hash[SB_SIGV4_HASH_MAX], code[SB_AWSCALL_CODE_MAX];
	struct sb_rest_request mine = *q;
	unsigned throttled = 0;
	int r = 0;

	if (!payload) {
		r = sb_sigv4_hash(q->body, q->body_len, hash, err);
		c.payload = hash;
	}
	mine.sign = sign;
	mine.sign_arg = &c;
	while (r == 0) {
		sb_rest_answer_free(out);
		r = sb_rest_call(a->rest, &mine, wait, out, err);
		if (r < 0 || out->status < 400 || (q->read && !q->rewind))
			break;
		sb_awscall_code(out, code);
		if (expired(code) && !renewed) {
			renewed = true;
			sb_awschain_expired(a->chain);
		} else if (!corrected && correct_clock(a, out, code)) {
			corrected = true;
		} else if (throttling(code) && throttled < a->throttled) {
			r = back_off(++throttled, wait, err);
		} else {
			break;
		}
		if (r == 0 && q->read)
			r = q->rewind(q->read_arg, err);
	}
	return r;
}

int
sb_awscall_check(const struct sb_rest_answer *a, const char *what, struct sb_error *err)
{
	static const char *const auth[] = { "AuthFailure", "SignatureDoesNotMatch",
		"InvalidClientTokenId", "UnrecognizedClientException", "InvalidAccessKeyId",
		"RequestTimeTooSkewed", "RequestExpired", "ExpiredToken", "ExpiredTokenException",
		"InvalidSignatureException", "InvalidToken" };
	const char *id = sb_rest_header(a, "x-amz-request-id");
	char code[SB_AWSCALL_CODE_MAX], message[256] = "";
	int c;

	if (a->status >= 200 && a->status < 300)
		return 0;
	sb_awscall_code(a, code);
	if (a->body.len > 0 &&
		!sb_awscall_xml_text((char *)a->body.data, "Message", message, sizeof message))
		message[0] = '\0';
	if (!id)
		id = sb_rest_header(a, "x-amzn-requestid");
	if (throttling(code) || a->status == 429)
		c = SB_E_LIMIT;
	else if (IN(code, auth) || a->status == 401)
		c = SB_E_AUTH;
	else if (a->status == 404 || strstr(code, "NotFound"))
		c = SB_E_NOTFOUND;
	else if (a->status == 403)
		c = SB_E_DENIED;
	else if (a->status == 409 || a->status == 412)
		c = SB_E_CONFLICT;
	else if (a->status >= 500)
		c = a->status == 501 ? SB_E_UNSUPPORTED : SB_E_UNAVAILABLE;
	else
		c = a->status == 400 ? SB_E_INVAL : SB_E_PEER;
	return sb_fail(err, c, "%s: HTTP %d%s%s%s%.200s%s%.60s", what, a->status,
		code[0] ? " " : "", code, message[0] ? ": " : "", message, id ? ", request " : "",
		id ? id : "");
}
