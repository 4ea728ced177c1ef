/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <egress/netpolicy.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sb/log.h>

enum kind { ENTRY_ANY, ENTRY_NAME, ENTRY_SUFFIX, ENTRY_BLOCK };

struct entry {
	enum kind kind;
	bool deny;
	uint16_t lo, hi; /* ports */
	char *name;      /* NAME; SUFFIX: with its leading dot */
	struct sb_netblock block;
	char *text; /* as it was written */
};

struct sb_netpolicy {
	struct entry *v;
	size_t n;
};

struct sb_netpolicy *
sb_netpolicy_new(struct sb_error *err)
{
	struct sb_netpolicy *p = calloc(1, sizeof *p);

	if (!p)
		(void)sb_fail(err, SB_E_NOMEM, "network policy");
	return p;
}

static void
entry_free(struct entry *e)
{
	free(e->name);
	free(e->text);
}

void
sb_netpolicy_free(struct sb_netpolicy *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++)
		entry_free(&p->v[i]);
	free(p->v);
	free(p);
}

/* "N" or "N-M" behind the last colon; none: all ports. False when it is no such thing. */
static bool
parse_ports(const char *s, size_t len, struct entry *e)
{
	unsigned long v[2] = { 0, 0 };
	size_t at = 0;
	int n = 0;

	for (; n < 2; n++) {
		size_t digits = 0;

		while (at < len && isdigit((unsigned char)s[at]) && digits < 6) {
			v[n] = v[n] * 10 + (unsigned long)(s[at++] - '0');
			digits++;
		}
		if (digits == 0 || v[n] < 1 || v[n] > 65535)
			return false;
		if (n == 0 && (at == len || s[at] != '-'))
			break;
		at += n == 0;
	}
	if (n == 0)
		v[1] = v[0];
	e->lo = (uint16_t)v[0];
	e->hi = (uint16_t)v[1];
	return at == len && v[0] <= v[1];
}

static const char form[] = "use HOST, *.SUFFIX, ADDRESS, ADDRESS/BITS or *, with :PORT or "
			   ":PORT-PORT behind it if need be; [ADDRESS]:PORT for IPv6";

static int
bad(const char *text, const char *why, struct sb_error *err)
{
	char shown[80];

	return sb_fail(err, SB_E_INVAL, "network entry \"%s\"%s%s: %s",
		sb_escape(text, strlen(text), shown, sizeof shown), *why ? ": " : "", why, form);
}

/* An address that can never be reached must not look as if it were listed. */
static int
check_block(const char *text, const struct entry *e, struct sb_error *err)
{
	const struct sb_netspecial *s = sb_netaddr_special(&e->block.a);
	char shown[80];

	if (e->deny || !s || !s->never || !sb_netaddr_block_within(&e->block, &s->block))
		return 0;
	return sb_fail(err, SB_E_INVAL,
		"network entry \"%s\": these addresses are %s and cannot be allowed; take it "
		"out of the list",
		sb_escape(text, strlen(text), shown, sizeof shown), s->what);
}

static int
parse_place(const char *text, const char *s, size_t len, struct entry *e, struct sb_error *err)
{
	char name[SB_NETNAME_MAX];

	if (len == 1 && *s == '*') {
		e->kind = ENTRY_ANY;
		return 0;
	}
	if (sb_netaddr_parse_block(s, len, &e->block)) {
		e->kind = ENTRY_BLOCK;
		return check_block(text, e, err);
	}
	if (memchr(s, '/', len))
		return bad(text, "no network of that form (bits behind the prefix must be zero)",
			err);
	e->kind = len > 2 && s[0] == '*' && s[1] == '.' ? ENTRY_SUFFIX : ENTRY_NAME;
	if (e->kind == ENTRY_SUFFIX) {
		s += 2;
		len -= 2;
	}
	if (!sb_netname_check(s, len, name))
		return bad(text, memchr(s, '*', len) ? "a * stands only at the beginning" : "",
			err);
	e->name = malloc(strlen(name) + 2);
	if (!e->name)
		return sb_fail(err, SB_E_NOMEM, "network policy");
	(void)snprintf(e->name, strlen(name) + 2, "%s%s", e->kind == ENTRY_SUFFIX ? "." : "", name);
	return 0;
}

