/* SPDX-License-Identifier: MIT */
/* Opens controls, and stands in front of every call: checks, limits, what a control cannot do. */
#include "config.h"

#include <sb/control.h>

#include <stdlib.h>
#include <string.h>

#include <base/buf.h>
#include <base/opt.h>
#include <base/str.h>
#include <control/control-priv.h>
#include <provider/state-dir.h>

/* A line for each kind. */
static const struct sb_control_kind *const kinds[] = {
	&sb_node_kind,
	&sb_instctl_kind,
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static bool
is_time(const char *text)
{
	int64_t ms;

	return sb_opt_time(text, &ms) && ms > 0;
}

/* Of every kind; the order is that of struct sb_control_limits. */
static const struct sb_provider_option limit_options[] = {
	{ .name = "create_timeout", .value = "TIME", .help = "limit of create", .check = is_time },
	{ .name = "destroy_timeout", .value = "TIME", .help = "of destroy", .check = is_time },
	{ .name = "launch_timeout", .value = "TIME", .help = "of launch", .check = is_time },
	{ .name = "pause_timeout",
		.value = "TIME",
		.help = "of pause, resume, snapshot, rollback and fork",
		.check = is_time },
	{ .name = "ask_timeout", .value = "TIME", .help = "of all the rest", .check = is_time },
	{ .name = NULL },
};

const char *const *
sb_control_kinds(void)
{
	static const char *names[KINDS + 1];

	for (size_t i = 0; i < KINDS; i++)
		names[i] = kinds[i]->name;
	return names;
}

static const struct sb_control_kind *
find_kind(const char *name, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };

	sb_buf_init(&b, 256);
	for (size_t i = 0; i < KINDS; i++) {
		if (name && strcmp(kinds[i]->name, name) == 0)
			return kinds[i];
		sb_buf_addf(&b, "%s%s", i ? ", " : "", kinds[i]->name);
	}
	(void)sb_fail(err, SB_E_INVAL, "there is no kind \"%.40s\" of controls: use %s",
		name ? name : "", (const char *)b.data);
	return NULL;
}

static const struct sb_provider_option *
find_option(const struct sb_provider_option *o, const char *name)
{
	while (o->name && strcmp(o->name, name) != 0)
		o++;
	return o->name ? o : NULL;
}

static int
unknown_option(const struct sb_control_kind *k, const char *key, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };

	sb_buf_init(&b, 1024);
	for (const struct sb_provider_option *o = k->options; o->name; o++)
		sb_buf_addf(&b, "%s, ", o->name);
	for (const struct sb_provider_option *o = limit_options; o->name; o++)
		sb_buf_addf(&b, "%s%s", o->name, o[1].name ? ", " : "");
	return sb_fail(err, SB_E_INVAL, "%s has no option \"%.60s\": use %s", k->name, key,
		(const char *)b.data);
}

int
sb_control_option_check(const char *kind, const char *key, const char *value, struct sb_error *err)
{
	const struct sb_control_kind *k = find_kind(kind, err);
	const struct sb_provider_option *o;
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	bool right;

	if (!k || !key)
		return k ? 0 : SB_E_INVAL;
	o = find_option(k->options, key);
	o = o ? o : find_option(limit_options, key);
	if (!o)
		return unknown_option(k, key, err);
	right = !o->choices && (!o->check || o->check(value));
	sb_buf_init(&b, 512);
	for (size_t i = 0; o->choices && o->choices[i]; i++) {
		sb_buf_addf(&b, "%s%s", i ? ", " : "", o->choices[i]);
		right = right || strcmp(o->choices[i], value) == 0;
	}
	return right ? 0 :
		       sb_fail(err, SB_E_INVAL, "%s is \"%.100s\": use %s", key, value,
			       b.len ? (const char *)b.data : o->value);
}

