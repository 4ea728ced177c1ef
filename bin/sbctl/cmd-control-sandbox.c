/* SPDX-License-Identifier: MIT */
/* The verbs of `sbctl control` about sandboxes: tiny ones, so one file holds them all. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <base/strlist.h>
#include <bin/sbctl/control.h>
#include <bin/sbctl/ctl.h>

SB_CLEANUP_VALUE(sb_control_sandbox, sb_control_sandbox_free)

static const char *
time_text(int64_t ns, char *buf, size_t size)
{
	time_t t = (time_t)(ns / 1000000000);
	struct tm tm;

	if (!ns || !gmtime_r(&t, &tm) || !strftime(buf, size, "%Y-%m-%dT%H:%M:%SZ", &tm))
		return NULL;
	return buf;
}

static json_t *
sandbox_json(const struct sb_control_sandbox *s)
{
	char when[40];
	json_t *o = json_object(), *labels = json_object();

	for (size_t i = 0; i < s->labels.n; i++) {
		const char *eq = strchr(s->labels.v[i], '=');

		(void)json_object_setn_new(labels, s->labels.v[i], (size_t)(eq - s->labels.v[i]),
			ctl_json_text(eq + 1));
	}
	(void)json_object_set_new(o, "id", json_string(s->id));
	(void)json_object_set_new(o, "state", json_string(sb_control_state_name(s->state)));
	(void)json_object_set_new(o, "address", json_string(s->address));
	(void)json_object_set_new(o, "tls", json_boolean(s->tls));
	(void)json_object_set_new(o, "labels", labels);
	(void)json_object_set_new(o, "why", s->why ? ctl_json_text(s->why) : json_null());
	(void)json_object_set_new(o, "instance",
		s->instance ? json_string(s->instance) : json_null());
	(void)json_object_set_new(o, "rsh", s->rsh ? ctl_json_text(s->rsh) : json_null());
	(void)json_object_set_new(o, "endpoint",
		s->endpoint ? ctl_json_text(s->endpoint) : json_null());
	(void)json_object_set_new(o, "created",
		time_text(s->created_ns, when, sizeof when) ? json_string(when) : json_null());
	(void)json_object_set_new(o, "expires",
		time_text(s->expires_ns, when, sizeof when) ? json_string(when) : json_null());
	return o;
}

static void
print_line(const char *name, const char *value)
{
	char text[CTL_SHOWN];

	if (value && value[0])
		(void)printf("%-10s %s\n", name, ctl_safe(value, text));
}

static void
show(const struct control_run *r, const struct sb_control_sandbox *s)
{
	char when[40];

	if (r->args.json) {
		json_t *o = sandbox_json(s);

		ctl_print_json(o, stdout);
		json_decref(o);
		return;
	}
	print_line("sandbox", s->id);
	print_line("state", sb_control_state_name(s->state));
	print_line("why", s->why);
	print_line("address", s->address);
	print_line("instance", s->instance);
	for (size_t i = 0; i < s->labels.n; i++)
		print_line(i ? "" : "labels", s->labels.v[i]);
	print_line("created", time_text(s->created_ns, when, sizeof when));
	print_line("expires", time_text(s->expires_ns, when, sizeof when));
	print_line("rsh", s->rsh);
	print_line("endpoint", s->endpoint);
}

/* The one line of create and fork: what a script needs to go on. */
static void
show_made(const struct control_run *r, const struct sb_control_sandbox *s)
{
	if (r->args.json)
		show(r, s);
	else if (!r->args.quiet)
		(void)printf("%s\n", s->id);
}

static int
texts(const struct sb_opt_list *l, struct sb_strlist *out, struct sb_error *err)
{
	for (size_t i = 0; i < l->n; i++)
		sb_strlist_add(out, l->v[i]);
	return sb_strlist_check(out, err);
}

static int
network_of(const char *word, enum sb_control_network *out, struct sb_error *err)
{
	if (word && strcmp(word, "none") == 0)
		*out = SB_CONTROL_NET_NONE;
	else if (word && strcmp(word, "outbound") == 0)
		*out = SB_CONTROL_NET_OUTBOUND;
	else if (word)
		return sb_fail(err, SB_E_USAGE, "--network %s: use none or outbound", word);
	return 0;
}

