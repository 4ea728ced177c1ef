/* SPDX-License-Identifier: MIT */
/* Kind "instance": each sandbox has an instance of its own (control/instctl-priv.h). */
#include "config.h"

#include <control/instctl-priv.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>

#define ASK_MS 5000

/* The host of a sandbox that runs; one that is off is SB_E_UNAVAILABLE. */
static struct sb_hostcall *
host_of(struct sb_control *base, const char *id, const struct sb_control_call *call, int *r,
	struct sb_error *err)
{
	struct sb_instctl *c = (struct sb_instctl *)base;
	sb_auto(sb_instance) struct sb_instance i = { 0 };
	struct sb_hostcall *h = NULL;

	*r = sb_instctl_find(c, id, call, &i, err);
	if (*r == 0 && i.state != SB_INSTANCE_RUNNING)
		*r = sb_fail(err, SB_E_UNAVAILABLE, "instance %s of sandbox %s is %s%s%s", i.id, id,
			sb_instance_state_name(i.state), i.why ? ": " : "", i.why ? i.why : "");
	if (*r == 0) {
		h = sb_instctl_host(c, &i, err);
		*r = h ? 0 : SB_E_UNAVAILABLE;
	}
	return h;
}

/* What an instance that does not answer is known to be. */
static void
unreachable(const struct sb_instance *i, const char *why, struct sb_control_sandbox *out)
{
	const char *id = sb_strlist_get(sb_strlist_borrow(&i->tags), SB_INSTCTL_TAG_SANDBOX);

	(void)snprintf(out->id, sizeof out->id, "%s", id ? id : "");
	out->state = i->state == SB_INSTANCE_PENDING ? SB_CONTROL_CREATING :
		i->state == SB_INSTANCE_TERMINATING  ? SB_CONTROL_DESTROYING :
						       SB_CONTROL_UNREACHABLE;
	out->created_ns = i->launched_ns;
	for (size_t k = 0; k < i->tags.n; k++)
		if (!sb_str_starts(i->tags.v[k], SB_CONTROL_LABEL_OWN))
			sb_strlist_add(&out->labels, i->tags.v[k]);
	out->why = sb_str_printf("instance %s is %s: %s", i->id, sb_instance_state_name(i->state),
		i->why ? i->why : why);
}

static int
look(struct sb_instctl *c, const struct sb_instance *i, const struct sb_control_call *call,
	struct sb_control_sandbox *out, struct sb_error *err)
{
	const char *id = sb_strlist_get(sb_strlist_borrow(&i->tags), SB_INSTCTL_TAG_SANDBOX);
	struct sb_control_call ask = *call;
	struct sb_hostcall *h = NULL;
	struct sb_error why = { 0 };
	int r = SB_E_UNAVAILABLE;

	*out = (struct sb_control_sandbox){ 0 };
	ask.deadline = sb_deadline_min(call->deadline, sb_deadline_in(ASK_MS));
	if (i->state == SB_INSTANCE_RUNNING)
		h = sb_instctl_host(c, i, &why);
	if (h)
		r = sb_hostsess_get(h, id, &ask, out, &why);
	sb_hostcall_free(h);
	if (r == SB_E_CANCELED)
		return sb_fail(err, r, "%s", why.msg);
	if (r < 0) {
		unreachable(i, why.msg[0] ? why.msg : "it is off", out);
		/* Its host answers, and the session is not there (yet, or any more). */
		if (r == SB_E_SANDBOX_NOT_FOUND)
			out->state = SB_CONTROL_CREATING;
	}
	out->instance = strdup(i->id);
	return out->instance && !out->labels.failed ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
}

static int
instance_get(struct sb_control *base, const char *id, const struct sb_control_call *call,
	struct sb_control_sandbox *out, struct sb_error *err)
{
	struct sb_instctl *c = (struct sb_instctl *)base;
	sb_auto(sb_instance) struct sb_instance i = { 0 };
	int r = sb_instctl_find(c, id, call, &i, err);

	return r < 0 ? r : look(c, &i, call, out, err);
}

static int
by_id(const void *a, const void *b)
{
	return strcmp(((const struct sb_control_sandbox *)a)->id,
		((const struct sb_control_sandbox *)b)->id);
}

