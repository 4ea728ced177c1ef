/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <bin/common/progress.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <base/cond.h>
#include <base/str.h>
#include <bin/common/units.h>
#include <sbsync/conn.h>

#define DRAW_MS 100
#define AFTER_MS 300 /* short work needs no line */
#define JSON_MS 250
#define SAMPLES 16
#define SAMPLE_MS 250
#define BAR_MAX 20

const char *const progress_words[] = { "auto", "always", "never", "json", NULL };

/* The parts of a line, as they stand in it. */
enum part {
	PART_PHASE,
	PART_BAR,
	PART_PERCENT,
	PART_FILES,
	PART_BYTES,
	PART_RATE,
	PART_LEFT,
	PARTS,
};

/* Which of them come first where there is little room. */
static const enum part by_weight[PARTS] = { PART_PHASE, PART_PERCENT, PART_LEFT, PART_RATE,
	PART_BYTES, PART_FILES, PART_BAR };

static struct {
	pthread_mutex_t mu;
	pthread_cond_t wake;
	enum progress_how how; /* AUTO never: what it came to */
	bool on, ending, told, shown, unsent;
	pthread_t thread;
	const char *phase; /* of the program; NULL: the step of the sync */
	struct sb_progress now;
	int64_t began; /* the work that the line is about */
	int64_t since; /* the phase */
	int64_t sent;
	struct {
		int64_t t;
		uint64_t bytes;
	} samples[SAMPLES];
	unsigned n_samples;
} line = { .mu = PTHREAD_MUTEX_INITIALIZER,
	.wake = PTHREAD_COND_INITIALIZER,
	.how = PROGRESS_NEVER };

static void
time_left(int64_t s, char *out, size_t size)
{
	if (s >= 3600)
		(void)snprintf(out, size, "%lldh%02lldm left", (long long)(s / 3600),
			(long long)(s / 60 % 60));
	else if (s >= 60)
		(void)snprintf(out, size, "%lldm%02llds left", (long long)(s / 60),
			(long long)(s % 60));
	else
		(void)snprintf(out, size, "%llds left", (long long)s);
}

/* Per cent of the bytes, else of the files; negative: not known. Never 100 before the end. */
static int
percent(const struct progress_view *v)
{
	uint64_t part = v->bytes_total ? v->bytes : v->files;
	uint64_t all = v->bytes_total ? v->bytes_total : v->files_total;

	if (!v->counts || !all)
		return -1;
	return part >= all ? 100 : (int)(100.0 * (double)part / (double)all);
}

static void
make_part(const struct progress_view *v, enum part which, char *out, size_t size)
{
	char bytes[24], all[24];
	int done = percent(v), full = done * BAR_MAX / 100;

	out[0] = '\0';
	switch (which) {
	case PART_PHASE: (void)snprintf(out, size, "%s", v->phase); break;
	case PART_BAR:
		if (done >= 0)
			(void)snprintf(out, size, "[%.*s%.*s]", full, "####################",
				BAR_MAX - full, "....................");
		break;
	case PART_PERCENT:
		if (done >= 0)
			(void)snprintf(out, size, "%d%%", done);
		break;
	case PART_FILES:
		if (v->counts && v->files_total)
			(void)snprintf(out, size, "%llu/%llu files", (unsigned long long)v->files,
				(unsigned long long)v->files_total);
		else if (v->counts && v->files)
			(void)snprintf(out, size, "%llu files", (unsigned long long)v->files);
		break;
	case PART_BYTES:
		unit_bytes(v->bytes, bytes, sizeof bytes);
		unit_bytes(v->bytes_total, all, sizeof all);
		if (v->counts && (v->bytes || v->bytes_total))
			(void)snprintf(out, size, "%s%s%s", bytes, v->bytes_total ? " of " : "",
				v->bytes_total ? all : "");
		break;
	case PART_RATE:
		if (v->counts && v->rate)
			(void)snprintf(out, size, "%s/s", unit_bytes(v->rate, bytes, sizeof bytes));
		break;
	default:
		if (v->counts && v->left >= 0)
			time_left(v->left, out, size);
		else if (done < 0 && v->passed > 0)
			(void)snprintf(out, size, "%llds", (long long)v->passed);
	}
}

