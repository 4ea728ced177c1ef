/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <cloud/e2b/envd-event.h>

#include <signal.h>
#include <string.h>
#include <strings.h>

#include <base/base64.h>
#include <cloud/http/json.h>
#include <rpc/protocol/failure.h>

#define UNKNOWN_END 255 /* it did not end by itself, and nobody knows by what */

/* "signal: killed" as the vendor writes it. */
static int
signal_code(const char *status)
{
	static const struct {
		const char *name;
		int sig;
	} names[] = { { "hangup", SIGHUP }, { "interrupt", SIGINT }, { "quit", SIGQUIT },
		{ "aborted", SIGABRT }, { "killed", SIGKILL }, { "segmentation fault", SIGSEGV },
		{ "broken pipe", SIGPIPE }, { "terminated", SIGTERM } };

	if (status && strncmp(status, "signal: ", 8) == 0)
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			if (strncasecmp(status + 8, names[i].name, strlen(names[i].name)) == 0)
				return 128 + names[i].sig;
	return UNKNOWN_END;
}

static int
read_output(const json_t *data, struct sb_envd_event *out, struct sb_error *err)
{
	const char *text = sb_json_get(data, "stdout");

	out->fd = text ? 1 : 2;
	text = text ? text : sb_json_get(data, "stderr");
	if (!text)
		return 0;
	out->kind = SB_ENVD_OUTPUT;
	if (!sb_base64_decode(text, strlen(text), &out->data))
		return sb_fail(err, SB_E_PROTO, "output that is not base64");
	return sb_buf_check(&out->data, "output", err);
}

static int
read_event(const json_t *ev, struct sb_envd_event *out, struct sb_error *err)
{
	const json_t *part = json_object_get(ev, "start");

	if (part) {
		out->kind = SB_ENVD_START;
		out->pid = json_integer_value(json_object_get(part, "pid"));
		return out->pid > 0 ? 0 : sb_fail(err, SB_E_PROTO, "a program without a number");
	}
	part = json_object_get(ev, "data");
	if (part)
		return read_output(part, out, err);
	part = json_object_get(ev, "end");
	if (part) {
		json_int_t code = json_integer_value(json_object_get(part, "exitCode"));

		out->kind = SB_ENVD_END;
		out->code =
			code >= 0 ? (int)(code & 255) : signal_code(sb_json_get(part, "status"));
	}
	return 0;
}

int
sb_envd_event_parse(const void *msg, size_t len, struct sb_envd_event *out, struct sb_error *err)
{
	struct sb_error why = { 0 };
	json_t *v = sb_json_parse(msg, len, &why);
	int r;

	*out = (struct sb_envd_event){ .kind = SB_ENVD_NOTHING };
	sb_buf_init(&out->data, SB_ENVD_EVENT_MAX);
	r = v ? read_event(json_object_get(v, "event"), out, err) :
		sb_fail(err, SB_E_PROTO, "an event: %s", why.msg);
	json_decref(v);
	return r;
}

void
sb_envd_event_free(struct sb_envd_event *ev)
{
	sb_buf_free(&ev->data);
	*ev = (struct sb_envd_event){ 0 };
}

int
sb_envd_event_last(const void *msg, size_t len, struct sb_error *err)
{
	json_t *v = sb_json_parse(msg, len, NULL);
	const json_t *error = json_object_get(v, "error");
	int r = v ? 0 : sb_fail(err, SB_E_PROTO, "the end of the stream is not JSON");

	if (r == 0 && error)
		r = sb_rpc_failure_parse(error, 200, err);
	json_decref(v);
	return r;
}
