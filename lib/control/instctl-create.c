/* SPDX-License-Identifier: MIT */
/* A sandbox with an instance of its own is made, removed, and found again after a crash. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <control/instctl-priv.h>

#define CLEAN_UP_MS 120000
#define ASK_MS 5000

void
sb_instctl_tags(const struct sb_instctl *c, const char *id, struct sb_strlist *out)
{
	sb_strlist_addf(out, SB_INSTCTL_TAG_OWNER "=%s", c->owner);
	sb_strlist_addf(out, SB_INSTCTL_TAG_CONTROL "=%s", c->base.name);
	if (id)
		sb_strlist_addf(out, SB_INSTCTL_TAG_SANDBOX "=%s", id);
}

int
sb_instctl_find(struct sb_instctl *c, const char *id, const struct sb_control_call *call,
	struct sb_instance *out, struct sb_error *err)
{
	struct sb_instance_filter f = SB_INSTANCE_FILTER_INIT;
	sb_auto(sb_strlist) struct sb_strlist tags = { 0 };
	struct sb_instance *v = NULL;
	size_t n = 0;
	int r;

	sb_instctl_tags(c, id, &tags);
	f.tags = sb_strlist_borrow(&tags);
	r = sb_strlist_check(&tags, err);
	if (r == 0)
		r = sb_instance_list(c->prov, &f, call, &v, &n, err);
	if (r == 0 && n == 0)
		r = sb_fail(err, SB_E_SANDBOX_NOT_FOUND, "there is no sandbox %s", id);
	if (r == 0) {
		*out = v[0];
		v[0] = (struct sb_instance){ 0 };
	}
	sb_instance_list_free(v, n);
	return r;
}

struct sb_hostcall *
sb_instctl_host(struct sb_instctl *c, const struct sb_instance *i, struct sb_error *err)
{
	if (!i->url[0]) {
		(void)sb_fail(err, SB_E_UNAVAILABLE, "instance %s has no address yet", i->id);
		return NULL;
	}
	return sb_hostcall_new(i->url, c->prov->token_file, c->prov->ca_file, err);
}

/* 0: it answers; 1: not yet. */
static int
answers(struct sb_instctl *c, const struct sb_instance *i, const struct sb_control_call *call,
	struct sb_error *err)
{
	struct sb_control_call ask = *call;
	struct sb_hostcall *h = sb_instctl_host(c, i, err);
	struct sb_error why = { 0 };
	int r = h ? 0 : SB_E_UNAVAILABLE;

	ask.deadline = sb_deadline_min(call->deadline, sb_deadline_in(ASK_MS));
	ask.fence = 0;
	if (h)
		r = sb_hostcall(h, "HealthCheck", json_object(), &ask, NULL, &why);
	sb_hostcall_free(h);
	if (r == SB_E_TIMEOUT || sb_hostcall_transient(r))
		return 1;
	return r < 0 ? sb_fail(err, r, "instance %s: %s", i->id, why.msg) : 0;
}

int
sb_instctl_wait(struct sb_instctl *c, const char *instance, const struct sb_control_call *call,
	struct sb_instance *out, struct sb_error *err)
{
	for (int64_t ms = 20;; ms = ms < 2000 ? ms * 3 / 2 : ms) {
		sb_auto(sb_instance) struct sb_instance i = { 0 };
		int r = sb_instance_describe(c->prov, instance, call, &i, err);

		/* Right after the launch it may not be known everywhere. */
		if (r < 0 && !(r == SB_E_NOTFOUND && c->prov->settle_ms))
			return r;
		if (r == 0 && i.state != SB_INSTANCE_PENDING && i.state != SB_INSTANCE_RUNNING)
			return sb_fail(err, SB_E_STATE, "instance %s is %s%s%s", instance,
				sb_instance_state_name(i.state), i.why ? ": " : "",
				i.why ? i.why : "");
		r = r == 0 && i.state == SB_INSTANCE_RUNNING ? answers(c, &i, call, err) : 1;
		if (r == 0) {
			*out = i;
			i = (struct sb_instance){ 0 };
		}
		if (r <= 0)
			return r;
		r = sb_hostcall_pause(call, ms, err);
		if (r < 0)
			return sb_wrap(err, r, "instance %s does not come up", instance);
	}
}

