/* SPDX-License-Identifier: MIT */
#ifndef SB_EGRESS_CLIENT_H
#define SB_EGRESS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include <base/child.h>
#include <base/spawn.h>
#include <sb/error.h>

/* The proxy of one session (bin/sb-egress), as who started it sees it. Not thread-safe. */
struct sb_egress_client {
	struct sb_child child; /* when we started it; one from before a restart is nobody's child */
	bool ours;
	int control; /* -1: not connected */
};
#define SB_EGRESS_CLIENT_INIT \
	{ \
		.child = SB_CHILD_INIT, .control = -1 \
	}

struct sb_egress_client_opts {
	const char *program; /* sb-egress */
	const char *session;
	const char *dir;      /* the control socket is made in it; others cannot enter it */
	const char *policy;   /* as sb_netpolicy_parse reads it */
	const char *resolver; /* ADDRESS[:PORT] that is asked for names; NULL: the machine's */
	pid_t pid;            /* whose network namespace gets the gate; 0: a new one is made */
};

/*
 * Starts the proxy and waits until its gate is there. `netns` (of at least 64 bytes) becomes a path
 * to the session's network namespace, good as long as the proxy runs. Until sb_egress_client_watch
 * the proxy ends with us. SB_E_UNSUPPORTED names what this machine lacks.
 */
int sb_egress_client_start(struct sb_egress_client *c, const struct sb_egress_client_opts *o,
	char *netns, size_t netns_size, struct sb_error *err);
/* Connects to the proxy that runs for that directory. SB_E_CLOSED: none does. */
int sb_egress_client_connect(struct sb_egress_client *c, const char *dir, struct sb_error *err);
/* From now on it lives as long as that process, whoever started it. */
int sb_egress_client_watch(struct sb_egress_client *c, pid_t pid, struct sb_error *err);
/* `cut` is how many connections the new policy ended. */
int sb_egress_client_policy(struct sb_egress_client *c, const char *text, size_t *cut,
	struct sb_error *err);
/* A connection of its own that decisions come from, one line of JSON each. -1: error. */
int sb_egress_client_events(const char *dir, bool from_first, struct sb_error *err);
/* False once the proxy has gone. */
bool sb_egress_client_alive(struct sb_egress_client *c);
/* Ends the proxy; nothing when there is none. */
void sb_egress_client_stop(struct sb_egress_client *c);
/* Lets go of it: it goes on if it watches a process. */
void sb_egress_client_leave(struct sb_egress_client *c);

/* Whether a gate can be made here: runs `program probe`. SB_E_UNSUPPORTED with the reason. */
int sb_egress_client_probe(const char *program, struct sb_error *err);

#endif
