/* SPDX-License-Identifier: MIT */
/* The settings of a session that its user changes: pause, conflicts, labels, the way there. */
#include "config.h"

#include <sbsync/session.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/cleanup.h>
#include <sync/session/session-hold.h>
#include <sync/session/session-policy.h>
#include <sync/session/session-store.h>

int
sb_session_take_rule(struct sb_session *s, const char *text, struct sb_error *err)
{
	const char *eq = strrchr(text, '=');
	sb_autofree char *pattern = eq ? strndup(text, (size_t)(eq - text)) : NULL;
	enum sb_session_conflict how;

	if (eq && !pattern)
		return sb_fail(err, SB_E_NOMEM, "session: out of memory");
	if (!eq || eq == text || !sb_session_conflict_of(eq + 1, &how))
		return sb_fail(err, SB_E_USAGE,
			"'%s' is no conflict rule: write PATTERN=both, =local, =runtime or =merge",
			text);
	return sb_session_add_rule(s, pattern, how, err);
}

bool
sb_session_label_ok(const char *label)
{
	size_t key =
		strspn(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/");

	if (!key || key > 63 || label[key] != '=' || strlen(label) > 255)
		return false;
	for (const unsigned char *p = (const unsigned char *)label; *p; p++)
		if (*p < 0x20 || *p == 0x7f)
			return false;
	return true;
}

int
sb_session_set_label(struct sb_session *s, const char *label, struct sb_error *err)
{
	size_t key = strcspn(label, "=");
	sb_auto(sb_strlist) struct sb_strlist all = { 0 };
	int r;

	if (!sb_session_label_ok(label))
		return sb_fail(err, SB_E_USAGE,
			"'%s' is no label: write KEY=VALUE, with letters, digits, '.', '_', '-' "
			"and '/' in KEY",
			label);
	for (size_t i = 0; i < s->labels.n; i++)
		if (strncmp(s->labels.v[i], label, key + 1) != 0)
			sb_strlist_add(&all, s->labels.v[i]);
	if (label[key + 1])
		sb_strlist_add(&all, label);
	r = sb_strlist_check(&all, err);
	if (r < 0)
		return r;
	sb_strlist_free(&s->labels);
	s->labels = all;
	all = (struct sb_strlist){ 0 };
	return 0;
}

static int
set_text(char **to, const char *value, struct sb_error *err)
{
	char *copy = value && *value ? strdup(value) : NULL;

	if (!value)
		return 0;
	if (*value && !copy)
		return sb_fail(err, SB_E_NOMEM, "session: out of memory");
	free(*to);
	*to = copy;
	return 0;
}

static int
set_rules(struct sb_session *s, const char *const *rules, struct sb_error *err)
{
	int r = 0;

	if (!rules)
		return 0;
	for (size_t i = 0; i < s->n_rules; i++)
		free(s->rules[i].pattern);
	s->n_rules = 0;
	for (size_t i = 0; r == 0 && rules[i]; i++)
		r = sb_session_take_rule(s, rules[i], err);
	return r;
}

static int
apply(struct sb_session *s, const struct sb_session_edit *e, struct sb_error *err)
{
	struct sb_session_policies policies = { 0 };
	int r = set_rules(s, e->conflict_rules, err);

	for (size_t i = 0; r == 0 && e->labels && e->labels[i]; i++)
		r = sb_session_set_label(s, e->labels[i], err);
	if (r == 0)
		r = set_text(&s->identity_file, e->identity_file, err);
	if (r == 0)
		r = set_text(&s->ssh_config, e->ssh_config, err);
	if (r == 0)
		r = set_text(&s->known_hosts, e->known_hosts, err);
	if (r == 0)
		r = set_text(&s->rsh, e->rsh, err);
	if (r < 0)
		return r;
	if (e->conflict != SB_SESSION_AS_STARTED)
		s->conflict = e->conflict;
	if (e->port >= 0)
		s->port = e->port;
	if (e->pause >= 0)
		s->paused = !e->pause ? 0 : s->paused ? s->paused : time(NULL);
	/* Patterns that mean nothing are refused now, not by the next sync. */
	r = sb_session_policies_make(s, SB_SESSION_AS_STARTED, &policies, err);
	sb_session_policies_free(&policies);
	return r;
}

int
sb_session_edit(struct sb_session *s, const char *state_dir, const struct sb_session_edit *e,
	struct sb_error *err)
{
	sb_auto(sb_session) struct sb_session now = { 0 };
	struct sb_session_held h;
	int r = sb_session_hold(state_dir, s->name, false, &h, err);

	if (r < 0)
		return r;
	r = sb_session_load(state_dir, s->name, NULL, &now, err);
	if (r == 0 && now.state == SB_SESSION_STOPPED)
		r = sb_fail(err, SB_E_STATE,
			"session '%s' is stopped: sbsync start %s %s opens it "
			"anew",
			s->name, now.pairs[0].local, now.pairs[0].remote);
	if (r == 0)
		r = apply(&now, e, err);
	if (r == 0)
		r = sb_session_save(h.dirfd, &now, err);
	sb_session_let_go(&h);
	if (r < 0)
		return r;
	sb_session_free(s);
	*s = now;
	memset(&now, 0, sizeof now);
	return 0;
}