/* Cuts the ports off: "[v6]:443", "name:443"; a bare IPv6 address has colons and no ports. */
static int
parse_entry(const char *text, struct entry *e, struct sb_error *err)
{
	const char *s = text, *colon = strrchr(text, ':'), *close = NULL;
	size_t len = strlen(text);

	e->lo = 1;
	e->hi = 65535;
	if (*s == '[') {
		close = strchr(s, ']');
		if (!close || (close[1] && close[1] != ':') || close == s + 1)
			return bad(text, "", err);
		if (close[1] && !parse_ports(close + 2, strlen(close + 2), e))
			return bad(text, "not a port of 1 to 65535", err);
		if (!memchr(s + 1, ':', (size_t)(close - s - 1)))
			return bad(text, "brackets are for IPv6 addresses", err);
		return parse_place(text, s + 1, (size_t)(close - s - 1), e, err);
	}
	if (colon && strchr(text, ':') == colon) {
		if (!parse_ports(colon + 1, strlen(colon + 1), e))
			return bad(text, "not a port of 1 to 65535", err);
		len = (size_t)(colon - text);
	}
	return parse_place(text, s, len, e, err);
}

static int
add(struct sb_netpolicy *p, const char *text, bool deny, struct sb_error *err)
{
	struct entry e = { .deny = deny }, *v;
	int r;

	if (p->n >= SB_NETPOLICY_ENTRIES)
		return sb_fail(err, SB_E_LIMIT, "network policy: more than %d entries",
			SB_NETPOLICY_ENTRIES);
	if (strlen(text) > SB_NETPOLICY_ENTRY_MAX)
		return bad(text, "too long", err);
	r = parse_entry(text, &e, err);
	e.text = r == 0 ? strdup(text) : NULL;
	v = e.text ? reallocarray(p->v, p->n + 1, sizeof *v) : NULL;
	if (!v) {
		entry_free(&e);
		return r < 0 ? r : sb_fail(err, SB_E_NOMEM, "network policy");
	}
	p->v = v;
	p->v[p->n++] = e;
	return 0;
}

int
sb_netpolicy_allow(struct sb_netpolicy *p, const char *entry, struct sb_error *err)
{
	return add(p, entry, false, err);
}

int
sb_netpolicy_deny(struct sb_netpolicy *p, const char *entry, struct sb_error *err)
{
	return add(p, entry, true, err);
}

static int
parse_line(struct sb_netpolicy *p, const char *line, size_t len, size_t number,
	struct sb_error *err)
{
	char text[SB_NETPOLICY_ENTRY_MAX + 16];
	bool deny = len > 5 && memcmp(line, "deny ", 5) == 0;
	bool allow = len > 6 && memcmp(line, "allow ", 6) == 0;
	size_t skip = deny ? 5 : 6;
	int r;

	if (len == 0)
		return 0;
	if ((!deny && !allow) || len >= sizeof text || memchr(line, '\0', len))
		return sb_fail(err, SB_E_INVAL,
			"network policy: line %zu is neither \"allow ENTRY\" nor \"deny ENTRY\"",
			number);
	memcpy(text, line, len);
	text[len] = '\0';
	r = add(p, text + skip, deny, err);
	return r < 0 ? sb_wrap(err, r, "line %zu", number) : 0;
}

struct sb_netpolicy *
sb_netpolicy_parse(const char *text, size_t len, struct sb_error *err)
{
	sb_auto(sb_netpolicy) struct sb_netpolicy *p = sb_netpolicy_new(err);
	size_t number = 1;

	for (size_t at = 0; p && at < len; number++) {
		const char *nl = memchr(text + at, '\n', len - at);
		size_t n = nl ? (size_t)(nl - text) - at : len - at;

		if (parse_line(p, text + at, n, number, err) < 0)
			return NULL;
		at += n + 1;
	}
	return sb_steal(&p);
}

/* --- decisions --- */

static bool
port_fits(const struct entry *e, uint16_t port)
{
	return port >= e->lo && port <= e->hi;
}

static bool
name_fits(const struct entry *e, const char *name)
{
	size_t n, m;

	switch (e->kind) {
	case ENTRY_ANY: return true;
	case ENTRY_NAME: return strcmp(e->name, name) == 0;
	case ENTRY_SUFFIX:
		n = strlen(name);
		m = strlen(e->name);
		return n > m && strcmp(name + n - m, e->name) == 0;
	case ENTRY_BLOCK: break;
	}
	return false;
}

