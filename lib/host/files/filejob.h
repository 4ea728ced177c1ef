/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_FILEJOB_H
#define SB_HOST_FILEJOB_H

#include <base/buf.h>
#include <host/files/params.h>
#include <sb/cancel.h>
#include <tool/roots.h>

/*
 * One call of a tool that works on files, in the worker: sb-files runs these, the host never does.
 * A job reads and writes beneath the one root of `roots`, by descriptor, and starts no program.
 */
struct sb_filejob {
	struct sb_params params;
	struct sb_roots roots;
	const char *dir; /* what relative paths begin at, itself relative; NULL or "": the root */
	sb_deadline deadline;
	struct sb_buf text; /* the result; the ceiling is that of the call */
	bool is_error;      /* the tool says that something is wrong */
	bool truncated;
};

/* The file that is being written and has no name yet: removed when the worker is told to end. */
struct sb_filejob_temp {
	int dir;
	char name[48];
};

/* Whether the tool of that name is a heavy one. */
bool sb_filejob_heavy(const char *tool);

/*
 * Checks the parameters of the tool, then runs it. What goes wrong in the tool is its result, not
 * an error. SB_E_INVAL for wrong parameters, SB_E_TOOL_UNKNOWN, SB_E_TIMEOUT, SB_E_NOMEM.
 */
int sb_filejob_run(struct sb_filejob *j, struct sb_error *err);

/* SB_E_TIMEOUT once the call should end. Safe from several threads. */
int sb_filejob_alive(const struct sb_filejob *j, struct sb_error *err);
/* Makes this the result, instead of what `text` holds. Returns 0 or the failure of the buffer. */
int sb_filejob_says(struct sb_filejob *j, bool is_error, struct sb_error *err, const char *fmt, ...)
	SB_PRINTF(4, 5);
/* Makes `why` the result, or returns it where the machine has failed and not the tool. */
int sb_filejob_failed(struct sb_filejob *j, const struct sb_error *why, struct sb_error *err);
/* Resolves a path that the caller gave; NULL or "": where the job works. */
int sb_filejob_resolve(const struct sb_filejob *j, const char *path, struct sb_roots_resolved *out,
	struct sb_error *err);
/* Adds a line of a file, or a name: what a terminal would obey is escaped, tabs stay. */
void sb_filejob_show(struct sb_buf *text, const char *s, size_t len);

/*
 * Puts the bytes in place so that a reader sees the old or the new ones. Whoever ends the worker
 * meanwhile calls sb_filejob_drop_temp, which is async-signal-safe.
 */
int sb_filejob_put(int dir, const char *leaf, const void *data, size_t len, unsigned mode,
	struct sb_error *err);
void sb_filejob_drop_temp(void);

/* The tools of one kind by name; an empty entry ends a table. */
struct sb_filejob_tool {
	const char *name;
	/* What the tool's table (toolspec.h) cannot say of its parameters; may be NULL. */
	int (*check)(const struct sb_params *p, struct sb_error *err);
	int (*run)(struct sb_filejob *j, struct sb_error *err);
	bool heavy; /* it walks the tree: it may take long and much memory */
};
extern const struct sb_filejob_tool sb_filejob_text_table[];
extern const struct sb_filejob_tool sb_filejob_search_table[];

#endif
