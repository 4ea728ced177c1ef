/* SPDX-License-Identifier: MIT */
/* Checks of controls: sandboxes are made, found and removed. */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <conform/control-check-priv.h>

static int
capabilities(struct sb_control_check *k, struct sb_error *err)
{
	struct sb_control_call call = sb_control_check_call(k);
	int r;

	k->caps = (struct sb_control_caps)SB_CONTROL_CAPS_INIT;
	r = sb_control_capabilities(k->c, &call, &k->caps, err);
	if (r < 0)
		return r;
	if (!k->c->ops || k->c->ops->version != SB_CONTROL_VERSION)
		return broken(err, "the control is not of version %d", SB_CONTROL_VERSION);
	if ((k->caps.rollback || k->caps.fork) && !k->caps.snapshots)
		return broken(err, "rollback or fork without snapshots");
	if ((k->caps.pause_keeps || k->caps.deep_pause) && !k->caps.pause)
		return broken(err, "a kind of pause without pause");
	return k->caps.launch ? 0 : broken(err, "a control that cannot launch");
}

static int
create(struct sb_control_check *k, struct sb_error *err)
{
	struct sb_control_call call = sb_control_check_call(k);
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 }, again = { 0 };
	size_t n = 0;
	int r = sb_control_check_plain(k, &s, err);

	if (r < 0)
		return r;
	if (!s.id[0] || s.state != SB_CONTROL_RUNNING)
		return broken(err, "sandbox \"%s\" is %s after create", s.id,
			sb_control_state_name(s.state));
	if (s.address[0] && sb_control_address_check(s.address, err) < 0)
		return sb_wrap(err, SB_E_STATE, "address");
	r = sb_control_get(k->c, s.id, &call, &again, err);
	if (r < 0)
		return sb_wrap(err, r, "get");
	if (strcmp(again.id, s.id) != 0 || again.state != SB_CONTROL_RUNNING ||
		strcmp(again.address, s.address) != 0)
		return broken(err, "get tells of %s (%s, \"%s\"), create of %s (\"%s\")", again.id,
			sb_control_state_name(again.state), again.address, s.id, s.address);
	r = sb_control_check_count(k, &n, err);
	return r == 0 && n != 1 ? broken(err, "the list has %zu sandboxes, must be 1", n) : r;
}

/* Is it in the list that has these labels? */
static int
listed(struct sb_control_check *k, const char *id, const char *const *labels, bool *out,
	struct sb_error *err)
{
	struct sb_control_call call = sb_control_check_call(k);
	struct sb_control_filter f = SB_CONTROL_FILTER_INIT;
	struct sb_control_sandbox *v;
	size_t n;
	int r;

	f.labels = labels;
	r = sb_control_list(k->c, &f, &call, &v, &n, err);
	*out = false;
	for (size_t i = 0; r == 0 && i < n; i++)
		*out = *out || strcmp(v[i].id, id) == 0;
	if (r == 0)
		sb_control_list_free(v, n);
	return r;
}

static int
labels(struct sb_control_check *k, struct sb_error *err)
{
	static const char *const mine[] = { "color=green", "Name=a b/c", "empty=", NULL };
	static const char *const both[] = { "color=green", "empty=", NULL };
	static const char *const wrong[] = { "color=green", "Name=other", NULL };
	struct sb_control_create_opts o = SB_CONTROL_CREATE_OPTS_INIT;
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 };
	bool in = false, out = false;
	int r;

	o.labels = mine;
	r = sb_control_check_make(k, &o, &s, err);
	for (size_t i = 0; r == 0 && mine[i]; i++)
		if (!sb_strlist_has(sb_strlist_borrow(&s.labels), mine[i]))
			r = broken(err, "the sandbox has no label %s", mine[i]);
	if (r == 0 && s.labels.n != 4)
		r = broken(err, "the sandbox has %zu labels, must be 4", s.labels.n);
	if (r == 0)
		r = listed(k, s.id, both, &in, err);
	if (r == 0)
		r = listed(k, s.id, wrong, &out, err);
	if (r == 0 && !in)
		r = broken(err, "it is not found by its labels");
	return r == 0 && out ? broken(err, "it is found though one of the labels is another") : r;
}

