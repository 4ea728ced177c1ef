/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <fleet/fleet-view-priv.h>

#include <stdlib.h>
#include <string.h>

#include <base/array.h>
#include <base/cond.h>
#include <base/str.h>

void
sb_fleet_view_free(struct sb_fleet_view *v)
{
	if (!v)
		return;
	if (v->running) {
		sb_cancel_request(v->stop);
		(void)pthread_join(v->thread, NULL);
	}
	sb_cancel_free(v->stop);
	for (size_t i = 0; i < v->n_nodes; i++)
		sb_fleet_node_clear(&v->nodes[i].node);
	free(v->nodes);
	free(v->tenants);
	sb_fleet_table_free(&v->boxes);
	sb_fleet_table_free(&v->node_numbers);
	sb_fleet_table_free(&v->tenant_numbers);
	free(v->prefix);
	(void)pthread_rwlock_destroy(&v->lock);
	(void)pthread_mutex_destroy(&v->mu);
	(void)pthread_cond_destroy(&v->turn);
	free(v);
}

static int
init_locks(struct sb_fleet_view *v)
{
	int r = pthread_mutex_init(&v->mu, NULL);

	sb_cond_init(&v->turn);
	return r == 0 ? pthread_rwlock_init(&v->lock, NULL) : r;
}

struct sb_fleet_view *
sb_fleet_view_new(const struct sb_fleet_view_opts *o, struct sb_error *err)
{
	sb_auto(sb_fleet_view) struct sb_fleet_view *v = calloc(1, sizeof *v);

	if (!v || init_locks(v) != 0) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	v->o = *o;
	v->prefix = strdup(o->prefix);
	v->stop = sb_cancel_new(err);
	v->heard_ms = sb_now_ms();
	if (!v->prefix || !v->stop || sb_fleet_table_init(&v->boxes, err) < 0 ||
		sb_fleet_table_init(&v->node_numbers, err) < 0 ||
		sb_fleet_table_init(&v->tenant_numbers, err) < 0)
		return NULL;
	if (pthread_create(&v->thread, NULL, sb_fleet_view_watch_main, v) != 0) {
		(void)sb_fail(err, SB_E_SYS, "a thread for the fleet's records cannot start");
		return NULL;
	}
	v->running = true;
	return sb_steal(&v);
}

int
sb_fleet_view_wait(struct sb_fleet_view *v, const struct sb_cancel *cancel, sb_deadline until,
	struct sb_error *err)
{
	int r = 0;

	(void)pthread_mutex_lock(&v->mu);
	while (!v->listed && r == 0) {
		/* Short steps, so that a cancel is heard. */
		sb_cond_wait_until(&v->turn, &v->mu, sb_deadline_in(50));
		r = sb_check_alive(cancel, until, "the fleet's records", NULL);
	}
	if (r < 0)
		r = sb_fail(err, r, "the fleet's records were not read: %s",
			v->why.msg[0] ? v->why.msg : "etcd has not answered yet");
	(void)pthread_mutex_unlock(&v->mu);
	return r;
}

/* --- what is known
 * -------------------------------------------------------------------------------- */

/* The number of the node, which is made known; UINT32_MAX: out of memory. */
static uint32_t
number_of_node(struct sb_fleet_view *v, const char *id)
{
	struct sb_fleet_slot *s = sb_fleet_table_find(&v->node_numbers, id);

	if (s)
		return s->node;
	if (!sb_array_grow((void **)&v->nodes, &v->cap_nodes, v->n_nodes + 1, sizeof *v->nodes))
		return UINT32_MAX;
	s = sb_fleet_table_put(&v->node_numbers, id);
	if (!s)
		return UINT32_MAX;
	s->node = (uint32_t)v->n_nodes;
	memset(&v->nodes[v->n_nodes], 0, sizeof *v->nodes);
	(void)memcpy(v->nodes[v->n_nodes].id, id, strlen(id) + 1);
	return (uint32_t)v->n_nodes++;
}

static uint32_t
number_of_tenant(struct sb_fleet_view *v, const char *name)
{
	const char *key = name ? name : "";
	struct sb_fleet_slot *s = sb_fleet_table_find(&v->tenant_numbers, key);

	if (s)
		return s->tenant;
	if (!sb_array_grow((void **)&v->tenants, &v->cap_tenants, v->n_tenants + 1,
		    sizeof *v->tenants))
		return UINT32_MAX;
	s = sb_fleet_table_put(&v->tenant_numbers, key);
	if (!s)
		return UINT32_MAX;
	s->tenant = (uint32_t)v->n_tenants;
	v->tenants[v->n_tenants] = 0;
	return (uint32_t)v->n_tenants++;
}

static void
count_box(struct sb_fleet_view *v, const struct sb_fleet_slot *s, int by)
{
	v->nodes[s->node].boxes += (uint32_t)by;
	if (s->to != UINT32_MAX)
		v->nodes[s->to].boxes += (uint32_t)by;
	v->tenants[s->tenant] += (uint32_t)by;
}