static int
instance_list(struct sb_control *base, const struct sb_control_filter *filter,
	const struct sb_control_call *call, struct sb_control_sandbox **out, size_t *out_n,
	struct sb_error *err)
{
	struct sb_instctl *c = (struct sb_instctl *)base;
	struct sb_instance_filter f = SB_INSTANCE_FILTER_INIT;
	sb_auto(sb_strlist) struct sb_strlist tags = { 0 };
	struct sb_control_sandbox *boxes = NULL;
	struct sb_instance *v = NULL;
	size_t n = 0, found = 0;
	int r;

	sb_instctl_tags(c, NULL, &tags);
	sb_strlist_add_all(&tags, filter->labels);
	f.tags = sb_strlist_borrow(&tags);
	r = sb_strlist_check(&tags, err);
	if (r == 0)
		r = sb_instance_list(c->prov, &f, call, &v, &n, err);
	boxes = calloc(n + 1, sizeof *boxes);
	if (r == 0 && !boxes)
		r = sb_fail(err, SB_E_NOMEM, "out of memory");
	for (size_t i = 0; r == 0 && i < n; i++)
		if (sb_strlist_get(sb_strlist_borrow(&v[i].tags), SB_INSTCTL_TAG_SANDBOX))
			r = look(c, &v[i], call, &boxes[found++], err);
	sb_instance_list_free(v, n);
	if (r < 0) {
		sb_control_list_free(boxes, found);
		return r;
	}
	if (found)
		qsort(boxes, found, sizeof *boxes, by_id);
	*out = boxes;
	*out_n = found;
	return 0;
}

static int
instance_launch(struct sb_control *c, const struct sb_control_launch_opts *o,
	const struct sb_control_call *call, struct sb_control_process *out, struct sb_error *err)
{
	int r;
	struct sb_hostcall *h = host_of(c, o->sandbox, call, &r, err);

	if (r == 0)
		r = sb_hostsess_launch(h, o, call, out, err);
	sb_hostcall_free(h);
	return r;
}

static int
instance_kill(struct sb_control *c, const char *id, const char *process, int sig,
	const struct sb_control_call *call, struct sb_error *err)
{
	int r;
	struct sb_hostcall *h = host_of(c, id, call, &r, err);

	if (r == 0)
		r = sb_hostsess_kill(h, id, process, sig, call, err);
	sb_hostcall_free(h);
	return r;
}

static int
instance_status(struct sb_control *c, const char *id, const char *process,
	const struct sb_control_call *call, struct sb_control_process *out, struct sb_error *err)
{
	int r;
	struct sb_hostcall *h = host_of(c, id, call, &r, err);

	if (r == 0)
		r = sb_hostsess_status(h, id, process, call, out, err);
	sb_hostcall_free(h);
	return r;
}

static int
instance_pause(struct sb_control *c, const char *id, bool deep, const struct sb_control_call *call,
	struct sb_error *err)
{
	struct sb_hostcall *h;
	int r;

	if (deep)
		return sb_control_cannot(c, "deep pause", NULL, err);
	h = host_of(c, id, call, &r, err);
	if (r == 0)
		r = sb_hostsess_pause(h, id, call, err);
	sb_hostcall_free(h);
	return r;
}

/* Also of an instance that is off: it is switched on. */
static int
instance_resume(struct sb_control *base, const char *id, const struct sb_control_call *call,
	struct sb_error *err)
{
	struct sb_instctl *c = (struct sb_instctl *)base;
	sb_auto(sb_instance) struct sb_instance i = { 0 }, up = { 0 };
	struct sb_hostcall *h = NULL;
	int r = sb_instctl_find(c, id, call, &i, err);

	if (r == 0 && i.state == SB_INSTANCE_STOPPED)
		r = sb_instance_start(c->prov, i.id, call, err);
	if (r == 0)
		r = sb_instctl_wait(c, i.id, call, &up, err);
	h = r == 0 ? sb_instctl_host(c, &up, err) : NULL;
	if (r == 0)
		r = h ? sb_hostsess_resume(h, id, call, err) : SB_E_UNAVAILABLE;
	sb_hostcall_free(h);
	return r;
}