static int
key(struct sb_control_check *k, struct sb_error *err)
{
	static const char *const more[] = { "another=request", NULL };
	struct sb_control_create_opts o = SB_CONTROL_CREATE_OPTS_INIT;
	sb_auto(sb_control_sandbox) struct sb_control_sandbox a = { 0 }, b = { 0 }, c = { 0 };
	struct sb_error why = { 0 };
	char name[64], other[64];
	size_t n;
	int r;

	sb_control_check_key(k, name);
	sb_control_check_key(k, other);
	o.key = name;
	r = sb_control_check_make(k, &o, &a, err);
	if (r == 0)
		r = sb_control_check_make(k, &o, &b, err);
	if (r == 0 && strcmp(a.id, b.id) != 0)
		r = broken(err, "one key gave %s, then %s", a.id, b.id);
	if (r < 0)
		return r;
	o.labels = more;
	r = sb_control_check_make(k, &o, &c, &why);
	r = sb_control_check_fails(r, SB_E_CONFLICT, "the key with another request", &why, err);
	o.key = other;
	if (r == 0)
		r = sb_control_check_make(k, &o, &c, err);
	if (r == 0 && strcmp(a.id, c.id) == 0)
		r = broken(err, "two keys gave the same sandbox");
	if (r == 0)
		r = sb_control_check_count(k, &n, err);
	return r == 0 && n != 2 ? broken(err, "%zu sandboxes of two keys", n) : r;
}

struct race {
	struct sb_control_check *k;
	const char *key;
	char id[SB_CONTROL_ID_MAX + 1];
	struct sb_error err;
	int r;
};

static void *
race_run(void *arg)
{
	struct race *x = arg;
	struct sb_control_call call = sb_control_check_call(x->k);
	struct sb_control_create_opts o = SB_CONTROL_CREATE_OPTS_INIT;
	struct sb_control_sandbox s = { 0 };
	char label[64];
	const char *own[] = { label, NULL };

	(void)snprintf(label, sizeof label, "sbcheck=%s", x->k->label);
	o.key = x->key;
	o.labels = own;
	x->r = sb_control_create(x->k->c, &o, &call, &s, &x->err);
	if (x->r == 0)
		(void)snprintf(x->id, sizeof x->id, "%s", s.id);
	sb_control_sandbox_free(&s);
	return NULL;
}

static int
key_race(struct sb_control_check *k, struct sb_error *err)
{
	struct race x[3];
	pthread_t t[3];
	char name[64];
	size_t n = 0;
	int r = 0;

	sb_control_check_key(k, name);
	for (int i = 0; i < 3; i++) {
		x[i] = (struct race){ .k = k, .key = name };
		if (pthread_create(&t[i], NULL, race_run, &x[i]) != 0)
			t[i] = pthread_self();
	}
	for (int i = 0; i < 3; i++) {
		if (pthread_equal(t[i], pthread_self()))
			continue;
		(void)pthread_join(t[i], NULL);
		if (x[i].r < 0 && r == 0)
			r = sb_fail(err, x[i].r, "create at the same time: %s", x[i].err.msg);
		if (x[i].r == 0)
			sb_strlist_add(&k->made, x[i].id);
		if (r == 0 && strcmp(x[i].id, x[0].id) != 0)
			r = broken(err, "one key gave %s and %s", x[0].id, x[i].id);
	}
	if (r == 0)
		r = sb_control_check_count(k, &n, err);
	return r == 0 && n != 1 ? broken(err, "%zu sandboxes of one key", n) : r;
}

static int
refuse(struct sb_control_check *k, const char *what, struct sb_control_create_opts o, int want,
	struct sb_error *err)
{
	struct sb_control_call call = sb_control_check_call(k);
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 };
	struct sb_error why = { 0 };
	int r = sb_control_create(k->c, &o, &call, &s, &why);

	if (r == 0)
		sb_strlist_add(&k->made, s.id);
	return sb_control_check_fails(r, want, what, &why, err);
}