static void
forget_box(struct sb_fleet_view *v, struct sb_fleet_slot *s)
{
	count_box(v, s, -1);
	sb_fleet_table_remove(&v->boxes, s);
}

static void
take_box(struct sb_fleet_view *v, const char *id, const void *data, size_t len, int64_t rev)
{
	struct sb_fleet_slot *s = sb_fleet_table_find(&v->boxes, id);
	sb_auto(sb_fleet_box) struct sb_fleet_box b = { 0 };
	struct sb_error err = { 0 };
	uint32_t node, to = UINT32_MAX, tenant;

	if (s)
		s->round = v->round;
	if (s && s->rev >= rev)
		return;
	if (!data) {
		if (s)
			forget_box(v, s);
		return;
	}
	if (sb_fleet_box_read(&b, data, len, &err) < 0) {
		v->damaged++;
		sb_log(&v->o.log, SB_LOG_ERROR, "fleet", "session %s: %s", id, err.msg);
		return;
	}
	node = number_of_node(v, b.node);
	tenant = number_of_tenant(v, b.tenant);
	if (b.to[0])
		to = number_of_node(v, b.to);
	if (node == UINT32_MAX || tenant == UINT32_MAX || (b.to[0] && to == UINT32_MAX))
		return;
	if (s) {
		count_box(v, s, -1);
	} else {
		s = sb_fleet_table_put(&v->boxes, id);
		if (!s)
			return;
	}
	s->rev = rev;
	s->node = node;
	s->to = to;
	s->tenant = tenant;
	s->state = (uint8_t)b.state;
	s->round = v->round;
	count_box(v, s, 1);
}

static void
take_node(struct sb_fleet_view *v, const char *id, const void *data, size_t len, int64_t rev)
{
	uint32_t at = sb_fleet_name_ok(id) ? number_of_node(v, id) : UINT32_MAX;
	struct sb_fleet_node n = { 0 };
	struct sb_error err = { 0 };
	struct sb_fleet_known *k;

	if (at == UINT32_MAX)
		return;
	k = &v->nodes[at];
	k->round = v->round;
	if (k->node_rev >= rev)
		return;
	k->node_rev = rev;
	if (data && sb_fleet_node_read(&n, id, data, len, &err) < 0) {
		v->damaged++;
		sb_log(&v->o.log, SB_LOG_ERROR, "fleet", "node %s: %s", id, err.msg);
		return;
	}
	sb_fleet_node_clear(&k->node);
	k->node = n;
	k->recorded = data != NULL;
}

static void
take_load(struct sb_fleet_view *v, const char *id, const void *data, size_t len, int64_t rev)
{
	uint32_t at = sb_fleet_name_ok(id) ? number_of_node(v, id) : UINT32_MAX;
	struct sb_fleet_load l = { 0 };
	struct sb_error err = { 0 };
	struct sb_fleet_known *k;

	if (at == UINT32_MAX)
		return;
	k = &v->nodes[at];
	k->load_round = v->round;
	if (k->load_rev >= rev)
		return;
	k->load_rev = rev;
	if (data && sb_fleet_load_read(&l, data, len, &err) < 0) {
		v->damaged++;
		sb_log(&v->o.log, SB_LOG_ERROR, "fleet", "load of %s: %s", id, err.msg);
		return;
	}
	k->load = l;
	k->alive = data != NULL;
}

void
sb_fleet_view_take(struct sb_fleet_view *v, const char *key, const void *data, size_t len,
	int64_t rev)
{
	(void)pthread_rwlock_wrlock(&v->lock);
	if (sb_str_starts(key, "box/"))
		take_box(v, key + 4, data, len, rev);
	else if (sb_str_starts(key, "node/"))
		take_node(v, key + 5, data, len, rev);
	else if (sb_str_starts(key, "load/"))
		take_load(v, key + 5, data, len, rev);
	(void)pthread_rwlock_unlock(&v->lock);
}

void
sb_fleet_view_told(struct sb_fleet_view *v, const char *session, const void *data, size_t len,
	int64_t rev)
{
	(void)pthread_rwlock_wrlock(&v->lock);
	take_box(v, session, data, len, rev);
	(void)pthread_rwlock_unlock(&v->lock);
}

void
sb_fleet_view_sweep_begin(struct sb_fleet_view *v)
{
	(void)pthread_rwlock_wrlock(&v->lock);
	v->round++;
	(void)pthread_rwlock_unlock(&v->lock);
}

void
sb_fleet_view_sweep_end(struct sb_fleet_view *v, int64_t rev)
{
	(void)pthread_rwlock_wrlock(&v->lock);
	for (size_t i = 0; i < v->boxes.cap; i++) {
		/* What moves up into the place of a removed one is looked at, too. */
		while (v->boxes.v[i] && v->boxes.v[i]->round != v->round &&
			v->boxes.v[i]->rev <= rev)
			forget_box(v, v->boxes.v[i]);
	}
	for (size_t i = 0; i < v->n_nodes; i++) {
		struct sb_fleet_known *k = &v->nodes[i];

		if (k->round != v->round && k->node_rev <= rev)
			k->recorded = false;
		if (k->load_round != v->round && k->load_rev <= rev)
			k->alive = false;
	}
	(void)pthread_rwlock_unlock(&v->lock);
}

