/* SPDX-License-Identifier: MIT */
#ifndef SB_CLOUD_ENVD_EVENT_H
#define SB_CLOUD_ENVD_EVENT_H

#include <jansson.h>

#include <base/buf.h>

/* The messages of a program's stream, taken apart. They come from a sandbox: nothing is believed.
 */

enum sb_envd_kind {
	SB_ENVD_NOTHING, /* a sign of life, or an event of a later version */
	SB_ENVD_START,
	SB_ENVD_OUTPUT,
	SB_ENVD_END,
};

struct sb_envd_event {
	enum sb_envd_kind kind;
	json_int_t pid;     /* of a start; more than 0 */
	int fd;             /* of output: 1 or 2 */
	struct sb_buf data; /* of output */
	int code;           /* of an end: 0 to 255; 128 + signal where that ended it */
};

#define SB_ENVD_EVENT_MAX (8u << 20)

/* SB_E_PROTO for what is no event. The caller frees the event, also after a failure. */
int sb_envd_event_parse(const void *msg, size_t len, struct sb_envd_event *out,
	struct sb_error *err);
void sb_envd_event_free(struct sb_envd_event *ev);
SB_CLEANUP_VALUE(sb_envd_event, sb_envd_event_free)

/* The message that ends a stream: 0, or the error in it. */
int sb_envd_event_last(const void *msg, size_t len, struct sb_error *err);

#endif
