/* SPDX-License-Identifier: MIT */
/* Which states of a sandbox may follow each other (declared in sb/sandbox.h). */
#include "config.h"

#include <sb/sandbox.h>

#define BIT(name) (1u << SB_LIFE_##name)

/* Where each state may lead. From `destroyed` and `stopped` a session may be started again. */
static const unsigned next_of[SB_LIFE_COUNT] = {
	[SB_LIFE_CREATING] =
		BIT(READY) | BIT(FOUND) | BIT(PREPARED) | BIT(DESTROYED) | BIT(STOPPED),
	[SB_LIFE_READY] = BIT(PREPARED) | BIT(CREATING) | BIT(DESTROYED),
	[SB_LIFE_FOUND] = BIT(PREPARED) | BIT(CREATING) | BIT(UNSYNCED) | BIT(DESTROYED),
	[SB_LIFE_PREPARED] =
		BIT(CREATING) | BIT(ACTIVE) | BIT(STOPPING) | BIT(STOPPED) | BIT(DESTROYED),
	[SB_LIFE_ACTIVE] = BIT(STOPPING) | BIT(UNSYNCED),
	[SB_LIFE_STOPPING] = BIT(UNSYNCED) | BIT(STOPPED) | BIT(DESTROYED),
	[SB_LIFE_UNSYNCED] = BIT(STOPPING) | BIT(ACTIVE) | BIT(STOPPED) | BIT(DESTROYED),
	[SB_LIFE_STOPPED] =
		BIT(CREATING) | BIT(PREPARED) | BIT(ACTIVE) | BIT(STOPPING) | BIT(DESTROYED),
	[SB_LIFE_DESTROYED] = BIT(CREATING),
};

bool
sb_life_allows(enum sb_life from, enum sb_life to)
{
	if ((unsigned)from >= SB_LIFE_COUNT || (unsigned)to >= SB_LIFE_COUNT)
		return false;
	return from == to || (next_of[from] & (1u << to));
}
