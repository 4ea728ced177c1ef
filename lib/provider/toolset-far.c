/* SPDX-License-Identifier: MIT */
/* Files and terminals of another machine, through its agent (declared in provider/toolset.h). */
#include "config.h"

#include <provider/toolset.h>

#include <stdlib.h>
#include <string.h>

#include <tool/far.h>
#include <tool/message.h>

/* The limit of a request whose caller gave no deadline: the far side answers these at once. */
#define ANSWER_MS 60000

struct far_toolset {
	struct sb_toolset base;
	struct sb_toolset_link link;
};

/*
 * One request, with the connection it needs. `waits`: the answer may take as long as the call
 * allows.
 */
static int
ask(struct sb_toolset *b, enum sb_serve_op op, const struct sb_buf *args,
	const struct sb_call *call, bool waits, struct sb_buf *reply, struct sb_error *err)
{
	struct far_toolset *f = (struct far_toolset *)b;
	struct sb_call within = waits && call ? *call : sb_call_within(call, waits ? 0 : ANSWER_MS);
	struct sb_error own = { 0 };
	void *token = NULL;
	struct sb_far *far = f->link.take(f->link.arg, call, &token, err ? err : &own);
	int r;

	sb_buf_init(reply, 0);
	if (!far)
		return err ? err->code : own.code;
	r = sb_far_ask(far, op, args, within.cancel, within.deadline, reply, err);
	f->link.give(f->link.arg, token);
	return r;
}

static int
damaged(struct sb_error *err)
{
	return sb_fail(err, SB_E_PROTO, "the answer of the far side is damaged");
}

/* Length-prefixed bytes of an answer as a text of the caller's. */
static int
take_bytes(struct sb_cursor *c, char **out, size_t *out_len, struct sb_error *err)
{
	const uint8_t *p = sb_cursor_bytes(c, SB_MESSAGE_MAX, out_len);

	if (!p || c->bad)
		return damaged(err);
	*out = malloc(*out_len + 1);
	if (!*out)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	memcpy(*out, p, *out_len);
	(*out)[*out_len] = '\0';
	return 0;
}

static int
far_read(struct sb_toolset *b, const char *path, const struct sb_call *call, char **out,
	size_t *out_len, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf args;
	sb_auto(sb_buf) struct sb_buf reply;
	struct sb_cursor c;
	int r;

	sb_buf_init(&args, SB_MESSAGE_MAX);
	sb_message_add_text(&args, path);
	sb_buf_add_u32(&args, 0);
	sb_buf_add_u32(&args, 0);
	r = ask(b, SB_SERVE_READ, &args, call, false, &reply, err);
	if (r < 0)
		return r;
	sb_cursor_init(&c, reply.data, reply.len);
	return take_bytes(&c, out, out_len, err);
}

static int
far_write(struct sb_toolset *b, const char *path, const void *data, size_t len,
	const struct sb_call *call, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf args;
	sb_auto(sb_buf) struct sb_buf reply;

	sb_buf_init(&args, SB_MESSAGE_MAX);
	sb_message_add_text(&args, path);
	sb_buf_add_bytes(&args, data, len);
	return ask(b, SB_SERVE_WRITE, &args, call, false, &reply, err);
}

/* Operations that send one text. */
static int
ask_text(struct sb_toolset *b, enum sb_serve_op op, const char *text, const struct sb_call *call,
	bool waits, struct sb_buf *reply, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf args;

	sb_buf_init(&args, SB_MESSAGE_MAX);
	sb_message_add_text(&args, text);
	return ask(b, op, &args, call, waits, reply, err);
}

static int
far_resolve(struct sb_toolset *b, const char *path, const struct sb_call *call, char **out,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf reply;
	struct sb_cursor c;
	int r = ask_text(b, SB_SERVE_RESOLVE, path, call, false, &reply, err);

	if (r < 0)
		return r;
	sb_cursor_init(&c, reply.data, reply.len);
	*out = sb_message_text(&c);
	return *out ? 0 : damaged(err);
}

