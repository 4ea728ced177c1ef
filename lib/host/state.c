/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/state.h>

#include <string.h>

static const struct {
	const char *name;
	const char *wire;
	bool passing;
} states[SB_HOST_STATES] = {
	[SB_HOST_CREATING] = { "creating", "creating", true },
	[SB_HOST_ACTIVE] = { "active", "active", false },
	[SB_HOST_PAUSING] = { "pausing", "active", true },
	[SB_HOST_PAUSED] = { "paused", "paused", false },
	[SB_HOST_RESUMING] = { "resuming", "paused", true },
	[SB_HOST_ROLLING_BACK] = { "rolling-back", "active", true },
	[SB_HOST_DESTROYING] = { "destroying", "destroying", false },
	[SB_HOST_FAILED] = { "failed", "failed", false },
	[SB_HOST_COOLING] = { "cooling", "paused", true },
	[SB_HOST_COLD] = { "cold", "cold", false },
	[SB_HOST_WARMING] = { "warming", "cold", true },
};

#define TO(s) (1u << SB_HOST_##s)

/*
 * The one transition table. A session enters as CREATING (PAUSED when adopted, COLD from cold
 * storage) and leaves from DESTROYING.
 */
static const unsigned transitions[SB_HOST_STATES] = {
	[SB_HOST_CREATING] = TO(ACTIVE) | TO(DESTROYING),
	[SB_HOST_ACTIVE] = TO(PAUSING) | TO(ROLLING_BACK) | TO(DESTROYING) | TO(FAILED),
	[SB_HOST_PAUSING] = TO(PAUSED) | TO(ACTIVE) | TO(DESTROYING) | TO(FAILED),
	[SB_HOST_PAUSED] = TO(RESUMING) | TO(COOLING) | TO(DESTROYING) | TO(FAILED),
	[SB_HOST_RESUMING] = TO(ACTIVE) | TO(PAUSED) | TO(DESTROYING) | TO(FAILED),
	[SB_HOST_ROLLING_BACK] = TO(ACTIVE) | TO(FAILED) | TO(DESTROYING),
	[SB_HOST_DESTROYING] = 0,
	[SB_HOST_FAILED] =
		TO(ROLLING_BACK) | TO(DESTROYING) | TO(PAUSED), /* PAUSED: lost data is back */
	[SB_HOST_COOLING] = TO(PAUSED) | TO(COLD) | TO(DESTROYING) | TO(FAILED),
	[SB_HOST_COLD] = TO(WARMING) | TO(DESTROYING),
	[SB_HOST_WARMING] = TO(PAUSED) | TO(COLD) | TO(DESTROYING),
};

#define SETTLED (TO(ACTIVE) | TO(PAUSED) | TO(FAILED))
#define PAUSE_WAY (TO(PAUSING) | TO(RESUMING))

/*
 * In which states an operation is admitted; a passing one means that it waits for the end of that.
 */
static const unsigned admitted[SB_HOST_OPS] = {
	[SB_HOST_OP_TOOL] = TO(ACTIVE),
	[SB_HOST_OP_LAUNCH] = TO(ACTIVE),
	[SB_HOST_OP_PAUSE] = TO(ACTIVE),
	[SB_HOST_OP_RESUME] = TO(PAUSED) | TO(PAUSING),
	[SB_HOST_OP_TURN] = TO(ACTIVE),
	[SB_HOST_OP_SNAPSHOT] = SETTLED | PAUSE_WAY,
	[SB_HOST_OP_READ] = SETTLED | PAUSE_WAY,
	[SB_HOST_OP_ROLLBACK] = TO(ACTIVE) | TO(FAILED),
	[SB_HOST_OP_FORK] = SETTLED | PAUSE_WAY,
	[SB_HOST_OP_LABELS] = SETTLED | PAUSE_WAY | TO(ROLLING_BACK),
	[SB_HOST_OP_DESTROY] = ~0u,
	[SB_HOST_OP_DEEP_PAUSE] = TO(PAUSED) | TO(PAUSING),
	[SB_HOST_OP_DEEP_RESUME] = TO(COLD) | TO(COOLING),
	[SB_HOST_OP_COLD] = TO(COLD),
};

bool
sb_host_state_may(enum sb_host_state from, enum sb_host_state to)
{
	return (transitions[from] & (1u << to)) != 0;
}

bool
sb_host_state_passing(enum sb_host_state s)
{
	return states[s].passing;
}

int
sb_host_state_admit(enum sb_host_op op, enum sb_host_state state, const char *id,
	struct sb_error *err)
{
	int code;

	if (admitted[op] & (1u << state))
		return 0;
	switch (state) {
	case SB_HOST_PAUSED:
	case SB_HOST_PAUSING:
	case SB_HOST_RESUMING:
		code = op == SB_HOST_OP_RESUME ? SB_E_INVALID_STATE : SB_E_SESSION_PAUSED;
		break;
	case SB_HOST_DESTROYING: code = SB_E_SESSION_DESTROYING; break;
	case SB_HOST_ROLLING_BACK: code = SB_E_ROLLBACK_IN_PROGRESS; break;
	default: code = SB_E_INVALID_STATE; break;
	}
	if (code != SB_E_INVALID_STATE)
		return sb_fail(err, code, "%s: %s", sb_code_text(code), id);
	return sb_fail(err, code, "%s: session %s is %s%s", sb_code_text(code), id,
		states[state].name,
		op == SB_HOST_OP_DEEP_RESUME || op == SB_HOST_OP_COLD ? ", not cold" :
			state == SB_HOST_COLD                         ? ": deep-resume it first" :
			op == SB_HOST_OP_RESUME                       ? ", not paused" :
									"");
}

bool
sb_host_state_parse(const char *name, enum sb_host_state *out)
{
	for (size_t i = 0; i < SB_HOST_STATES; i++)
		if (strcmp(states[i].name, name) == 0) {
			*out = (enum sb_host_state)i;
			return true;
		}
	return false;
}

const char *
sb_host_state_name(enum sb_host_state s)
{
	return (unsigned)s < SB_HOST_STATES ? states[s].name : "unknown";
}

const char *
sb_host_state_wire(enum sb_host_state s)
{
	return (unsigned)s < SB_HOST_STATES ? states[s].wire : "unknown";
}
