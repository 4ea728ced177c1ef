/* SPDX-License-Identifier: MIT */
/* Stands in front of the calls of provisioners. */
#include "config.h"

#include <sb/instance.h>

#include <stdlib.h>
#include <string.h>

#include <control/instrec.h>

const char *
sb_instance_state_name(enum sb_instance_state s)
{
	static const char *const names[SB_INSTANCE_STATES] = { "pending", "running", "stopping",
		"stopped", "terminating", "terminated" };

	return (size_t)s < SB_INSTANCE_STATES ? names[s] : "?";
}

void
sb_instance_free(struct sb_instance *i)
{
	sb_strlist_free(&i->tags);
	free(i->why);
	*i = (struct sb_instance){ 0 };
}

void
sb_instance_list_free(struct sb_instance *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sb_instance_free(&v[i]);
	free(v);
}

static int
tags_check(const char *const *tags, struct sb_error *err)
{
	if (!tags || !tags[0])
		return sb_fail(err, SB_E_INVAL,
			"no tags: instances of others would be taken for one's own");
	for (size_t i = 0; tags[i]; i++)
		if (!strchr(tags[i], '=') || tags[i][0] == '=')
			return sb_fail(err, SB_E_INVAL, "tag \"%.60s\": write KEY=VALUE", tags[i]);
	return 0;
}

int
sb_instance_launch(struct sb_provisioner *p, const struct sb_instance_launch *given,
	const struct sb_control_call *call, struct sb_instance *out, struct sb_error *err)
{
	struct sb_instance_launch l = SB_INSTANCE_LAUNCH_INIT;
	const char *lacks = NULL;
	int r;

	memcpy(&l, given, given->size < sizeof l ? given->size : sizeof l);
	r = tags_check(l.tags, err);
	if (r == 0 && (!l.token || !l.token[0] || strlen(l.token) > SB_INSTANCE_TOKEN_MAX))
		r = sb_fail(err, SB_E_INVAL, "a launch needs a token of 1 to %d characters",
			SB_INSTANCE_TOKEN_MAX);
	if ((l.cpus > 0 || l.mem_mb) && !p->ops->sizes)
		lacks = "sizes to choose from";
	else if (l.disk_mb && !p->ops->disks)
		lacks = "sizes of disks";
	else if (l.image && !p->ops->images)
		lacks = "images";
	else if (l.lifetime_ms && !p->ops->lifetimes)
		lacks = "lifetimes";
	if (r == 0 && lacks)
		r = sb_fail(err, SB_E_UNSUPPORTED, "provisioner %s has no %s", p->ops->name, lacks);
	return r < 0 ? r : p->ops->launch(p, &l, call, out, err);
}

int
sb_instance_terminate(struct sb_provisioner *p, const char *id, const struct sb_control_call *call,
	struct sb_error *err)
{
	return p->ops->terminate(p, id, call, err);
}

static int
cannot_switch(struct sb_provisioner *p, struct sb_error *err)
{
	return sb_fail(err, SB_E_UNSUPPORTED, "provisioner %s does not switch instances off",
		p->ops->name);
}

int
sb_instance_stop(struct sb_provisioner *p, const char *id, const struct sb_control_call *call,
	struct sb_error *err)
{
	return p->ops->stop ? p->ops->stop(p, id, call, err) : cannot_switch(p, err);
}

int
sb_instance_start(struct sb_provisioner *p, const char *id, const struct sb_control_call *call,
	struct sb_error *err)
{
	return p->ops->start ? p->ops->start(p, id, call, err) : cannot_switch(p, err);
}

int
sb_instance_describe(struct sb_provisioner *p, const char *id, const struct sb_control_call *call,
	struct sb_instance *out, struct sb_error *err)
{
	return p->ops->describe(p, id, call, out, err);
}

int
sb_instance_list(struct sb_provisioner *p, const struct sb_instance_filter *given,
	const struct sb_control_call *call, struct sb_instance **out, size_t *out_n,
	struct sb_error *err)
{
	struct sb_instance_filter f = SB_INSTANCE_FILTER_INIT;
	int r;

	memcpy(&f, given, given->size < sizeof f ? given->size : sizeof f);
	r = tags_check(f.tags, err);
	return r < 0 ? r : p->ops->list(p, &f, call, out, out_n, err);
}

void
sb_instance_close(struct sb_provisioner *p)
{
	if (p)
		p->ops->close(p);
}