/* A launch and all behind it, with the record held. */
struct making {
	struct sb_instctl *c;
	struct sb_instctl_hold *hold;
	const char *id;
	const struct sb_control_create_opts *o;
	const struct sb_control_call *call;
	char digest[SB_CONTROL_DIGEST_LEN + 1];
};

static int
launch(struct making *m, struct sb_instance *out, struct sb_error *err)
{
	struct sb_instance_launch l = SB_INSTANCE_LAUNCH_INIT;
	sb_auto(sb_strlist) struct sb_strlist tags = { 0 };
	struct sb_error why = { 0 };
	int r = sb_instctl_note(m->c, m->id, m->hold, "launch", err);

	sb_instctl_tags(m->c, m->id, &tags);
	sb_strlist_addf(&tags, SB_INSTCTL_TAG_REQUEST "=%s", m->digest);
	sb_strlist_add_all(&tags, m->o->labels);
	l.token = m->id;
	l.tags = sb_strlist_borrow(&tags);
	l.image = m->c->image;
	l.cpus = m->o->cpus;
	l.mem_mb = m->o->mem_mb;
	l.lifetime_ms = m->o->lifetime_ms;
	if (r == 0)
		r = sb_strlist_check(&tags, err);
	for (int try = 0; r == 0 && try < 5; try++) {
		r = sb_instance_launch(m->c->prov, &l, m->call, out, &why);
		if (!sb_hostcall_transient(r))
			return r < 0 ? sb_fail(err, r == SB_E_LIMIT ? SB_E_MAX_SESSIONS : r, "%s",
					       why.msg) :
				       0;
		if (sb_hostcall_pause(m->call, INT64_C(200) << try, err) < 0)
			break;
		r = 0;
	}
	return r < 0 ? r : sb_fail(err, why.code ? why.code : SB_E_UNAVAILABLE, "%s", why.msg);
}

static int
put_session(struct making *m, struct sb_instance *i, struct sb_control_sandbox *out,
	struct sb_error *err)
{
	struct sb_control_create_opts o = *m->o;
	struct sb_hostcall *h = sb_instctl_host(m->c, i, err);
	int r = h ? sb_instctl_note(m->c, m->id, m->hold, "session", err) : SB_E_UNAVAILABLE;

	/* The instance as a whole has these. */
	o.cpus = 0;
	o.mem_mb = 0;
	o.lifetime_ms = 0;
	if (!o.base)
		o.base = m->c->base_of;
	if (r == 0)
		r = sb_hostsess_create(h, m->id, &o, m->call, out, err);
	if (r == 0)
		r = sb_instctl_note(m->c, m->id, m->hold, "ready", err);
	if (r == 0 && !(out->instance = strdup(i->id)))
		r = sb_fail(err, SB_E_NOMEM, "out of memory");
	sb_hostcall_free(h);
	return r;
}

/* What a create that failed has made is taken away, whatever time its caller has left. */
static void
give_up(struct making *m, const char *instance)
{
	const struct sb_control_call call = { NULL, sb_deadline_in(CLEAN_UP_MS), 0 };
	struct sb_error why = { 0 };

	if (sb_instance_terminate(m->c->prov, instance, &call, &why) == 0)
		(void)sb_instctl_note(m->c, m->id, m->hold, NULL, NULL);
	else
		sb_log(&m->c->base.log, SB_LOG_WARN, "control",
			"instance %s of a create that failed is left: %s", instance, why.msg);
}

/* A failure after which nobody knows whether the host made the session. */
static bool
is_open(int r)
{
	return r == SB_E_TIMEOUT || r == SB_E_CANCELED || sb_hostcall_transient(r);
}

