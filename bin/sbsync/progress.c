/* SPDX-License-Identifier: MIT */
/* The progress line of a sync on stderr. */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <bin/common/units.h>
#include <bin/sbsync/sbsync.h>

/* One line on stderr, redrawn at most ten times a second. */
struct progress {
	pthread_mutex_t mu;
	int64_t started;
	int64_t drawn;
	bool shown;
};

static int
columns(void)
{
	struct winsize w;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col >= 40 ? w.ws_col : 80;
}

static void
draw(struct progress *p, const struct sb_progress *s, int64_t now)
{
	char line[256], bytes[24], rate[24], bar[24] = "";
	double secs = (double)(now - p->started) / 1000.0;
	int n = 0;

	unit_bytes(s->bytes, bytes, sizeof bytes);
	unit_bytes(secs > 0.2 ? (uint64_t)((double)s->bytes / secs) : 0, rate, sizeof rate);
	if (s->bytes_total) {
		int full = (int)(20.0 * (double)s->bytes / (double)s->bytes_total);

		for (int i = 0; i < 20; i++)
			bar[n++] = i < full ? '#' : '.';
		bar[n] = 0;
		n = snprintf(line, sizeof line, "[%s] %3d%% %llu/%llu files %s %s/s", bar,
			(int)(100.0 * (double)s->bytes / (double)s->bytes_total),
			(unsigned long long)s->files, (unsigned long long)s->files_total, bytes,
			rate);
		if (secs > 1 && s->bytes && s->bytes < s->bytes_total && n > 0 &&
			(size_t)n < sizeof line)
			(void)snprintf(line + n, sizeof line - (size_t)n, " %ds left",
				(int)(secs * (double)(s->bytes_total - s->bytes) /
					(double)s->bytes));
	} else {
		(void)snprintf(line, sizeof line, "%s %llu files %s", sb_step_name(s->step),
			(unsigned long long)s->files, bytes);
	}
	(void)fprintf(stderr, "\r%.*s\033[K", columns() - 1, line);
	(void)fflush(stderr);
	p->shown = true;
}

static void
on_progress(const struct sb_progress *s, void *arg)
{
	struct progress *p = arg;
	int64_t now = sb_now_ms();

	pthread_mutex_lock(&p->mu);
	if (now - p->drawn >= 100) {
		p->drawn = now;
		draw(p, s, now);
	}
	pthread_mutex_unlock(&p->mu);
}

struct progress *
progress_new(const struct sync_args *a, struct sb_sync_opts *o)
{
	bool on = a->progress == 1 ||
		(a->progress == 0 && isatty(STDERR_FILENO) && !a->quiet && !a->json);
	struct progress *p = on ? calloc(1, sizeof *p) : NULL;

	if (!p)
		return NULL;
	pthread_mutex_init(&p->mu, NULL);
	p->started = sb_now_ms();
	p->drawn = p->started;
	o->progress = on_progress;
	o->progress_arg = p;
	return p;
}

void
progress_end(struct progress *p)
{
	if (!p)
		return;
	if (p->shown)
		(void)fputs("\r\033[K", stderr);
	pthread_mutex_destroy(&p->mu);
	free(p);
}