void
progress_line(const struct progress_view *v, int columns, char *out, size_t size)
{
	char part[PARTS][64];
	bool with[PARTS] = { false };
	size_t room = columns > 1 ? (size_t)columns - 1 : 1, used = 0;

	for (int i = 0; i < PARTS; i++)
		make_part(v, (enum part)i, part[i], sizeof part[i]);
	for (int i = 0; i < PARTS; i++) {
		enum part p = by_weight[i];
		size_t n = strlen(part[p]) + (used > 0);

		if (!part[p][0])
			continue;
		if (used + n > room && p != PART_PHASE)
			break;
		with[p] = true;
		used += n;
	}
	out[0] = '\0';
	for (int i = 0; i < PARTS; i++)
		if (with[i])
			(void)snprintf(out + strlen(out), size - strlen(out), "%s%s",
				out[0] ? " " : "", part[i]);
	if (strlen(out) > room)
		out[room] = '\0';
}

static bool
step_counts(enum sb_step step)
{
	return step == SB_STEP_SCAN || step == SB_STEP_TRANSFER || step == SB_STEP_STAGE ||
		step == SB_STEP_VERIFY;
}

/* The words for people; --progress json has the names of the steps. */
static const char *
step_words(const struct sb_progress *p)
{
	switch (p->step) {
	case SB_STEP_CONNECT: return "connecting";
	case SB_STEP_SCAN: return p->bytes_total ? "hashing" : "looking";
	case SB_STEP_EXCHANGE: return "waiting for the other side";
	case SB_STEP_PLAN: return "comparing";
	case SB_STEP_TRANSFER: return "transfer";
	case SB_STEP_STAGE: return "writing";
	case SB_STEP_VERIFY: return "verifying";
	case SB_STEP_COMMIT: return "putting in place";
	default: return "recording";
	}
}

/* The speed of the last seconds. */
static uint64_t
rate(void)
{
	unsigned n = line.n_samples < SAMPLES ? line.n_samples : SAMPLES;
	unsigned last = (line.n_samples - 1) % SAMPLES, first = (line.n_samples - n) % SAMPLES;
	int64_t ms = n > 1 ? line.samples[last].t - line.samples[first].t : 0;

	return ms < 2 * SAMPLE_MS ?
		0 :
		(uint64_t)(1000.0 * (double)(line.samples[last].bytes - line.samples[first].bytes) /
			(double)ms);
}

static void
sample(int64_t now)
{
	if (line.n_samples && now - line.samples[(line.n_samples - 1) % SAMPLES].t < SAMPLE_MS)
		return;
	line.samples[line.n_samples % SAMPLES].t = now;
	line.samples[line.n_samples++ % SAMPLES].bytes = line.now.bytes;
}

static int64_t
seconds_left(uint64_t speed)
{
	if (!speed || line.now.bytes >= line.now.bytes_total)
		return -1;
	return (int64_t)((line.now.bytes_total - line.now.bytes) / speed);
}