static int
check_options(const struct sb_control_kind *k, const char *const *options, struct sb_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && options && options[i]; i++) {
		const char *eq = strchr(options[i], '=');
		sb_autofree char *key = eq ? strndup(options[i], (size_t)(eq - options[i])) : NULL;

		r = key ? sb_control_option_check(k->name, key, eq + 1, err) :
			  sb_fail(err, SB_E_INVAL, "option \"%.60s\": write KEY=VALUE", options[i]);
	}
	for (const struct sb_provider_option *o = k->options; r == 0 && o->name; o++)
		if (o->required && !sb_strlist_get(options, o->name))
			r = sb_fail(err, SB_E_INVAL, "%s is missing: %s", o->name, o->help);
	return r;
}

int
sb_control_begin(struct sb_control *c, const struct sb_control_ops *ops,
	const struct sb_control_open_opts *o, struct sb_error *err)
{
	int64_t *to[] = { &c->limits.create_ms, &c->limits.destroy_ms, &c->limits.launch_ms,
		&c->limits.pause_ms, &c->limits.ask_ms };

	c->ops = ops;
	c->log = o->log;
	c->limits = (struct sb_control_limits)SB_CONTROL_LIMITS_INIT;
	for (size_t i = 0; limit_options[i].name; i++) {
		const char *s = sb_strlist_get(o->options, limit_options[i].name);

		if (s)
			(void)sb_opt_time(s, to[i]);
	}
	c->name = strdup(o->name ? o->name : ops->kind);
	return c->name ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
}

struct sb_control *
sb_control_open(const struct sb_control_open_opts *given, struct sb_error *err)
{
	struct sb_control_open_opts o = SB_CONTROL_OPEN_OPTS_INIT;
	sb_autofree char *state = NULL;
	const struct sb_control_kind *k;
	struct sb_control *c;
	struct sb_error why = { 0 };

	memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
	k = find_kind(o.kind, &why);
	if (!k || check_options(k, o.options, &why) < 0) {
		(void)sb_fail(err, why.code, "control %s: %s", o.name ? o.name : "", why.msg);
		return NULL;
	}
	if (!o.state_dir) {
		state = sb_state_dir_default(err);
		o.state_dir = state;
	}
	if (!o.state_dir)
		return NULL;
	c = k->open(&o, &why);
	if (!c)
		(void)sb_fail(err, why.code, "control %s: %s", o.name ? o.name : k->name, why.msg);
	return c;
}

void
sb_control_close(struct sb_control *c)
{
	char *name = c ? c->name : NULL;

	if (c)
		c->ops->close(c);
	free(name);
}

int
sb_control_cannot(const struct sb_control *c, const char *what, const char *why,
	struct sb_error *err)
{
	return sb_fail(err, SB_E_UNSUPPORTED, "control %s (%s) has no %s%s%s", c->name,
		c->ops->kind, what, why ? ": " : "", why ? why : "");
}

/* The caller's limits, or the control's; `*r` tells whether they are over before the beginning. */
static struct sb_control_call
limited(const struct sb_control_call *given, int64_t ms, int *r, struct sb_error *err)
{
	struct sb_control_call call = SB_CONTROL_CALL_INIT;

	if (given)
		call = *given;
	if (call.deadline == SB_NEVER)
		call.deadline = sb_deadline_in(ms);
	*r = sb_check_alive(call.cancel, call.deadline, "control", err);
	return call;
}

static int
id_check(const char *what, const char *id, struct sb_error *err)
{
	char shown[200];

	if (!id || !id[0])
		return sb_fail(err, SB_E_INVAL, "%s: the name is empty", what);
	if (strlen(id) > SB_CONTROL_ID_MAX)
		return sb_fail(err, SB_E_INVAL, "%s \"%.60s...\" is longer than %d bytes", what,
			sb_escape(id, 60, shown, sizeof shown), SB_CONTROL_ID_MAX);
	return 0;
}

int
sb_control_capabilities(struct sb_control *c, const struct sb_control_call *given,
	struct sb_control_caps *out, struct sb_error *err)
{
	struct sb_control_caps caps = SB_CONTROL_CAPS_INIT;
	int r;
	struct sb_control_call call = limited(given, c->limits.ask_ms, &r, err);