static int
create_refuses(struct sb_control_check *k, struct sb_error *err)
{
	static const char *const bad[] = { "no value", NULL };
	static const char *const own[] = { "sb.mine=1", NULL };
	static const char *const entry[] = { "not an entry", NULL };
	struct sb_control_create_opts o = SB_CONTROL_CREATE_OPTS_INIT, n = o;
	int r;

	o.labels = bad;
	r = refuse(k, "a label without a value", o, SB_E_INVAL, err);
	o.labels = own;
	if (r == 0)
		r = refuse(k, "a label of the control's own", o, SB_E_INVAL, err);
	o = n;
	o.key = "";
	if (r == 0)
		r = refuse(k, "an empty key", o, SB_E_INVAL, err);
	o = n;
	o.allow = entry;
	if (r == 0)
		r = refuse(k, "an allow list that is none", o, SB_E_INVAL, err);
	o = n;
	o.base = "sbcheck-no-such-base";
	if (r == 0)
		r = refuse(k, "a base that is not there", o,
			k->caps.bases ? SB_E_BASE_NOT_FOUND : SB_E_UNSUPPORTED, err);
	return r;
}

/* What the control cannot give is refused, not left out. */
static int
create_limits(struct sb_control_check *k, struct sb_error *err)
{
	struct sb_control_create_opts o = SB_CONTROL_CREATE_OPTS_INIT, n = o;
	int r = 0, tried = 0;

	o.cpus = 1;
	if (!k->caps.resources && ++tried)
		r = refuse(k, "cpus", o, SB_E_UNSUPPORTED, err);
	o = n;
	o.mem_mb = 512;
	if (r == 0 && !k->caps.resources && ++tried)
		r = refuse(k, "mem_mb", o, SB_E_UNSUPPORTED, err);
	o = n;
	o.disk_mb = 512;
	if (r == 0 && !k->caps.disk && ++tried)
		r = refuse(k, "disk_mb", o, SB_E_UNSUPPORTED, err);
	o = n;
	o.lifetime_ms = 3600000;
	if (r == 0 && !k->caps.lifetime && ++tried)
		r = refuse(k, "lifetime", o, SB_E_UNSUPPORTED, err);
	o = n;
	o.network = SB_CONTROL_NET_OUTBOUND;
	if (r == 0 && !k->caps.network && ++tried)
		r = refuse(k, "network", o, SB_E_UNSUPPORTED, err);
	if (r == 0 && !tried)
		return sb_control_check_skip(err, "this control can all of it");
	return r;
}

static int
destroy(struct sb_control_check *k, struct sb_error *err)
{
	struct sb_control_call call = sb_control_check_call(k);
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 }, t = { 0 }, gone = { 0 };
	struct sb_error why = { 0 };
	size_t n = 0;
	int r = sb_control_check_plain(k, &s, err);

	if (r == 0)
		r = sb_control_check_plain(k, &t, err);
	if (r == 0)
		r = sb_control_destroy(k->c, s.id, false, &call, err);
	if (r == 0)
		r = sb_control_check_fails(sb_control_get(k->c, s.id, &call, &gone, &why),
			SB_E_SANDBOX_NOT_FOUND, "get of a destroyed one", &why, err);
	if (r == 0)
		r = sb_control_check_fails(sb_control_destroy(k->c, s.id, false, &call, &why),
			SB_E_SANDBOX_NOT_FOUND, "destroy of a destroyed one", &why, err);
	if (r == 0)
		r = sb_control_check_count(k, &n, err);
	if (r == 0 && n != 1)
		r = broken(err, "%zu sandboxes are left of two, one was destroyed", n);
	return r == 0 ? sb_control_check_sh_is(k, t.id, "exit 0", 0, err) : r;
}

static int
unknown(struct sb_control_check *k, struct sb_error *err)
{
	struct sb_control_call call = sb_control_check_call(k);
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 };
	struct sb_control_launch_opts o = SB_CONTROL_LAUNCH_OPTS_INIT;
	struct sb_control_process p;
	struct sb_error why = { 0 };
	int r = sb_control_check_fails(sb_control_get(k->c, "sbcheck-none", &call, &s, &why),
		SB_E_SANDBOX_NOT_FOUND, "get", &why, err);

	o.sandbox = "sbcheck-none";
	o.binary = "true";
	if (r == 0)
		r = sb_control_check_fails(sb_control_launch(k->c, &o, &call, &p, &why),
			SB_E_SANDBOX_NOT_FOUND, "launch", &why, err);
	if (r == 0)
		r = sb_control_check_fails(
			sb_control_destroy(k->c, "sbcheck-none", true, &call, &why),
			SB_E_SANDBOX_NOT_FOUND, "destroy", &why, err);
	if (r == 0)
		r = sb_control_check_fails(
			sb_control_get(k->c, "../x y\n", &call, &s, &why) < 0 ? SB_E_INVAL : 0,
			SB_E_INVAL, "get of a strange name", &why, err);
	return r;
}