/* --- what is asked
 * -------------------------------------------------------------------------------- */

bool
sb_fleet_view_box(struct sb_fleet_view *v, const char *session, struct sb_fleet_at *out)
{
	const struct sb_fleet_slot *s;

	memset(out, 0, sizeof *out);
	(void)pthread_rwlock_rdlock(&v->lock);
	s = sb_fleet_table_find(&v->boxes, session);
	if (s) {
		(void)memcpy(out->node, v->nodes[s->node].id, sizeof out->node);
		if (s->to != UINT32_MAX)
			(void)memcpy(out->to, v->nodes[s->to].id, sizeof out->to);
		out->state = (enum sb_fleet_box_state)s->state;
		out->rev = s->rev;
	}
	(void)pthread_rwlock_unlock(&v->lock);
	return s != NULL;
}

static int
copy_text(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return from && !*to ? -1 : 0;
}

static int
copy_node(struct sb_fleet_node *to, const struct sb_fleet_node *from)
{
	struct sb_fleet_node n = *from;
	int r;

	memset(&n.labels, 0, sizeof n.labels);
	memset(&n.templates, 0, sizeof n.templates);
	r = copy_text(&n.address, from->address);
	r |= copy_text(&n.e2b, from->e2b);
	r |= copy_text(&n.daytona, from->daytona);
	r |= copy_text(&n.ssh, from->ssh);
	r |= copy_text(&n.instance, from->instance);
	r |= copy_text(&n.why, from->why);
	for (size_t i = 0; i < from->labels.n; i++)
		r |= sb_strmap_set(&n.labels, from->labels.v[i].key, from->labels.v[i].value, NULL);
	sb_strlist_join(&n.templates, &from->templates);
	r |= sb_strlist_check(&n.templates, NULL);
	if (r < 0)
		sb_fleet_node_clear(&n);
	else
		*to = n;
	return r;
}

bool
sb_fleet_view_node(struct sb_fleet_view *v, const char *id, struct sb_fleet_node *node,
	struct sb_fleet_pick_load *load, bool *alive)
{
	const struct sb_fleet_slot *s;
	bool found = false;

	memset(node, 0, sizeof *node);
	(void)pthread_rwlock_rdlock(&v->lock);
	s = sb_fleet_table_find(&v->node_numbers, id);
	if (s && v->nodes[s->node].recorded) {
		const struct sb_fleet_known *k = &v->nodes[s->node];

		found = copy_node(node, &k->node) == 0;
		if (load)
			sb_fleet_view_load(k, load);
		if (alive)
			*alive = k->alive && k->load.healthy;
	}
	(void)pthread_rwlock_unlock(&v->lock);
	return found;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int
sb_fleet_view_nodes(struct sb_fleet_view *v, struct sb_strlist *out, struct sb_error *err)
{
	(void)pthread_rwlock_rdlock(&v->lock);
	for (size_t i = 0; i < v->n_nodes; i++)
		if (v->nodes[i].recorded)
			sb_strlist_add(out, v->nodes[i].id);
	(void)pthread_rwlock_unlock(&v->lock);
	if (sb_strlist_check(out, err) < 0)
		return SB_E_NOMEM;
	if (out->n > 1)
		qsort(out->v, out->n, sizeof *out->v, by_name);
	return 0;
}

void
sb_fleet_view_count(struct sb_fleet_view *v, struct sb_fleet_view_counts *out)
{
	memset(out, 0, sizeof *out);
	(void)pthread_rwlock_rdlock(&v->lock);
	for (size_t i = 0; i < v->n_nodes; i++) {
		const struct sb_fleet_known *k = &v->nodes[i];

		out->nodes += k->recorded;
		out->alive += k->recorded && k->alive && k->load.healthy;
		out->ready += k->recorded && k->node.state == SB_FLEET_READY && !k->node.cordoned;
	}
	out->boxes = v->boxes.n;
	out->bytes = v->boxes.bytes + v->boxes.cap * sizeof *v->boxes.v;
	out->damaged = v->damaged;
	(void)pthread_rwlock_unlock(&v->lock);
	(void)pthread_mutex_lock(&v->mu);
	out->behind_ms = sb_now_ms() - v->heard_ms;
	out->online = v->listed && out->behind_ms < 3 * v->o.quiet_ms;
	(void)pthread_mutex_unlock(&v->mu);
}

size_t
sb_fleet_view_tenant(struct sb_fleet_view *v, const char *tenant)
{
	const struct sb_fleet_slot *s;
	size_t n;

	(void)pthread_rwlock_rdlock(&v->lock);
	s = sb_fleet_table_find(&v->tenant_numbers, tenant);
	n = s ? v->tenants[s->tenant] : 0;
	(void)pthread_rwlock_unlock(&v->lock);
	return n;
}