static int
make(struct making *m, struct sb_control_sandbox *out, struct sb_error *err)
{
	sb_auto(sb_instance) struct sb_instance i = { 0 }, up = { 0 };
	sb_autofree char *tag = sb_str_printf(SB_INSTCTL_TAG_REQUEST "=%s", m->digest);
	const char *tags[] = { tag, NULL };
	struct sb_error why = { 0 };
	int r = tag ? sb_instctl_find(m->c, m->id, m->call, &i, &why) : SB_E_NOMEM;

	if (r == 0 && !sb_instrec_has(&i, tags))
		return sb_fail(err, SB_E_CONFLICT,
			"sandbox %s is there, and was made by another request", m->id);
	if (r < 0 && r != SB_E_SANDBOX_NOT_FOUND)
		return sb_fail(err, r, "%s", why.msg);
	if (r < 0) {
		r = launch(m, &i, err);
		/* Nobody knows of an instance: what came of the launch is found by its tags. */
		if (r < 0 && sb_instctl_find(m->c, m->id, m->call, &i, NULL) < 0) {
			if (!is_open(r))
				(void)sb_instctl_note(m->c, m->id, m->hold, NULL, NULL);
			return r;
		}
	} else if (i.state == SB_INSTANCE_STOPPED && m->c->prov->ops->start) {
		r = sb_instance_start(m->c->prov, i.id, m->call, err);
	}
	if (r == 0)
		r = sb_instctl_wait(m->c, i.id, m->call, &up, err);
	if (r == 0)
		r = put_session(m, &up, out, err);
	if (r == 0)
		return 0;
	/* Only what no session was ever asked of may go; with a key, what is open can be resumed.
	 */
	if (strcmp(m->hold->phase, "launch") == 0 ||
		(strcmp(m->hold->phase, "session") == 0 && (!is_open(r) || !m->o->key)))
		give_up(m, i.id);
	return r;
}

int
sb_instctl_create(struct sb_control *base, const struct sb_control_create_opts *o,
	const struct sb_control_call *call, struct sb_control_sandbox *out, struct sb_error *err)
{
	struct sb_instctl *c = (struct sb_instctl *)base;
	sb_auto(sb_instctl_hold) struct sb_instctl_hold hold = SB_INSTCTL_HOLD_INIT;
	struct sb_control_caps caps = SB_CONTROL_CAPS_INIT;
	char id[SB_CONTROL_NEW_ID_MAX];
	struct making m = { .c = c, .hold = &hold, .id = id, .o = o, .call = call };
	int r = sb_control_request_id(o->key, id, err);

	if (r == 0)
		r = sb_control_request_digest(o, m.digest, err);
	/* Told before an instance is made for nothing. */
	if (r == 0 && (o->cpus > 0 || o->mem_mb || o->disk_mb || o->lifetime_ms || o->network))
		r = sb_instctl_capabilities(base, call, &caps, err);
	else
		caps.resources = caps.disk = caps.lifetime = caps.network = true;
	if (r == 0 && (o->cpus > 0 || o->mem_mb) && !caps.resources)
		r = sb_control_cannot(base, "limits of cpus and memory", "nothing enforces them",
			err);
	if (r == 0 && o->disk_mb && !caps.disk)
		r = sb_control_cannot(base, "limit of disks", NULL, err);
	if (r == 0 && o->lifetime_ms && !caps.lifetime)
		r = sb_control_cannot(base, "lifetime of a single sandbox", NULL, err);
	if (r == 0 && o->network && !caps.network)
		r = sb_control_cannot(base, "network policies", "nothing enforces them", err);
	if (r == 0)
		r = sb_instctl_hold(c, id, true, call, &hold, err);
	return r < 0 ? r : make(&m, out, err);
}

/* What the host says of the session: 1 there, 0 not, negative: it cannot be asked. */
static int
has_session(struct sb_instctl *c, const struct sb_instance *i, const char *id,
	const struct sb_control_call *call, struct sb_error *err)
{
	struct sb_control_call ask = *call;
	struct sb_control_sandbox s = { 0 };
	struct sb_hostcall *h = sb_instctl_host(c, i, err);
	int r;

	if (!h)
		return SB_E_UNAVAILABLE;
	ask.deadline = sb_deadline_min(call->deadline, sb_deadline_in(ASK_MS));
	ask.fence = 0;
	r = sb_hostsess_get(h, id, &ask, &s, err);
	sb_hostcall_free(h);
	sb_control_sandbox_free(&s);
	return r == 0 ? 1 : r == SB_E_SANDBOX_NOT_FOUND ? 0 : r;
}