static int
create(struct control_run *r, struct sb_error *err)
{
	struct sb_control_create_opts o = SB_CONTROL_CREATE_OPTS_INIT;
	sb_auto(sb_strlist) struct sb_strlist labels = { 0 }, allow = { 0 }, deny = { 0 };
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 };
	int code = network_of(r->args.network, &o.network, err);

	if (code == 0)
		code = texts(&r->args.labels, &labels, err);
	if (code == 0)
		code = texts(&r->args.allow, &allow, err);
	if (code == 0)
		code = texts(&r->args.deny, &deny, err);
	if (code < 0)
		return code;
	o.key = r->args.key;
	o.labels = sb_strlist_borrow(&labels);
	o.base = r->args.base;
	o.cpus = r->cpus;
	o.mem_mb = (r->args.mem + (1 << 20) - 1) >> 20;
	o.disk_mb = (r->args.disk + (1 << 20) - 1) >> 20;
	o.allow = sb_strlist_borrow(&allow);
	o.deny = sb_strlist_borrow(&deny);
	o.lifetime_ms = r->args.lifetime;
	code = sb_control_create(r->control, &o, &r->call, &s, err);
	if (code == 0)
		show_made(r, &s);
	return code;
}

const struct control_verb cmd_control_create = {
	.name = "create",
	.args = "",
	.help = "make a sandbox and print its id",
	.opts = "key,label,base,cpus,mem,disk,network,allow,deny,lifetime",
	.run = create,
};

static int
ls(struct control_run *r, struct sb_error *err)
{
	struct sb_control_filter f = SB_CONTROL_FILTER_INIT;
	sb_auto(sb_strlist) struct sb_strlist labels = { 0 };
	struct sb_control_sandbox *v = NULL;
	json_t *all = json_array();
	size_t n = 0;
	int code = texts(&r->args.labels, &labels, err);

	f.labels = sb_strlist_borrow(&labels);
	if (code == 0)
		code = sb_control_list(r->control, &f, &r->call, &v, &n, err);
	if (code == 0 && !r->args.json)
		(void)printf("%-38s %-11s %s\n", "SANDBOX", "STATE", "ADDRESS");
	for (size_t i = 0; code == 0 && i < n; i++)
		if (r->args.json)
			(void)json_array_append_new(all, sandbox_json(&v[i]));
		else
			(void)printf("%-38s %-11s %s\n", v[i].id, sb_control_state_name(v[i].state),
				v[i].address[0] ? v[i].address : "-");
	if (code == 0 && r->args.json)
		ctl_print_json(all, stdout);
	json_decref(all);
	sb_control_list_free(v, n);
	return code;
}

const struct control_verb cmd_control_ls = {
	.name = "ls",
	.args = "",
	.help = "list sandboxes",
	.opts = "label",
	.run = ls,
};

static int
show_one(struct control_run *r, struct sb_error *err)
{
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 };
	int code = sb_control_get(r->control, r->args.v[0], &r->call, &s, err);

	if (code == 0)
		show(r, &s);
	return code;
}

const struct control_verb cmd_control_show = {
	.name = "show",
	.args = "SANDBOX",
	.help = "print a sandbox",
	.min_args = 1,
	.max_args = 1,
	.run = show_one,
};

static int
pause_one(struct control_run *r, struct sb_error *err)
{
	return sb_control_pause(r->control, r->args.v[0], r->args.deep, &r->call, err);
}

const struct control_verb cmd_control_pause = {
	.name = "pause",
	.args = "SANDBOX",
	.help = "pause a sandbox",
	.opts = "deep",
	.min_args = 1,
	.max_args = 1,
	.run = pause_one,
};

static int
resume_one(struct control_run *r, struct sb_error *err)
{
	return sb_control_resume(r->control, r->args.v[0], &r->call, err);
}

const struct control_verb cmd_control_resume = {
	.name = "resume",
	.args = "SANDBOX",
	.help = "go on with a paused sandbox",
	.min_args = 1,
	.max_args = 1,
	.run = resume_one,
};

static int
snapshot(struct control_run *r, struct sb_error *err)
{
	return sb_control_snapshot(r->control, r->args.v[0], r->args.v[1], &r->call, err);
}

