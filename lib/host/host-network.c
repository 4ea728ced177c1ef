/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/host-network.h>

#include <string.h>

#include <base/buf.h>
#include <base/str.h>
#include <egress/httphead.h>
#include <egress/netpolicy.h>
#include <host/host-map.h>
#include <host/host-op.h>
#include <host/host-priv.h>

static int
add_list(struct sb_netpolicy *p, struct sb_buf *text, const char *const *v, size_t n, bool deny,
	struct sb_error *err)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		r = deny ? sb_netpolicy_deny(p, v[i], err) : sb_netpolicy_allow(p, v[i], err);
		sb_buf_addf(text, "%s %s\n", deny ? "deny" : "allow", v[i]);
	}
	return r;
}

int
sb_host_network_text(const char *const *allow, size_t n_allow, const char *const *deny,
	size_t n_deny, bool all, char **out, struct sb_error *err)
{
	static const char *const everything[] = { "*" };
	sb_auto(sb_netpolicy) struct sb_netpolicy *p = sb_netpolicy_new(err);
	sb_auto(sb_buf) struct sb_buf text;
	int r;

	sb_buf_init(&text, SB_NETPOLICY_TEXT_MAX);
	if (!p)
		return SB_E_NOMEM;
	if (n_allow == 0 && all) {
		allow = everything;
		n_allow = 1;
	}
	r = add_list(p, &text, allow, n_allow, false, err);
	if (r == 0)
		r = add_list(p, &text, deny, n_deny, true, err);
	if (r == 0)
		r = sb_buf_check(&text, "network policy", err);
	if (r == 0)
		*out = (char *)sb_buf_detach(&text, NULL);
	return r < 0 ? r : *out ? 0 : sb_fail(err, SB_E_NOMEM, "network policy");
}

bool
sb_host_network_resolver_ok(const char *text)
{
	struct sb_httphead_peer p;

	return sb_httphead_parse_peer(text, strlen(text), &p) && !p.name[0];
}

int
sb_host_network_tell(struct sb_hsess *s, struct sb_error *err)
{
	size_t cut;

	if (s->network != SB_HOST_NET_OUTBOUND || !s->rt->ops->policy)
		return 0;
	return s->rt->ops->policy(s->rt, s->id, s->policy ? s->policy : "", &cut, err);
}

void
sb_host_network_forget(const struct sb_hsess *s)
{
	size_t cut;

	if (s->network == SB_HOST_NET_OUTBOUND && s->rt && s->rt->ops->policy)
		(void)s->rt->ops->policy(s->rt, s->id, NULL, &cut, NULL);
}

/* The value behind the key: a string without quotes in it, as all here are, or a number. */
static const char *
member(const char *line, const char *key, char *out, size_t size)
{
	const char *p = strstr(line, key);
	bool text = key[strlen(key) - 1] == '"';
	size_t n = p ? strcspn(p + strlen(key), text ? "\"" : ",}") : 0;

	(void)snprintf(out, size, "%.*s", p ? (int)n : 0, p ? p + strlen(key) : "");
	return out;
}

static void
count_refusal(struct sb_host *h, const char *session, const char *line)
{
	sb_auto(sb_hsess) struct sb_hsess *s = sb_host_map_find(h, session, NULL);
	char name[260], addr[48], port[8], rule[60];
	bool has_port, both;

	if (!s)
		return;
	(void)member(line, "\"name\":\"", name, sizeof name);
	(void)member(line, "\"address\":\"", addr, sizeof addr);
	(void)member(line, "\"port\":", port, sizeof port);
	(void)member(line, "\"rule\":\"", rule, sizeof rule);
	has_port = strcmp(port, "0") != 0;
	both = name[0] && addr[0];
	(void)pthread_mutex_lock(&s->mu);
	s->refused++;
	(void)snprintf(s->refused_last, sizeof s->refused_last, "%.150s%s%s%s%s (%s)",
		name[0] ? name : addr, has_port ? ":" : "", has_port ? port : "",
		both ? " at " : "", both ? addr : "", rule);
	(void)pthread_mutex_unlock(&s->mu);
}

void
sb_host_network_event(const char *session, const char *line, void *arg)
{
	static const char *const kinds[][2] = { { "\"verdict\":\"allow\"", "network.allow" },
		{ "\"verdict\":\"deny\"", "network.deny" },
		{ "\"verdict\":\"cut\"", "network.cut" } };
	const char *kind = "network.error";
	struct sb_host *h = arg;

	/* Strings in the line are quoted, so a name cannot look like a verdict. */
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (strstr(line, kinds[i][0]))
			kind = kinds[i][1];
	if (strcmp(kind, "network.deny") == 0)
		count_refusal(h, session, line);
	sb_host_event_note(h->events, kind, session, line, SB_HOST_ACTIVE);
	sb_host_event_flush(h->events);
}

/* One change at a time, so that database and runtime take them in the same order. */
static int
set(struct sb_host *h, struct sb_hsess *s, char **text, size_t *cut, struct sb_error *err)
{
	int r;

	(void)pthread_mutex_lock(&s->network_mu);
	(void)pthread_mutex_lock(&s->mu);
	if (s->gone || s->state == SB_HOST_DESTROYING)
		r = sb_fail(err, SB_E_SESSION_NOT_FOUND, "%s: %s",
			sb_code_text(SB_E_SESSION_NOT_FOUND), s->id);
	else if (s->network != SB_HOST_NET_OUTBOUND)
		r = sb_fail(err, SB_E_INVALID_STATE,
			"session %s has network %s, which has no lists: make one with network "
			"outbound",
			s->id, sb_host_network_name(s->network));
	else
		r = sb_hostdb_policy_set(h->db, s->uid, *text, err);
	if (r == 0) {
		char *old = s->policy;

		s->policy = *text;
		*text = old;
	}
	(void)pthread_mutex_unlock(&s->mu);
	if (r == 0)
		r = s->rt->ops->policy(s->rt, s->id, s->policy, cut, err);
	(void)pthread_mutex_unlock(&s->network_mu);
	return r;
}

int
sb_host_network_set(struct sb_host *h, const char *id, const char *const *allow, size_t n_allow,
	const char *const *deny, size_t n_deny, size_t *cut, struct sb_error *err)
{
	sb_auto(sb_hsess) struct sb_hsess *s = NULL;
	sb_autofree char *text = NULL;
	struct sb_error why = { 0 };
	int r = sb_host_network_text(allow, n_allow, deny, n_deny, false, &text, &why);

	*cut = 0;
	if (r == 0)
		r = sb_host_call_begin(h, true, &why);
	if (r == 0) {
		s = sb_host_map_find(h, id, &why);
		r = s ? set(h, s, &text, cut, &why) : why.code;
		if (r == 0)
			sb_host_event_note(h->events, "network.policy", id, NULL, SB_HOST_ACTIVE);
		sb_host_call_end(h);
	}
	if (r < 0 && err)
		*err = why;
	return r;
}
