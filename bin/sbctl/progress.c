/* SPDX-License-Identifier: MIT */
/* The progress line of sbctl on stderr. */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <bin/common/units.h>
#include <bin/sbctl/ctl.h>

#define PROGRESS_AFTER_MS 700 /* short syncs need no line */
#define PROGRESS_EVERY_MS 100

/* One line on stderr. Calls come from any thread of a sync. */
static struct {
	pthread_mutex_t mu;
	int64_t started, drawn;
	bool shown;
} line = { .mu = PTHREAD_MUTEX_INITIALIZER };

static void
on_progress(const struct sb_progress *p, void *arg)
{
	int64_t now = sb_now_ms();
	char size[24];

	(void)arg;
	(void)pthread_mutex_lock(&line.mu);
	if (!line.started)
		line.started = now;
	if (now - line.started >= PROGRESS_AFTER_MS && now - line.drawn >= PROGRESS_EVERY_MS) {
		line.drawn = now;
		line.shown = true;
		(void)fprintf(stderr, "\r%s: %llu files, %s", sb_step_name(p->step),
			(unsigned long long)p->files, unit_bytes(p->bytes, size, sizeof size));
		if (p->bytes_total)
			(void)fprintf(stderr, " of %s",
				unit_bytes(p->bytes_total, size, sizeof size));
		(void)fputs("\033[K", stderr);
		(void)fflush(stderr);
	}
	(void)pthread_mutex_unlock(&line.mu);
}

void
ctl_progress_begin(struct ctl *ctl)
{
	if (!ctl->a.quiet && !ctl->a.json && isatty(STDERR_FILENO))
		ctl->call.progress = on_progress;
}

void
ctl_progress_end(void)
{
	(void)pthread_mutex_lock(&line.mu);
	if (line.shown)
		(void)fputs("\r\033[K", stderr);
	line.shown = false;
	line.started = 0;
	(void)pthread_mutex_unlock(&line.mu);
}