const struct control_verb cmd_control_snapshot = {
	.name = "snapshot",
	.args = "SANDBOX NAME",
	.help = "take a snapshot",
	.min_args = 2,
	.max_args = 2,
	.run = snapshot,
};

static int
rollback(struct control_run *r, struct sb_error *err)
{
	return sb_control_rollback(r->control, r->args.v[0], r->args.v[1], &r->call, err);
}

const struct control_verb cmd_control_rollback = {
	.name = "rollback",
	.args = "SANDBOX NAME",
	.help = "go back to a snapshot",
	.min_args = 2,
	.max_args = 2,
	.run = rollback,
};

static int
fork_one(struct control_run *r, struct sb_error *err)
{
	struct sb_control_create_opts o = SB_CONTROL_CREATE_OPTS_INIT;
	sb_auto(sb_strlist) struct sb_strlist labels = { 0 };
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 };
	int code = texts(&r->args.labels, &labels, err);

	o.key = r->args.key;
	o.labels = sb_strlist_borrow(&labels);
	if (code == 0)
		code = sb_control_fork(r->control, r->args.v[0], r->args.snapshot, &o, &r->call, &s,
			err);
	if (code == 0)
		show_made(r, &s);
	return code;
}

const struct control_verb cmd_control_fork = {
	.name = "fork",
	.args = "SANDBOX",
	.help = "make a sandbox from another and print its id",
	.opts = "key,label,snapshot",
	.min_args = 1,
	.max_args = 1,
	.run = fork_one,
};

static int
destroy(struct control_run *r, struct sb_error *err)
{
	return sb_control_destroy(r->control, r->args.v[0], r->args.force, &r->call, err);
}

const struct control_verb cmd_control_destroy = {
	.name = "destroy",
	.args = "SANDBOX",
	.help = "remove a sandbox with everything in it",
	.opts = "force",
	.min_args = 1,
	.max_args = 1,
	.run = destroy,
};

static int
recover(struct control_run *r, struct sb_error *err)
{
	return sb_control_recover(r->control, &r->call, err);
}

const struct control_verb cmd_control_recover = {
	.name = "recover",
	.args = "",
	.help = "finish what a controller that died had begun",
	.run = recover,
};

static int
capabilities(struct control_run *r, struct sb_error *err)
{
	struct sb_control_caps c = SB_CONTROL_CAPS_INIT;
	const struct {
		const char *name;
		const bool *on;
	} flags[] = { { "launch", &c.launch }, { "snapshots", &c.snapshots },
		{ "rollback", &c.rollback }, { "fork", &c.fork }, { "pause", &c.pause },
		{ "pause_keeps", &c.pause_keeps }, { "deep_pause", &c.deep_pause },
		{ "bases", &c.bases }, { "resources", &c.resources }, { "disk", &c.disk },
		{ "network", &c.network }, { "lifetime", &c.lifetime }, { "fence", &c.fence } };
	int code = sb_control_capabilities(r->control, &r->call, &c, err);
	json_t *o = json_object();

	for (size_t i = 0; code == 0 && i < sizeof flags / sizeof flags[0]; i++)
		if (r->args.json)
			(void)json_object_set_new(o, flags[i].name, json_boolean(*flags[i].on));
		else
			(void)printf("%-20s %s\n", flags[i].name, *flags[i].on ? "yes" : "no");
	(void)json_object_set_new(o, "isolation", json_string(c.isolation));
	(void)json_object_set_new(o, "concurrent_sandboxes", json_integer(c.concurrent_sandboxes));
	(void)json_object_set_new(o, "max_lifetime_ms", json_integer(c.max_lifetime_ms));
	if (code == 0 && r->args.json)
		ctl_print_json(o, stdout);
	else if (code == 0)
		(void)printf("%-20s %s\n%-20s %u\n%-20s %lld ms\n", "isolation", c.isolation,
			"concurrent_sandboxes", c.concurrent_sandboxes, "max_lifetime",
			(long long)c.max_lifetime_ms);
	json_decref(o);
	return code;
}

const struct control_verb cmd_control_capabilities = {
	.name = "capabilities",
	.args = "",
	.help = "print what the control can do",
	.run = capabilities,
};
