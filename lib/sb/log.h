/* SPDX-License-Identifier: MIT */
#ifndef SB_LOG_H
#define SB_LOG_H

#include <sb/error.h>

enum sb_log_level {
	SB_LOG_ERROR,
	SB_LOG_WARN,
	SB_LOG_INFO,
	SB_LOG_DEBUG,
	SB_LOG_TRACE,
};

/*
 * Where messages go. `component` is a short constant ("scan", "ssh", "host"). `text` is one line
 * without line end, escaped as by sb_escape except that a backslash stays one (a message may hold
 * names that are escaped already). May be called from several threads at once.
 */
typedef void (
	*sb_log_fn)(enum sb_log_level level, const char *component, const char *text, void *arg);

/*
 * A logger by value: copy it around. `fn` NULL is silent. `components` (NULL: all) is a comma list.
 */
struct sb_log {
	sb_log_fn fn;
	void *arg;
	enum sb_log_level level; /* the most talkative level that gets through */
	const char *components;
};

/* `log` may be NULL (silent). A line is cut at 16 KiB. */
SB_API void sb_log(const struct sb_log *log, enum sb_log_level level, const char *component,
	const char *fmt, ...) SB_PRINTF(4, 5);

/*
 * Escapes `len` bytes of `in` for a terminal or a log: printable ASCII and valid UTF-8 (without C1
 * controls, bidirectional controls and Unicode line ends) stay, everything else and the backslash
 * become \n, \t, \\ or \xNN. Writes at most `size` bytes with the NUL; cuts at an escape's border.
 * Returns `out`.
 */
SB_API char *sb_escape(const char *in, size_t len, char *out, size_t size);

#endif