static int
far_create(struct sb_toolset *b, const struct sb_terminal_spec *spec, const struct sb_call *call,
	char out_id[SB_TERMINAL_ID_MAX + 1], struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf args;
	sb_auto(sb_buf) struct sb_buf reply;
	struct sb_cursor c;
	const uint8_t *id;
	size_t len;
	int r;

	sb_buf_init(&args, SB_MESSAGE_MAX);
	sb_message_add_text(&args, spec->command);
	sb_message_add_texts(&args, spec->args);
	sb_message_add_texts(&args, spec->env);
	sb_message_add_text(&args, spec->cwd);
	sb_buf_add_svarint(&args, spec->output_limit);
	r = ask(b, SB_SERVE_TERM_CREATE, &args, call, false, &reply, err);
	if (r < 0)
		return r;
	sb_cursor_init(&c, reply.data, reply.len);
	id = sb_cursor_bytes(&c, SB_TERMINAL_ID_MAX, &len);
	if (!id || !len || memchr(id, 0, len))
		return damaged(err);
	memcpy(out_id, id, len);
	out_id[len] = '\0';
	return 0;
}

static void
take_ended(struct sb_cursor *c, struct sb_ended *out)
{
	*out = (struct sb_ended){ .code = (int)(sb_cursor_varint(c) & 0xffff),
		.signal = (int)(sb_cursor_varint(c) & 0xff) };
	out->asked = sb_cursor_u8(c);
}

static int
far_output(struct sb_toolset *b, const char *id, const struct sb_call *call,
	struct sb_terminal_output *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf reply;
	struct sb_cursor c;
	int r = ask_text(b, SB_SERVE_TERM_OUTPUT, id, call, false, &reply, err);

	if (r < 0)
		return r;
	sb_cursor_init(&c, reply.data, reply.len);
	r = take_bytes(&c, &out->text, &out->len, err);
	if (r < 0)
		return r;
	out->truncated = sb_cursor_u8(&c);
	out->ended = sb_cursor_u8(&c);
	take_ended(&c, &out->how);
	if (!out->ended)
		out->how = (struct sb_ended){ 0 };
	if (c.bad) {
		sb_terminal_output_free(out);
		return damaged(err);
	}
	return 0;
}

static int
far_wait(struct sb_toolset *b, const char *id, const struct sb_call *call, struct sb_ended *out,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf reply;
	struct sb_cursor c;
	int r = ask_text(b, SB_SERVE_TERM_WAIT, id, call, true, &reply, err);

	if (r < 0)
		return r;
	sb_cursor_init(&c, reply.data, reply.len);
	take_ended(&c, out);
	return c.bad ? damaged(err) : 0;
}

static int
far_kill(struct sb_toolset *b, const char *id, const struct sb_call *call, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf reply;

	return ask_text(b, SB_SERVE_TERM_KILL, id, call, false, &reply, err);
}

static int
far_release(struct sb_toolset *b, const char *id, const struct sb_call *call, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf reply;

	return ask_text(b, SB_SERVE_TERM_RELEASE, id, call, false, &reply, err);
}

static void
far_free(struct sb_toolset *b)
{
	struct far_toolset *f = (struct far_toolset *)b;

	f->link.let_go(f->link.arg);
	free(f);
}

static const struct sb_toolset_ops far_ops = {
	.read = far_read,
	.write = far_write,
	.resolve = far_resolve,
	.create = far_create,
	.output = far_output,
	.wait = far_wait,
	.kill = far_kill,
	.release = far_release,
	.free = far_free,
};

struct sb_toolset *
sb_toolset_far(const struct sb_toolset_link *link, struct sb_error *err)
{
	struct far_toolset *f = calloc(1, sizeof *f);

	if (!f) {
		sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	f->base.ops = &far_ops;
	f->link = *link;
	return &f->base;
}
