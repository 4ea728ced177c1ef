/* SPDX-License-Identifier: MIT */
/* Requests to a control: mistakes in them, and what tells two of them apart. */
#include "config.h"

#include <control/control-priv.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/buf.h>
#include <base/random.h>
#include <base/str.h>
#include <base/utf8.h>
#include <egress/netpolicy.h>
#include <sb/trust.h>
#include <tool/environ.h>

#define CPUS_MAX 1024
#define MB_MAX (INT64_C(1) << 40)
#define LIFETIME_MAX (INT64_C(366) * 86400000)
#define READY_MAX 600000
#define BASE_MAX 255
#define REQUEST_MAX (1u << 20)

static int
text_check(const char *what, const char *s, size_t max, struct sb_error *err)
{
	size_t len = strlen(s);
	char shown[200];

	if (len > max)
		return sb_fail(err, SB_E_INVAL, "%s \"%.60s\" is longer than %zu bytes", what,
			sb_escape(s, 60, shown, sizeof shown), max);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			return sb_fail(err, SB_E_INVAL, "%s \"%s\" has a control character in it",
				what, sb_escape(s, len, shown, sizeof shown));
	for (size_t i = 0, n; i < len; i += n) {
		int took = sb_utf8_next((const uint8_t *)s + i, len - i, NULL);

		if (took <= 0)
			return sb_fail(err, SB_E_INVAL, "%s \"%s\" is not UTF-8", what,
				sb_escape(s, len, shown, sizeof shown));
		n = (size_t)took;
	}
	return 0;
}

static int
label_check(const char *label, struct sb_error *err)
{
	const char *eq = strchr(label, '=');
	size_t len = eq ? (size_t)(eq - label) : 0;
	int r = text_check("label", label,
		SB_CONTROL_LABEL_KEY_MAX + 1 + SB_CONTROL_LABEL_VALUE_MAX, err);

	if (r < 0)
		return r;
	if (len == 0)
		return sb_fail(err, SB_E_INVAL, "label \"%.60s\": write KEY=VALUE", label);
	if (len > SB_CONTROL_LABEL_KEY_MAX || strlen(eq + 1) > SB_CONTROL_LABEL_VALUE_MAX)
		return sb_fail(err, SB_E_INVAL,
			"label \"%.60s\": at most %d bytes of key and %d of value", label,
			SB_CONTROL_LABEL_KEY_MAX, SB_CONTROL_LABEL_VALUE_MAX);
	if (sb_str_starts(label, SB_CONTROL_LABEL_OWN) || sb_str_starts(label, "aws:"))
		return sb_fail(err, SB_E_INVAL, "label \"%.60s\": keys that begin so are taken",
			label);
	return 0;
}

int
sb_control_request_labels(const char *const *labels, struct sb_error *err)
{
	size_t n = sb_strlist_count(labels);
	int r = 0;

	if (n > SB_CONTROL_LABELS_MAX)
		return sb_fail(err, SB_E_INVAL, "%zu labels: at most %d are possible", n,
			SB_CONTROL_LABELS_MAX);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = label_check(labels[i], err);
		for (size_t k = 0; r == 0 && k < i; k++)
			if (strncmp(labels[k], labels[i], strcspn(labels[i], "=") + 1) == 0)
				r = sb_fail(err, SB_E_INVAL, "label \"%.*s\" comes twice",
					(int)strcspn(labels[i], "="), labels[i]);
	}
	return r;
}

static int
key_check(const char *key, struct sb_error *err)
{
	size_t len = strlen(key);
	char shown[200];

	for (size_t i = 0; i < len; i++)
		if (key[i] < 0x20 || key[i] > 0x7e)
			len = 0;
	if (len == 0 || len > SB_CONTROL_KEY_MAX)
		return sb_fail(err, SB_E_INVAL,
			"key \"%.60s\": write 1 to %d characters of printable ASCII",
			sb_escape(key, strnlen(key, 60), shown, sizeof shown), SB_CONTROL_KEY_MAX);
	return 0;
}

static int
resources_check(double cpus, uint64_t mem_mb, uint64_t disk_mb, struct sb_error *err)
{
	if (!isfinite(cpus) || cpus < 0 || cpus > CPUS_MAX)
		return sb_fail(err, SB_E_INVAL, "cpus %g: write a number up to %d", cpus, CPUS_MAX);
	if (mem_mb > MB_MAX || disk_mb > MB_MAX)
		return sb_fail(err, SB_E_INVAL, "%llu MB of %s is too much",
			(unsigned long long)(mem_mb > MB_MAX ? mem_mb : disk_mb),
			mem_mb > MB_MAX ? "memory" : "disk");
	return 0;
}

