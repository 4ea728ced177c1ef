/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <fleet/fleet-pick.h>

/* Of the shares that are not the worst one. */
#define REST 0.05

static double
share(uint64_t used, uint64_t all, double weight)
{
	return all > 0 ? weight * (double)used / (double)all : 0;
}

double
sb_fleet_pick_score(const struct sb_fleet_pick_load *l, const struct sb_fleet_pick_opts *o)
{
	const double of[] = {
		share(l->sessions, l->max_sessions, o->w_sessions),
		share(l->mem_used, l->mem, o->w_mem),
		share(l->disk_used, l->disk, o->w_disk),
		l->busy * o->w_busy,
	};
	double worst = 0, sum = 0;

	if (l->max_sessions > 0 && l->sessions >= o->headroom * l->max_sessions)
		return 1 + share(l->sessions, l->max_sessions, 1);
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		sum += of[i];
		if (of[i] > worst)
			worst = of[i];
	}
	/* A node without any limit is the fuller the more it has. */
	if (l->max_sessions == 0)
		sum += l->sessions / (l->sessions + 64.0);
	return worst >= 1 ? worst : (worst + REST * (sum - worst)) / (1 + REST * 4);
}

/* The best so far. */
struct best {
	long at;
	double score;
	bool full; /* one that may be taken has no room */
};

static bool
look(struct best *b, size_t i, sb_fleet_pick_load_fn load, void *arg,
	const struct sb_fleet_pick_opts *o)
{
	struct sb_fleet_pick_load l = { 0 };
	double score;

	if (!load(i, &l, arg))
		return false;
	score = sb_fleet_pick_score(&l, o);
	if (score >= 1) {
		b->full = true;
		return false;
	}
	if (b->at < 0 || score < b->score) {
		b->at = (long)i;
		b->score = score;
	}
	return true;
}

long
sb_fleet_pick(size_t n, sb_fleet_pick_load_fn load, uint64_t (*random)(void *arg), void *arg,
	const struct sb_fleet_pick_opts *o, bool *full)
{
	struct best b = { .at = -1 };
	unsigned seen = 0;

	/* Chance finds those that may be taken, unless they are few. */
	for (unsigned tries = 0; n > 0 && seen < o->k && tries < 8 * o->k; tries++)
		seen += look(&b, random(arg) % n, load, arg, o);
	/* Then one after the other from a place by chance; the first few decide. */
	if (seen == 0 && n > 0) {
		size_t from = random(arg) % n;

		for (size_t i = 0; i < n && seen < o->k; i++)
			seen += look(&b, (from + i) % n, load, arg, o);
	}
	*full = b.at < 0 && b.full;
	return b.at;
}