static bool
decide(struct sb_netverdict *out, bool allow, const char *before, const char *rule)
{
	out->allow = allow;
	(void)snprintf(out->rule, sizeof out->rule, "%s%s", before, rule);
	return allow;
}

bool
sb_netpolicy_denies_name(const struct sb_netpolicy *p, const char *name, uint16_t port,
	struct sb_netverdict *out)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct entry *e = &p->v[i];
		bool ports = port ? port_fits(e, port) : e->lo == 1 && e->hi == 65535;

		if (e->deny && ports && name_fits(e, name))
			return !decide(out, false, "deny ", e->text);
	}
	return false;
}

bool
sb_netpolicy_name(const struct sb_netpolicy *p, const char *name, uint16_t port,
	struct sb_netverdict *out)
{
	if (sb_netpolicy_denies_name(p, name, port, out))
		return false;
	/* The host itself is an address that has to be listed; asking for its name is free. */
	if (strcmp(name, SB_NETNAME_HOST) == 0)
		return decide(out, true, "", SB_NETNAME_HOST);
	for (size_t i = 0; i < p->n; i++) {
		const struct entry *e = &p->v[i];

		if (!e->deny && (port == 0 || port_fits(e, port)) && name_fits(e, name))
			return decide(out, true, "allow ", e->text);
	}
	return decide(out, false, "", "unlisted");
}

/* An entry that allows this very part of a special range, not one that happens to contain it. */
static const struct entry *
listed(const struct sb_netpolicy *p, const struct sb_netaddr *a, uint16_t port,
	const struct sb_netblock *range)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct entry *e = &p->v[i];

		if (!e->deny && e->kind == ENTRY_BLOCK && port_fits(e, port) &&
			sb_netaddr_block_has(&e->block, a) &&
			sb_netaddr_block_within(&e->block, range))
			return e;
	}
	return NULL;
}

static bool
special_addr(const struct sb_netpolicy *p, const struct sb_netaddr *a, uint16_t port,
	const struct sb_netspecial *s, struct sb_netverdict *out)
{
	/* An address of this host, if it is in no special range, must be listed by itself. */
	const struct sb_netblock alone = { *a, a->family == 4 ? 32 : 128 };
	const struct entry *e = s && s->never ? NULL : listed(p, a, port, s ? &s->block : &alone);

	if (e)
		return decide(out, true, "allow ", e->text);
	return decide(out, false, s ? s->what : "own-address",
		s && s->never ? "" : " address, not listed");
}

bool
sb_netpolicy_addr(const struct sb_netpolicy *p, const struct sb_netaddr *a, uint16_t port,
	bool named, bool own, struct sb_netverdict *out)
{
	const struct sb_netspecial *s = sb_netaddr_special(a);

	for (size_t i = 0; i < p->n; i++) {
		const struct entry *e = &p->v[i];

		if (e->deny && port_fits(e, port) &&
			(e->kind == ENTRY_ANY ||
				(e->kind == ENTRY_BLOCK && sb_netaddr_block_has(&e->block, a))))
			return decide(out, false, "deny ", e->text);
	}
	if (s || own)
		return special_addr(p, a, port, s, out);
	if (named)
		return decide(out, true, "", "looked-up");
	for (size_t i = 0; i < p->n; i++) {
		const struct entry *e = &p->v[i];

		if (!e->deny && port_fits(e, port) &&
			(e->kind == ENTRY_ANY ||
				(e->kind == ENTRY_BLOCK && sb_netaddr_block_has(&e->block, a))))
			return decide(out, true, "allow ", e->text);
	}
	return decide(out, false, "", "unlisted");
}

static bool
has_names(const struct sb_netpolicy *p, bool deny)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].deny == deny &&
			(p->v[i].kind == ENTRY_NAME || p->v[i].kind == ENTRY_SUFFIX))
			return true;
	return false;
}

bool
sb_netpolicy_has_denied_names(const struct sb_netpolicy *p)
{
	return has_names(p, true);
}

bool
sb_netpolicy_has_allowed_names(const struct sb_netpolicy *p)
{
	return has_names(p, false);
}
