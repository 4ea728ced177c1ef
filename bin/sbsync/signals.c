/* SPDX-License-Identifier: MIT */
/* The cancel token that signals request. */
#include "config.h"

#include <signal.h>
#include <string.h>

#include <bin/sbsync/sbsync.h>

/* The signal handler finds its token here; a handler has no argument. */
static struct sb_cancel *token;

static void
on_signal(int sig)
{
	(void)sig;
	sb_cancel_request(token);
}

struct sb_cancel *
signals_cancel(void)
{
	struct sigaction sa;

	if (token)
		return token;
	token = sb_cancel_new(NULL);
	if (!token)
		return NULL;
	memset(&sa, 0, sizeof sa);
	sa.sa_handler = on_signal;
	sa.sa_flags = (int)SA_RESETHAND; /* a second Ctrl-C ends at once */
	(void)sigaction(SIGINT, &sa, NULL);
	(void)sigaction(SIGTERM, &sa, NULL);
	(void)sigaction(SIGHUP, &sa, NULL);
	return token;
}