/* Sessions that somebody made on the instance besides the sandbox's own. */
static int
no_others(struct sb_instctl *c, const struct sb_instance *i, const char *id,
	const struct sb_control_call *call, struct sb_error *err)
{
	const struct sb_control_filter all = SB_CONTROL_FILTER_INIT;
	struct sb_hostcall *h = sb_instctl_host(c, i, err);
	struct sb_control_call ask = *call;
	struct sb_control_sandbox *v = NULL;
	size_t n = 0;
	int r = SB_E_UNAVAILABLE;

	ask.fence = 0;
	if (h)
		r = c->prov->ops->keeps ? 0 : sb_hostsess_list(h, &all, &ask, &v, &n, err);
	for (size_t k = 0; r == 0 && k < n; k++)
		if (strcmp(v[k].id, id) != 0)
			r = sb_fail(err, SB_E_BRAKE,
				"instance %s of sandbox %s has another session, %s: it is not "
				"terminated (--force does)",
				i->id, id, v[k].id);
	sb_control_list_free(v, n);
	sb_hostcall_free(h);
	return r;
}

/* The session is gone: so goes the instance. */
static int
finish(struct sb_instctl *c, struct sb_instctl_hold *hold, const struct sb_instance *i,
	const char *id, const struct sb_control_call *call, struct sb_error *err)
{
	int r = sb_instctl_note(c, id, hold, "gone", err);

	if (r == 0)
		r = sb_instance_terminate(c->prov, i->id, call, err);
	return r < 0 ? r : sb_instctl_note(c, id, hold, NULL, err);
}

static int
destroy_held(struct sb_instctl *c, struct sb_instctl_hold *hold, const char *id, bool force,
	const struct sb_control_call *call, struct sb_error *err)
{
	sb_auto(sb_instance) struct sb_instance i = { 0 }, up = { 0 };
	struct sb_hostcall *h = NULL;
	int r = sb_instctl_find(c, id, call, &i, err);

	if (r == SB_E_SANDBOX_NOT_FOUND)
		(void)sb_instctl_note(c, id, hold, NULL, NULL);
	if (r < 0)
		return r;
	r = sb_instctl_note(c, id, hold, "destroy", err);
	/* Its host has to be asked: one that is off is switched on. */
	if (r == 0 && i.state == SB_INSTANCE_STOPPED && c->prov->ops->start)
		r = sb_instance_start(c->prov, i.id, call, err);
	if (r == 0)
		r = sb_instctl_wait(c, i.id, call, &up, err);
	if (r == 0 && !force)
		r = no_others(c, &up, id, call, err);
	h = r == 0 ? sb_instctl_host(c, &up, err) : NULL;
	if (h)
		r = sb_hostsess_destroy(h, id, force, call, err);
	sb_hostcall_free(h);
	if (r == SB_E_SANDBOX_NOT_FOUND)
		r = 0;
	if (r == 0 || (force && r != SB_E_FENCED && r != SB_E_CANCELED))
		return finish(c, hold, &i, id, call, err);
	/* It did not happen: the sandbox is there as before. */
	if (!is_open(r))
		(void)sb_instctl_note(c, id, hold, "ready", NULL);
	return r;
}

int
sb_instctl_destroy(struct sb_control *base, const char *id, bool force,
	const struct sb_control_call *call, struct sb_error *err)
{
	struct sb_instctl *c = (struct sb_instctl *)base;
	sb_auto(sb_instctl_hold) struct sb_instctl_hold hold = SB_INSTCTL_HOLD_INIT;
	int r = sb_instctl_hold(c, id, true, call, &hold, err);

	return r < 0 ? r : destroy_held(c, &hold, id, force, call, err);
}