	if (r == 0)
		r = c->ops->capabilities(c, &call, &caps, err);
	if (r == 0) {
		size_t size = out->size < sizeof caps ? out->size : sizeof caps;

		caps.size = size;
		memcpy(out, &caps, size);
	}
	return r;
}

int
sb_control_create(struct sb_control *c, const struct sb_control_create_opts *given,
	const struct sb_control_call *limits, struct sb_control_sandbox *out, struct sb_error *err)
{
	struct sb_control_create_opts o = SB_CONTROL_CREATE_OPTS_INIT;
	int r;
	struct sb_control_call call = limited(limits, c->limits.create_ms, &r, err);

	memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
	if (r == 0)
		r = sb_control_request_create(&o, err);
	return r < 0 ? r : c->ops->create(c, &o, &call, out, err);
}

int
sb_control_destroy(struct sb_control *c, const char *id, bool force,
	const struct sb_control_call *given, struct sb_error *err)
{
	int r;
	struct sb_control_call call = limited(given, c->limits.destroy_ms, &r, err);

	if (r == 0)
		r = id_check("sandbox", id, err);
	return r < 0 ? r : c->ops->destroy(c, id, force, &call, err);
}

int
sb_control_get(struct sb_control *c, const char *id, const struct sb_control_call *given,
	struct sb_control_sandbox *out, struct sb_error *err)
{
	int r;
	struct sb_control_call call = limited(given, c->limits.ask_ms, &r, err);

	if (r == 0)
		r = id_check("sandbox", id, err);
	return r < 0 ? r : c->ops->get(c, id, &call, out, err);
}

int
sb_control_list(struct sb_control *c, const struct sb_control_filter *given,
	const struct sb_control_call *limits, struct sb_control_sandbox **out, size_t *out_n,
	struct sb_error *err)
{
	struct sb_control_filter f = SB_CONTROL_FILTER_INIT;
	int r;
	struct sb_control_call call = limited(limits, c->limits.ask_ms, &r, err);

	if (given)
		memcpy(&f, given, given->size < sizeof f ? given->size : sizeof f);
	if (r == 0)
		r = sb_control_request_labels(f.labels, err);
	return r < 0 ? r : c->ops->list(c, &f, &call, out, out_n, err);
}

int
sb_control_launch(struct sb_control *c, const struct sb_control_launch_opts *given,
	const struct sb_control_call *limits, struct sb_control_process *out, struct sb_error *err)
{
	struct sb_control_launch_opts o = SB_CONTROL_LAUNCH_OPTS_INIT;
	int r;
	struct sb_control_call call;

	memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
	call = limited(limits, c->limits.launch_ms + (o.ready_ms > 0 ? o.ready_ms : 0), &r, err);
	if (r == 0)
		r = id_check("sandbox", o.sandbox, err);
	if (r == 0)
		r = sb_control_request_launch(&o, err);
	if (r == 0 && !c->ops->launch)
		r = sb_control_cannot(c, "launch", NULL, err);
	return r < 0 ? r : c->ops->launch(c, &o, &call, out, err);
}

int
sb_control_kill(struct sb_control *c, const char *id, const char *process, int sig,
	const struct sb_control_call *given, struct sb_error *err)
{
	int r;
	struct sb_control_call call = limited(given, c->limits.ask_ms, &r, err);

	if (r == 0)
		r = id_check("sandbox", id, err);
	if (r == 0)
		r = id_check("process", process, err);
	if (r == 0 && (sig < 0 || sig > 64))
		r = sb_fail(err, SB_E_INVAL, "signal %d: write 1 to 64", sig);
	if (r == 0 && !c->ops->kill)
		r = sb_control_cannot(c, "kill", NULL, err);
	return r < 0 ? r : c->ops->kill(c, id, process, sig ? sig : 15, &call, err);
}

