/* SPDX-License-Identifier: MIT */
/* Files and terminals of this machine (declared in provider/toolset.h). */
#include "config.h"

#include <provider/toolset.h>

#include <stdlib.h>
#include <string.h>

#include <tool/terms.h>
#include <tool/textfile.h>

struct near {
	struct sb_toolset base;
	struct sb_roots roots;
	struct sb_terms *terms;
};

/* A buffer's bytes as a text of the caller's; never NULL on success. */
static int
hand_over(struct sb_buf *b, char **out, size_t *out_len, struct sb_error *err)
{
	uint8_t *p;

	(void)sb_buf_reserve(b, 1);
	p = b->failed && b->failed != SB_E_FULL ? NULL : sb_buf_detach(b, out_len);
	if (!p) {
		*out_len = 0;
		p = calloc(1, 1);
	}
	*out = (char *)p;
	return p ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
}

static int
near_read(struct sb_toolset *b, const char *path, const struct sb_call *call, char **out,
	size_t *out_len, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf text;
	int r;

	(void)call;
	sb_buf_init(&text, SB_TEXTFILE_MAX + (1u << 20));
	r = sb_textfile_read(&((struct near *)b)->roots, path, 0, 0, &text, err);
	return r < 0 ? r : hand_over(&text, out, out_len, err);
}

static int
near_write(struct sb_toolset *b, const char *path, const void *data, size_t len,
	const struct sb_call *call, struct sb_error *err)
{
	(void)call;
	return sb_textfile_write(&((struct near *)b)->roots, path, data, len, err);
}

static int
near_resolve(struct sb_toolset *b, const char *path, const struct sb_call *call, char **out,
	struct sb_error *err)
{
	struct sb_roots_resolved at = { .fd = -1 };
	int r = sb_roots_resolve(&((struct near *)b)->roots, path, &at, err);

	(void)call;
	if (r == 0) {
		*out = at.path;
		at.path = NULL;
	}
	sb_roots_resolved_free(&at);
	return r;
}

static int
near_create(struct sb_toolset *b, const struct sb_terminal_spec *spec, const struct sb_call *call,
	char out_id[SB_TERMINAL_ID_MAX + 1], struct sb_error *err)
{
	struct sb_terms_spec s = { .command = spec->command,
		.args = spec->args,
		.env = spec->env,
		.cwd = spec->cwd,
		.window = spec->output_limit };

	(void)call;
	_Static_assert(SB_TERMS_ID == SB_TERMINAL_ID_MAX + 1, "names of terminals");
	_Static_assert(SB_TERMS_MAX == SB_TERMINALS_MAX, "number of terminals");
	return sb_terms_create(((struct near *)b)->terms, &s, out_id, err);
}

static struct sb_ended
ended_of(const struct sb_proc_exit *how)
{
	return (struct sb_ended){ .code = how->code, .signal = how->signal, .asked = how->stopped };
}

static int
near_output(struct sb_toolset *b, const char *id, const struct sb_call *call,
	struct sb_terminal_output *out, struct sb_error *err)
{
	struct sb_proc_exit how = { 0 };
	sb_auto(sb_buf) struct sb_buf text;
	int r;

	(void)call;
	sb_buf_init(&text, SB_TERMS_WINDOW_MAX + 1);
	r = sb_terms_output(((struct near *)b)->terms, id, &text, &out->truncated, &out->ended,
		&how, err);
	if (r < 0)
		return r;
	if (out->ended)
		out->how = ended_of(&how);
	return hand_over(&text, &out->text, &out->len, err);
}

static int
near_wait(struct sb_toolset *b, const char *id, const struct sb_call *call, struct sb_ended *out,
	struct sb_error *err)
{
	struct sb_proc_exit how = { 0 };
	int r = sb_terms_wait(((struct near *)b)->terms, id, sb_call_cancel(call),
		sb_call_deadline(call), &how, err);

	if (r == 0)
		*out = ended_of(&how);
	return r;
}

static int
near_kill(struct sb_toolset *b, const char *id, const struct sb_call *call, struct sb_error *err)
{
	(void)call;
	return sb_terms_kill(((struct near *)b)->terms, id, err);
}

static int
near_release(struct sb_toolset *b, const char *id, const struct sb_call *call, struct sb_error *err)
{
	(void)call;
	return sb_terms_release(((struct near *)b)->terms, id, err);
}

static void
near_free(struct sb_toolset *b)
{
	struct near *n = (struct near *)b;

	sb_terms_free(n->terms);
	sb_roots_close(&n->roots);
	free(n);
}

static const struct sb_toolset_ops near_ops = {
	.read = near_read,
	.write = near_write,
	.resolve = near_resolve,
	.create = near_create,
	.output = near_output,
	.wait = near_wait,
	.kill = near_kill,
	.release = near_release,
	.free = near_free,
};

struct sb_toolset *
sb_toolset_near(const char *root, const char *const *dirs, struct sb_error *err)
{
	size_t n = sb_strlist_count(dirs);
	const char **all = calloc(n + 1, sizeof *all);
	struct near *b = calloc(1, sizeof *b);
	int r = SB_E_NOMEM;

	if (all && b) {
		b->base.ops = &near_ops;
		all[0] = root;
		for (size_t i = 0; i < n; i++)
			all[i + 1] = dirs[i];
		r = sb_roots_open(all, n + 1, &b->roots, err);
		if (r == 0)
			b->terms = sb_terms_new(&b->roots, err);
	} else {
		sb_fail(err, SB_E_NOMEM, "out of memory");
	}
	free(all);
	if (r < 0 || !b->terms) {
		if (b)
			near_free(&b->base);
		return NULL;
	}
	return &b->base;
}