/* One sandbox after a crash: what nobody can have worked in goes, all else stays. */
static int
recover_one(struct sb_instctl *c, const struct sb_instance *i, const char *id,
	struct sb_instctl_hold *hold, const struct sb_control_call *call, struct sb_error *err)
{
	int there;

	if (strcmp(hold->phase, "launch") == 0 || strcmp(hold->phase, "gone") == 0)
		return finish(c, hold, i, id, call, err);
	if (strcmp(hold->phase, "ready") == 0)
		return 0;
	there = has_session(c, i, id, call, err);
	if (there < 0)
		return sb_wrap(err, there, "sandbox %s is kept: nobody knows what is in it", id);
	if (there > 0)
		return sb_instctl_note(c, id, hold, "ready", err);
	/* Without a record of ours another controller may be making it just now. */
	if (!hold->phase[0])
		return sb_fail(err, SB_E_STATE,
			"instance %s of sandbox %s has no session, and no record here says why: "
			"destroy it by hand",
			i->id, id);
	there = no_others(c, i, id, call, err);
	return there < 0 ? there : finish(c, hold, i, id, call, err);
}

static const char *
tag_of(const struct sb_instance *i, const char *key)
{
	return sb_strlist_get(sb_strlist_borrow(&i->tags), key);
}

/* Records of what never came to be, or is gone: where no instance is, nothing is to be known. */
static int
sweep(struct sb_instctl *c, const struct sb_control_call *call, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist ids = { 0 };
	int r = sb_instctl_records(c, &ids, err);

	for (size_t i = 0; r == 0 && i < ids.n; i++) {
		sb_auto(sb_instctl_hold) struct sb_instctl_hold hold = SB_INSTCTL_HOLD_INIT;
		sb_auto(sb_instance) struct sb_instance inst = { 0 };
		int one = sb_instctl_hold(c, ids.v[i], false, call, &hold, NULL);

		if (one == 0)
			one = sb_instctl_find(c, ids.v[i], call, &inst, NULL);
		if (one == SB_E_SANDBOX_NOT_FOUND && hold.fd >= 0)
			r = sb_instctl_note(c, ids.v[i], &hold, NULL, err);
	}
	return r;
}

int
sb_instctl_recover(struct sb_control *base, const struct sb_control_call *call,
	struct sb_error *err)
{
	struct sb_instctl *c = (struct sb_instctl *)base;
	struct sb_instance_filter f = SB_INSTANCE_FILTER_INIT;
	sb_auto(sb_strlist) struct sb_strlist tags = { 0 };
	struct sb_instance *v = NULL;
	size_t n = 0;
	int r, all = 0;

	sb_instctl_tags(c, NULL, &tags);
	f.tags = sb_strlist_borrow(&tags);
	r = sb_strlist_check(&tags, err);
	if (r == 0)
		r = sb_instance_list(c->prov, &f, call, &v, &n, err);
	for (size_t i = 0; r == 0 && i < n; i++) {
		sb_auto(sb_instctl_hold) struct sb_instctl_hold hold = SB_INSTCTL_HOLD_INIT;
		const char *id = tag_of(&v[i], SB_INSTCTL_TAG_SANDBOX),
			   *probe = tag_of(&v[i], SB_INSTCTL_TAG_PROBE), *name = id ? id : probe;
		struct sb_error why = { 0 };
		int one = name ? sb_instctl_hold(c, name, false, call, &hold, &why) : SB_E_LOCKED;

		/* Somebody works on it. */
		if (one == SB_E_LOCKED)
			continue;
		if (one == 0)
			one = id ? recover_one(c, &v[i], id, &hold, call, &why) :
				   finish(c, &hold, &v[i], probe, call, &why);
		if (one < 0)
			sb_log(&base->log, SB_LOG_WARN, "control", "%s", why.msg);
		if (one < 0 && all == 0)
			all = sb_fail(err, one, "%s", why.msg);
	}
	sb_instance_list_free(v, n);
	/* Where a launch takes its time to be known, a record may be all there is of it. */
	if (r == 0 && !c->prov->settle_ms)
		r = sweep(c, call, err);
	return r < 0 ? r : all;
}
