/* SPDX-License-Identifier: MIT */
#ifndef SB_BIN_COMMON_PROGRESS_H
#define SB_BIN_COMMON_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include <sbsync/sync.h>

/*
 * What a program shows of the work it does, on stderr: on a terminal a line that is redrawn by a
 * thread of its own, so that its time goes on while nothing is told; for programs an object of
 * JSON a line. There is one for the process. Any thread may call.
 */
enum progress_how {
	PROGRESS_AUTO, /* the line, where stderr is a terminal that can redraw one */
	PROGRESS_ALWAYS,
	PROGRESS_NEVER,
	PROGRESS_JSON,
};

/* Their words, in this order, for option tables. */
extern const char *const progress_words[];

/* `quiet`: AUTO means never. Every begin has its end. */
void progress_begin(enum progress_how how, bool quiet);
void progress_end(void);
/* Is anything shown? The callback need not be set otherwise. */
bool progress_is_on(void);
/* The callback for sb_sync_opts and sb_call. */
void progress_note(const struct sb_progress *p, void *arg);
/* A phase that no sync tells of, for example "creating the sandbox"; a literal. */
void progress_phase(const char *phase);
/* Takes the line away, before something else is printed. What is told next brings it back. */
void progress_hide(void);

/* What the line is made of. */
struct progress_view {
	const char *phase;
	bool counts; /* files and bytes belong to this phase */
	uint64_t files, files_total, bytes, bytes_total;
	uint64_t rate;  /* bytes a second; 0: not known */
	int64_t left;   /* seconds; negative: not known */
	int64_t passed; /* seconds in this phase */
};

/*
 * The line for a terminal of so many columns, at most columns - 1 characters: what fits, the most
 * important first (phase, per cent, time left, rate, bytes, files, bar).
 */
void progress_line(const struct progress_view *v, int columns, char *out, size_t size);

#endif