/* What a process knows, its successor knows too. */
static int
again(struct sb_control_check *k, struct sb_error *err)
{
	static const char *const args[] = { "-c", "exec sleep 1000", NULL };
	struct sb_control_call call = sb_control_check_call(k);
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 }, t = { 0 };
	struct sb_control_launch_opts o = SB_CONTROL_LAUNCH_OPTS_INIT;
	struct sb_control_process p = { 0 };
	struct sb_control *c;
	int r;

	if (!k->o->again)
		return sb_control_check_skip(err, "no second control to try it with");
	r = sb_control_check_plain(k, &s, err);
	o.sandbox = s.id;
	o.binary = "sh";
	o.args = args;
	if (r == 0)
		r = sb_control_launch(k->c, &o, &call, &p, err);
	if (r < 0)
		return r;
	c = k->o->again(k->o->arg, err);
	if (!c)
		return err->code;
	r = sb_control_get(c, s.id, &call, &t, err);
	if (r == 0 && t.state != SB_CONTROL_RUNNING)
		r = broken(err, "%s is %s for a second control", s.id,
			sb_control_state_name(t.state));
	if (r == 0)
		r = sb_control_status(c, s.id, p.id, &call, &p, err);
	if (r == 0 && p.status != SB_CONTROL_UP)
		r = broken(err, "process %s is %s for a second control", p.id,
			sb_control_status_name(p.status));
	if (r == 0)
		r = sb_control_kill(c, s.id, p.id, 9, &call, err);
	sb_control_close(c);
	/* Closing touches nothing. */
	if (r == 0)
		r = sb_control_check_sh_is(k, s.id, "exit 3", 3, err);
	return r;
}

static int
fence(struct sb_control_check *k, struct sb_error *err)
{
	struct sb_control_call high = sb_control_check_call(k), low = high;
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 };
	struct sb_control_launch_opts o = SB_CONTROL_LAUNCH_OPTS_INIT;
	struct sb_control_process p;
	struct sb_error why = { 0 };
	int r;

	if (!k->caps.fence)
		return sb_control_check_skip(err, "this control has no fencing tokens");
	r = sb_control_check_plain(k, &s, err);
	high.fence = 8;
	low.fence = 7;
	o.sandbox = s.id;
	o.binary = "true";
	if (r == 0)
		r = sb_control_launch(k->c, &o, &high, &p, err);
	if (r == 0)
		r = sb_control_check_fails(sb_control_launch(k->c, &o, &low, &p, &why), SB_E_FENCED,
			"launch by who was replaced", &why, err);
	if (r == 0)
		r = sb_control_check_fails(sb_control_destroy(k->c, s.id, true, &low, &why),
			SB_E_FENCED, "destroy by who was replaced", &why, err);
	return r;
}

const struct sb_control_check_row sb_control_check_life_rows[] = {
	{ "capabilities", "they are told, and fit each other", capabilities },
	{ "create", "makes one that runs, is found and is listed", create },
	{ "labels", "come back, and all that are asked for must match", labels },
	{ "key", "a key gives one sandbox, and is refused for another request", key },
	{ "key-race", "a key that three use at once gives one sandbox", key_race },
	{ "refuse-request", "mistakes in a request are refused", create_refuses },
	{ "refuse-limits", "what it cannot limit is refused", create_limits },
	{ "destroy", "removes that one, once", destroy },
	{ "unknown", "sandboxes that are not there are said to be so", unknown },
	{ "again", "a second process sees and ends what the first one made", again },
	{ "fence", "who was replaced changes nothing", fence },
	{ NULL, NULL, NULL },
};
