/* SPDX-License-Identifier: MIT */
/* The node for a new session, chosen of what a view knows. */
#include "config.h"

#include <fleet/fleet-view-priv.h>

#include <stdlib.h>
#include <string.h>

#include <base/random.h>

void
sb_fleet_view_load(const struct sb_fleet_known *k, struct sb_fleet_pick_load *out)
{
	uint32_t limit = k->node.max_sessions;

	if (limit == 0 || (k->load.max_sessions > 0 && k->load.max_sessions < limit))
		limit = k->load.max_sessions;
	*out = (struct sb_fleet_pick_load){
		.sessions = k->boxes > k->load.sessions ? k->boxes : k->load.sessions,
		.max_sessions = limit,
		.mem_used = k->load.mem_mb - k->load.mem_free_mb,
		.mem = k->load.mem_mb,
		.disk_used = k->load.disk - k->load.disk_free,
		.disk = k->load.disk,
	};
	if (k->load.cpus > 0)
		out->busy = k->load.active_tools < k->load.cpus ?
			(double)k->load.active_tools / (double)k->load.cpus :
			1;
}

/* A choice under way. */
struct choice {
	const struct sb_fleet_view *v;
	const struct sb_fleet_want *want;
	bool missed; /* a node that takes sessions lacks the template */
	uint64_t state;
};

static bool
has_labels(const struct sb_fleet_node *n, const struct sb_strmap *labels)
{
	for (size_t i = 0; labels && i < labels->n; i++) {
		const char *have = sb_strmap_get(&n->labels, labels->v[i].key);

		if (!have || strcmp(have, labels->v[i].value) != 0)
			return false;
	}
	return true;
}

static bool
may_take(size_t i, struct sb_fleet_pick_load *out, void *arg)
{
	struct choice *c = arg;
	const struct sb_fleet_known *k = &c->v->nodes[i];
	const struct sb_strlist *except = c->want->except;

	if (!k->recorded || !k->alive || !k->load.healthy || k->node.cordoned ||
		k->node.state != SB_FLEET_READY || !has_labels(&k->node, c->want->labels))
		return false;
	if (except && sb_strlist_has(sb_strlist_borrow(except), k->id))
		return false;
	if (c->want->template && *c->want->template &&
		!sb_strlist_has(sb_strlist_borrow(&k->node.templates), c->want->template)) {
		c->missed = true;
		return false;
	}
	sb_fleet_view_load(k, out);
	return true;
}

/* Chance that need not be a secret (xorshift). */
static uint64_t
by_chance(void *arg)
{
	struct choice *c = arg;

	c->state ^= c->state << 13;
	c->state ^= c->state >> 7;
	c->state ^= c->state << 17;
	return c->state;
}

int
sb_fleet_view_pick(struct sb_fleet_view *v, const struct sb_fleet_want *want,
	const struct sb_fleet_pick_opts *o, char node[SB_FLEET_NAME_MAX + 1], char **address,
	struct sb_error *err)
{
	struct choice c = { .v = v, .want = want };
	bool full;
	long at;
	int r = sb_random(&c.state, sizeof c.state, err);

	if (r < 0)
		return r;
	c.state |= 1;
	(void)pthread_rwlock_rdlock(&v->lock);
	at = sb_fleet_pick(v->n_nodes, may_take, by_chance, &c, o, &full);
	if (at >= 0) {
		(void)memcpy(node, v->nodes[at].id, SB_FLEET_NAME_MAX + 1);
		*address = strdup(v->nodes[at].node.address);
	}
	(void)pthread_rwlock_unlock(&v->lock);
	if (at >= 0)
		return *address ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
	if (full)
		return sb_fail(err, SB_E_MAX_SESSIONS, "every node of the fleet is full");
	if (c.missed)
		return sb_fail(err, SB_E_BASE_NOT_FOUND, "no node that takes sessions has base %s",
			want->template);
	return sb_fail(err, SB_E_UNAVAILABLE, "no node of the fleet takes sessions now");
}
