/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/thread.h>

#include <pthread.h>
#include <signal.h>

int
sb_thread_detached(size_t stack, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t t;
	int r;

	(void)sigfillset(&all);
	(void)pthread_attr_init(&attr);
	if (stack)
		(void)pthread_attr_setstacksize(&attr, stack);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&t, &attr, fn, arg);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	(void)pthread_attr_destroy(&attr);
	return r;
}