static int
instance_snapshot(struct sb_control *c, const char *id, const char *name,
	const struct sb_control_call *call, struct sb_error *err)
{
	int r;
	struct sb_hostcall *h = host_of(c, id, call, &r, err);

	if (r == 0)
		r = sb_hostsess_snapshot(h, id, name, call, err);
	sb_hostcall_free(h);
	return r;
}

static int
instance_rollback(struct sb_control *c, const char *id, const char *name,
	const struct sb_control_call *call, struct sb_error *err)
{
	int r;
	struct sb_hostcall *h = host_of(c, id, call, &r, err);

	if (r == 0)
		r = sb_hostsess_rollback(h, id, name, call, err);
	sb_hostcall_free(h);
	return r;
}

static void
instance_close(struct sb_control *base)
{
	struct sb_instctl *c = (struct sb_instctl *)base;

	sb_instance_close(c->prov);
	free(c->dir);
	free(c->owner);
	free(c->image);
	free(c->base_of);
	free(c);
}

static const struct sb_control_ops ops = {
	.version = SB_CONTROL_VERSION,
	.kind = "instance",
	.capabilities = sb_instctl_capabilities,
	.create = sb_instctl_create,
	.destroy = sb_instctl_destroy,
	.get = instance_get,
	.list = instance_list,
	.launch = instance_launch,
	.kill = instance_kill,
	.status = instance_status,
	.pause = instance_pause,
	.resume = instance_resume,
	.snapshot = instance_snapshot,
	.rollback = instance_rollback,
	.recover = sb_instctl_recover,
	.close = instance_close,
};

static bool
is_path(const char *text)
{
	return text[0] == '/';
}

static bool
is_word(const char *text)
{
	return text[0] && strlen(text) <= SB_CONTROL_LABEL_VALUE_MAX;
}

static const char *const provisioners[] = { "static", "local", NULL };
static const char *const runtimes[] = { "auto", "gvisor", "bwrap", "none", NULL };

static const struct sb_provider_option options[] = {
	{ .name = "provisioner",
		.help = "what makes instances",
		.choices = provisioners,
		.required = true },
	{ .name = "owner",
		.value = "a text that no other controller has",
		.help = "whose instances these are",
		.check = is_word,
		.required = true },
	{ .name = "dir",
		.value = "an absolute path",
		.help = "where instances are kept",
		.check = is_path },
	{ .name = "base", .value = "BASE", .help = "base image of sandboxes that name none" },
	{ .name = "addresses", .value = "URLs with commas between", .help = "static: machines" },
	{ .name = "token_file",
		.value = "an absolute path",
		.help = "static: their bearer token",
		.check = is_path },
	{ .name = "ca_file",
		.value = "an absolute path",
		.help = "static: authorities that https is checked with",
		.check = is_path },
	{ .name = "sbhostd",
		.value = "an absolute path",
		.help = "local: the program",
		.check = is_path },
	{ .name = "runtime", .help = "local: what isolates", .choices = runtimes },
	{ .name = "storage", .value = "NAME", .help = "local: where workspaces go" },
	{ .name = NULL },
};

static struct sb_control *
instance_open(const struct sb_control_open_opts *o, struct sb_error *err)
{
	const char *dir = sb_strlist_get(o->options, "dir"),
		   *base = sb_strlist_get(o->options, "base"),
		   *what = sb_strlist_get(o->options, "provisioner");
	struct sb_instctl *c = calloc(1, sizeof *c);
	sb_autofree char *place = NULL;

	if (!c || sb_control_begin(&c->base, &ops, o, err) < 0) {
		free(c);
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	c->dir = sb_str_printf("%s/controls/%s", o->state_dir, c->base.name);
	c->owner = strdup(sb_strlist_get(o->options, "owner"));
	c->base_of = base ? strdup(base) : NULL;
	place = dir ? strdup(dir) : sb_str_printf("%s/controls/%s/i", o->state_dir, c->base.name);
	if (!c->dir || !c->owner || !place || (base && !c->base_of))
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
	else if (strcmp(what, "local") == 0)
		c->prov = sb_instance_local(place, o->options, &o->log, err);
	else
		c->prov = sb_instance_static(place, o->options, &o->log, err);
	if (c->prov)
		return &c->base;
	c->prov = NULL;
	sb_control_close(&c->base);
	return NULL;
}

const struct sb_control_kind sb_instctl_kind = { "instance", options, instance_open };