static int
columns(void)
{
	struct winsize w;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

/* In the background the terminal is somebody else's. */
static bool
in_front(void)
{
	pid_t owner = tcgetpgrp(STDERR_FILENO);

	return owner < 0 || owner == getpgrp();
}

static void
draw(int64_t now)
{
	struct progress_view v = { .phase = line.phase ? line.phase : step_words(&line.now),
		.counts = !line.phase && step_counts(line.now.step),
		.files = line.now.files,
		.files_total = line.now.files_total,
		.bytes = line.now.bytes,
		.bytes_total = line.now.bytes_total,
		.rate = rate(),
		.passed = (now - line.since) / 1000 };
	char text[256];

	if (!in_front() || sb_conn_asks())
		return;
	v.left = seconds_left(v.rate);
	progress_line(&v, columns(), text, sizeof text);
	(void)fprintf(stderr, "\r%s\033[K", text);
	(void)fflush(stderr);
	line.shown = true;
}

static void
send_json(int64_t now)
{
	uint64_t speed = rate();
	bool counts = !line.phase && step_counts(line.now.step);

	(void)fprintf(stderr, "{\"progress\":\"%s\"",
		line.phase ? line.phase : sb_step_name(line.now.step));
	if (counts)
		(void)fprintf(stderr,
			",\"files\":%llu,\"files_total\":%llu,\"bytes\":%llu,\"bytes_total\":%llu",
			(unsigned long long)line.now.files,
			(unsigned long long)line.now.files_total,
			(unsigned long long)line.now.bytes,
			(unsigned long long)line.now.bytes_total);
	if (counts && speed)
		(void)fprintf(stderr, ",\"rate\":%llu", (unsigned long long)speed);
	if (counts && seconds_left(speed) >= 0)
		(void)fprintf(stderr, ",\"left_s\":%lld", (long long)seconds_left(speed));
	(void)fprintf(stderr, ",\"passed_ms\":%lld}\n", (long long)(now - line.began));
	line.sent = now;
	line.unsent = false;
}

static void *
keep_drawn(void *arg)
{
	(void)arg;
	(void)pthread_mutex_lock(&line.mu);
	while (!line.ending) {
		int64_t now = sb_now_ms();

		if (line.told && now - line.began >= AFTER_MS) {
			sample(now);
			draw(now);
		}
		sb_cond_wait_until(&line.wake, &line.mu, sb_deadline_in(DRAW_MS));
	}
	(void)pthread_mutex_unlock(&line.mu);
	return NULL;
}

static void
make_wake(void)
{
	sb_cond_init(&line.wake);
}

void
progress_begin(enum progress_how how, bool quiet)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const char *term = getenv("TERM");
	bool able = isatty(STDERR_FILENO) && !(term && strcmp(term, "dumb") == 0);

	(void)pthread_once(&once, make_wake);
	if (how == PROGRESS_AUTO)
		how = able && !quiet ? PROGRESS_ALWAYS : PROGRESS_NEVER;
	line.how = how;
	line.told = line.ending = line.unsent = false;
	if (how == PROGRESS_ALWAYS)
		line.on = pthread_create(&line.thread, NULL, keep_drawn, NULL) == 0;
	else
		line.on = how == PROGRESS_JSON;
}

bool
progress_is_on(void)
{
	return line.on;
}

/* Another phase begins, or the same with another file of work. */
static void
enter(const char *phase, const struct sb_progress *p)
{
	int64_t now = sb_now_ms();
	bool other = !line.told || phase != line.phase ||
		(!phase && (p->step != line.now.step || p->bytes < line.now.bytes));

	if (!line.told)
		line.began = now;
	if (other && line.unsent)
		send_json(now);
	if (other) {
		line.since = now;
		line.n_samples = 0;
	}
	line.told = true;
	line.phase = phase;
	if (p)
		line.now = *p;
	line.unsent = line.how == PROGRESS_JSON;
	if (line.unsent)
		sample(now);
	if (line.unsent && (other || now - line.sent >= JSON_MS))
		send_json(now);
}

void
progress_note(const struct sb_progress *p, void *arg)
{
	(void)arg;
	(void)pthread_mutex_lock(&line.mu);
	if (line.on)
		enter(NULL, p);
	(void)pthread_mutex_unlock(&line.mu);
}

void
progress_phase(const char *phase)
{
	(void)pthread_mutex_lock(&line.mu);
	if (line.on)
		enter(phase, NULL);
	(void)pthread_mutex_unlock(&line.mu);
}

static void
clear(void)
{
	if (line.unsent)
		send_json(sb_now_ms());
	if (line.shown) {
		(void)fputs("\r\033[K", stderr);
		(void)fflush(stderr);
	}
	line.shown = line.told = false;
}

void
progress_hide(void)
{
	(void)pthread_mutex_lock(&line.mu);
	if (line.on)
		clear();
	(void)pthread_mutex_unlock(&line.mu);
}

void
progress_end(void)
{
	(void)pthread_mutex_lock(&line.mu);
	if (line.on)
		clear();
	line.ending = true;
	(void)pthread_cond_signal(&line.wake);
	(void)pthread_mutex_unlock(&line.mu);
	if (line.on && line.how == PROGRESS_ALWAYS)
		(void)pthread_join(line.thread, NULL);
	line.on = false;
}