int
sb_control_status(struct sb_control *c, const char *id, const char *process,
	const struct sb_control_call *given, struct sb_control_process *out, struct sb_error *err)
{
	struct sb_control_process p = { 0 };
	int r;
	struct sb_control_call call = limited(given, c->limits.ask_ms, &r, err);

	if (r == 0)
		r = id_check("sandbox", id, err);
	if (r == 0)
		r = id_check("process", process, err);
	if (r == 0 && !c->ops->status)
		r = sb_control_cannot(c, "status", NULL, err);
	/* `process` may well lie in `out`. */
	if (r == 0)
		r = c->ops->status(c, id, process, &call, &p, err);
	if (r == 0)
		*out = p;
	return r;
}

int
sb_control_pause(struct sb_control *c, const char *id, bool deep,
	const struct sb_control_call *given, struct sb_error *err)
{
	int r;
	struct sb_control_call call = limited(given, c->limits.pause_ms, &r, err);

	if (r == 0)
		r = id_check("sandbox", id, err);
	if (r == 0 && !c->ops->pause)
		r = sb_control_cannot(c, "pause", NULL, err);
	return r < 0 ? r : c->ops->pause(c, id, deep, &call, err);
}

int
sb_control_resume(struct sb_control *c, const char *id, const struct sb_control_call *given,
	struct sb_error *err)
{
	int r;
	struct sb_control_call call = limited(given, c->limits.pause_ms, &r, err);

	if (r == 0)
		r = id_check("sandbox", id, err);
	if (r == 0 && !c->ops->resume)
		r = sb_control_cannot(c, "resume", NULL, err);
	return r < 0 ? r : c->ops->resume(c, id, &call, err);
}

int
sb_control_snapshot(struct sb_control *c, const char *id, const char *name,
	const struct sb_control_call *given, struct sb_error *err)
{
	int r;
	struct sb_control_call call = limited(given, c->limits.pause_ms, &r, err);

	if (r == 0)
		r = id_check("sandbox", id, err);
	if (r == 0)
		r = id_check("snapshot", name, err);
	if (r == 0 && !c->ops->snapshot)
		r = sb_control_cannot(c, "snapshots", NULL, err);
	return r < 0 ? r : c->ops->snapshot(c, id, name, &call, err);
}

int
sb_control_rollback(struct sb_control *c, const char *id, const char *name,
	const struct sb_control_call *given, struct sb_error *err)
{
	int r;
	struct sb_control_call call = limited(given, c->limits.pause_ms, &r, err);

	if (r == 0)
		r = id_check("sandbox", id, err);
	if (r == 0)
		r = id_check("snapshot", name, err);
	if (r == 0 && !c->ops->rollback)
		r = sb_control_cannot(c, "rollback", NULL, err);
	return r < 0 ? r : c->ops->rollback(c, id, name, &call, err);
}

int
sb_control_fork(struct sb_control *c, const char *id, const char *name,
	const struct sb_control_create_opts *given, const struct sb_control_call *limits,
	struct sb_control_sandbox *out, struct sb_error *err)
{
	struct sb_control_create_opts o = SB_CONTROL_CREATE_OPTS_INIT;
	int r;
	struct sb_control_call call = limited(limits, c->limits.create_ms, &r, err);

	if (given)
		memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
	if (r == 0)
		r = id_check("sandbox", id, err);
	if (r == 0)
		r = sb_control_request_create(&o, err);
	if (r == 0 &&
		(o.base || o.cpus > 0 || o.mem_mb || o.disk_mb || o.network || o.allow || o.deny ||
			o.lifetime_ms))
		r = sb_fail(err, SB_E_INVAL, "a fork is as its source: it takes key and labels");
	if (r == 0 && !c->ops->fork)
		r = sb_control_cannot(c, "fork", NULL, err);
	return r < 0 ? r : c->ops->fork(c, id, name, &o, &call, out, err);
}

int
sb_control_recover(struct sb_control *c, const struct sb_control_call *given, struct sb_error *err)
{
	int r;
	struct sb_control_call call = limited(given, c->limits.create_ms, &r, err);

	return r < 0 || !c->ops->recover ? r : c->ops->recover(c, &call, err);
}