static int
network_check(const struct sb_control_create_opts *o, struct sb_error *err)
{
	sb_auto(sb_netpolicy) struct sb_netpolicy *p = sb_netpolicy_new(err);
	int r = p ? 0 : SB_E_NOMEM;

	if (r == 0 && o->network == SB_CONTROL_NET_NONE && (o->allow || o->deny))
		r = sb_fail(err, SB_E_INVAL, "network none takes no lists");
	for (const char *const *e = o->allow; r == 0 && e && *e; e++)
		r = sb_netpolicy_allow(p, *e, err);
	for (const char *const *e = o->deny; r == 0 && e && *e; e++)
		r = sb_netpolicy_deny(p, *e, err);
	return r;
}

int
sb_control_request_create(const struct sb_control_create_opts *o, struct sb_error *err)
{
	int r = sb_control_request_labels(o->labels, err);

	if (r == 0 && o->key)
		r = key_check(o->key, err);
	if (r == 0 && o->base)
		r = text_check("base", o->base, BASE_MAX, err);
	if (r == 0)
		r = resources_check(o->cpus, o->mem_mb, o->disk_mb, err);
	if (r == 0 && (o->lifetime_ms < 0 || o->lifetime_ms > LIFETIME_MAX))
		r = sb_fail(err, SB_E_INVAL, "a lifetime of %lld ms: at most a year is possible",
			(long long)o->lifetime_ms);
	return r < 0 ? r : network_check(o, err);
}

int
sb_control_request_launch(const struct sb_control_launch_opts *o, struct sb_error *err)
{
	char shown[200];

	if (!o->binary || !o->binary[0])
		return sb_fail(err, SB_E_INVAL, "binary is empty: name a program");
	for (const char *const *e = o->env; e && *e; e++)
		/* The value may be a secret: the name alone is told. */
		if (!sb_environ_valid(*e))
			return sb_fail(err, SB_E_INVAL,
				"env: \"%s\" is not a variable's name: a letter or _, then "
				"letters, digits and _, then =",
				sb_escape(*e, strnlen(*e, strcspn(*e, "=")), shown, sizeof shown));
	if (o->expose_port < 0 || o->expose_port > 65535)
		return sb_fail(err, SB_E_INVAL, "port %d: write 1 to 65535, or 0 for none",
			o->expose_port);
	if (o->ready_ms < 0 || o->ready_ms > READY_MAX)
		return sb_fail(err, SB_E_INVAL, "ready_ms %lld: at most %d", (long long)o->ready_ms,
			READY_MAX);
	if (o->ready_ms && !o->expose_port)
		return sb_fail(err, SB_E_INVAL,
			"nothing to wait for: without a port a process is running at once");
	return resources_check(o->cpus, o->mem_mb, 0, err);
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The entries, sorted: their order says nothing. */
static void
add_sorted(struct sb_buf *b, char tag, const char *const *list)
{
	size_t n = sb_strlist_count(list);
	sb_autofree const char **v = n ? calloc(n, sizeof *v) : NULL;

	if (n && !v) {
		b->failed = SB_E_NOMEM;
		return;
	}
	for (size_t i = 0; i < n; i++)
		v[i] = list[i];
	if (n)
		qsort(v, n, sizeof *v, by_text);
	for (size_t i = 0; i < n; i++) {
		sb_buf_add_char(b, tag);
		sb_buf_add_bytes(b, v[i], strlen(v[i]));
	}
}

int
sb_control_request_digest(const struct sb_control_create_opts *o,
	char out[SB_CONTROL_DIGEST_LEN + 1], struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int r;

	sb_buf_init(&b, REQUEST_MAX);
	add_sorted(&b, 'l', o->labels);
	add_sorted(&b, 'a', o->allow);
	add_sorted(&b, 'd', o->deny);
	sb_buf_add_bytes(&b, o->base ? o->base : "", o->base ? strlen(o->base) : 0);
	sb_buf_addf(&b, "%.17g %llu %llu %d %lld", o->cpus, (unsigned long long)o->mem_mb,
		(unsigned long long)o->disk_mb, (int)o->network, (long long)o->lifetime_ms);
	r = sb_buf_check(&b, "request", err);
	return r < 0 ? r : sb_trust_digest(b.data, b.len, out, err);
}

int
sb_control_request_id(const char *key, char out[SB_CONTROL_NEW_ID_MAX], struct sb_error *err)
{
	char digest[SB_CONTROL_DIGEST_LEN + 1], hex[17];
	uint8_t raw[8];
	int r = key ? sb_trust_digest(key, strlen(key), digest, err) :
		      sb_random(raw, sizeof raw, err);

	if (r == 0)
		(void)snprintf(out, SB_CONTROL_NEW_ID_MAX, "%s-%.32s", key ? "sbk" : "sb",
			key ? digest : sb_str_hex(raw, sizeof raw, hex));
	return r;
}
