/* SPDX-License-Identifier: MIT */
/* What sandboxes with instances of their own can do: an instance is asked. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <base/random.h>
#include <base/str.h>
#include <control/instctl-priv.h>

static int
ask(struct sb_instctl *c, const struct sb_instance *i, const struct sb_control_call *call,
	struct sb_control_caps *out, struct sb_error *err)
{
	struct sb_hostcall *h = sb_instctl_host(c, i, err);
	bool limits = false;
	int r = h ? sb_hostsess_capabilities(h, call, out, &limits, err) : SB_E_UNAVAILABLE;

	sb_hostcall_free(h);
	out->fork = false;
	out->resources = limits && c->prov->ops->sizes;
	out->lifetime = c->prov->ops->lifetimes;
	out->concurrent_sandboxes = 0;
	return r;
}

/* An instance that is there already. SB_E_NOTFOUND: none runs. */
static int
ask_any(struct sb_instctl *c, const struct sb_control_call *call, struct sb_control_caps *out,
	struct sb_error *err)
{
	struct sb_instance_filter f = SB_INSTANCE_FILTER_INIT;
	sb_auto(sb_strlist) struct sb_strlist tags = { 0 };
	struct sb_instance *v = NULL;
	size_t n = 0;
	int r;

	sb_instctl_tags(c, NULL, &tags);
	f.tags = sb_strlist_borrow(&tags);
	f.states = 1u << SB_INSTANCE_RUNNING;
	r = sb_strlist_check(&tags, err);
	if (r == 0)
		r = sb_instance_list(c->prov, &f, call, &v, &n, err);
	if (r < 0)
		return r;
	r = SB_E_NOTFOUND;
	for (size_t i = 0; r < 0 && i < n; i++)
		r = ask(c, &v[i], call, out, NULL) < 0 ? SB_E_NOTFOUND : 0;
	sb_instance_list_free(v, n);
	return r;
}

/* One that is made to be asked, and goes again. */
static int
ask_new(struct sb_instctl *c, const struct sb_control_call *call, struct sb_control_caps *out,
	struct sb_error *err)
{
	struct sb_instance_launch l = SB_INSTANCE_LAUNCH_INIT;
	const struct sb_control_call end = { NULL, sb_deadline_in(60000), 0 };
	sb_auto(sb_instance) struct sb_instance i = { 0 }, up = { 0 };
	sb_auto(sb_strlist) struct sb_strlist tags = { 0 };
	sb_auto(sb_instctl_hold) struct sb_instctl_hold hold = SB_INSTCTL_HOLD_INIT;
	char token[40], hex[17];
	uint8_t raw[8];
	int r = sb_random(raw, sizeof raw, err);

	if (r < 0)
		return r;
	(void)snprintf(token, sizeof token, "probe-%s", sb_str_hex(raw, sizeof raw, hex));
	sb_instctl_tags(c, NULL, &tags);
	sb_strlist_addf(&tags, SB_INSTCTL_TAG_PROBE "=%s", token);
	l.token = token;
	l.tags = sb_strlist_borrow(&tags);
	l.image = c->image;
	r = sb_strlist_check(&tags, err);
	if (r == 0)
		r = sb_instctl_hold(c, token, true, call, &hold, err);
	if (r == 0)
		r = sb_instance_launch(c->prov, &l, call, &i, err);
	if (r < 0)
		return r;
	r = sb_instctl_wait(c, i.id, call, &up, err);
	if (r == 0)
		r = ask(c, &up, call, out, err);
	if (sb_instance_terminate(c->prov, i.id, &end, NULL) == 0)
		(void)sb_instctl_note(c, token, &hold, NULL, NULL);
	return r;
}

int
sb_instctl_capabilities(struct sb_control *base, const struct sb_control_call *call,
	struct sb_control_caps *out, struct sb_error *err)
{
	struct sb_instctl *c = (struct sb_instctl *)base;
	int r = ask_any(c, call, out, err);

	if (r != SB_E_NOTFOUND)
		return r;
	if (c->prov->ops->cheap)
		return ask_new(c, call, out, err);
	return sb_fail(err, SB_E_UNAVAILABLE,
		"control %s: no instance runs that could tell what it can do", base->name);
}
