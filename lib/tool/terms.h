/* SPDX-License-Identifier: MIT */
#ifndef SB_TOOL_TERMS_H
#define SB_TOOL_TERMS_H

#include <tool/proc.h>
#include <tool/roots.h>

/*
 * The terminals of one tool host: commands whose output is kept, by names "term-1", "term-2", ...
 * Thread-safe. Their environment is ours without what looks like a secret.
 */
struct sb_terms;

#define SB_TERMS_MAX 64
#define SB_TERMS_WINDOW (64u << 10)
#define SB_TERMS_WINDOW_MAX (16u << 20)
#define SB_TERMS_ID 32 /* bytes of a name with its NUL */

struct sb_terms_spec {
	const char *command;     /* taken apart as by sb_words_split */
	const char *const *args; /* appended as they are; may be NULL */
	const char *const *env;  /* on top of the filtered environment; may be NULL */
	const char *cwd;         /* inside the roots; NULL: the first */
	int64_t window;          /* bytes kept; negative: SB_TERMS_WINDOW */
};

/* `roots` outlives it. */
struct sb_terms *sb_terms_new(const struct sb_roots *roots, struct sb_error *err);
void sb_terms_free(struct sb_terms *t);

/* SB_E_LIMIT past SB_TERMS_MAX. */
int sb_terms_create(struct sb_terms *t, const struct sb_terms_spec *spec, char out_id[SB_TERMS_ID],
	struct sb_error *err);

/*
 * All: SB_E_TERMINAL_NOT_FOUND for a name that is not there. One that is released while somebody
 * waits for it ends killed.
 */
int sb_terms_output(struct sb_terms *t, const char *id, struct sb_buf *out, bool *truncated,
	bool *ended, struct sb_proc_exit *how, struct sb_error *err);
int sb_terms_wait(struct sb_terms *t, const char *id, const struct sb_cancel *cancel, sb_deadline d,
	struct sb_proc_exit *out, struct sb_error *err);
int sb_terms_kill(struct sb_terms *t, const char *id, struct sb_error *err);
int sb_terms_release(struct sb_terms *t, const char *id, struct sb_error *err);

#endif
