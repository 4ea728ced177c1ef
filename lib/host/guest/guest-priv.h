/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_GUEST_PRIV_H
#define SB_HOST_GUEST_PRIV_H

#include <pthread.h>

#include <base/cursor.h>
#include <host/guest/guest.h>

/* A frame that came; guest-link.c makes and frees it. */
struct sb_guest_frame {
	struct sb_guest_frame *next;
	uint8_t what;
	size_t len;
	uint8_t data[];
};

/* The connection to one session's guest. */
struct sb_guest_link {
	struct sb_guest_link *next; /* guarded by the guests' `mu`, as the three below */
	unsigned users;
	bool connecting;
	char session[SB_HOST_ID_MAX + 1];
	int64_t used_at;
	int fd;
	pthread_mutex_t send_mu; /* one frame after the other */

	pthread_mutex_t mu; /* guards all below */
	pthread_cond_t cv;
	bool hello, dead, reading;
	uint32_t last_id;
	struct sb_guest_stream *streams;
};

struct sb_guests {
	struct sb_host *host;
	pthread_mutex_t mu;
	pthread_cond_t cv;
	struct sb_guest_link *links;
	unsigned readers;
};

struct sb_guest_stream {
	struct sb_guests *guests;
	struct sb_guest_link *link;
	struct sb_guest_stream *next;
	uint32_t id;
	struct sb_guest_frame *first, **last; /* guarded by the link's `mu` */
	size_t bytes;                         /* of them */
	size_t max;                           /* more is a guest that does not keep the rules */
	unsigned waits;                       /* answers that have not come yet: of writes */
	struct sb_guest_frame *now;           /* what the last event points into */
	struct sb_guest_entry entry;
	char *name;
};

/* A link that works, with a user more; NULL: error. */
struct sb_guest_link *sb_guest_link_get(struct sb_guests *g, const char *session,
	const struct sb_host_call *call, struct sb_error *err);
void sb_guest_link_put(struct sb_guests *g, struct sb_guest_link *l);
/* Makes a request's end of the link, with an id of its own. Takes the user of `l` over. */
struct sb_guest_stream *sb_guest_link_ask(struct sb_guests *g, struct sb_guest_link *l,
	struct sb_error *err);
/* Sends a frame with that id. */
int sb_guest_link_send(struct sb_guest_link *l, uint8_t what, uint32_t id, const void *data,
	size_t len, const struct sb_host_call *call, struct sb_error *err);
/* The next frame, the caller's then; NULL and 0: none in time. */
int sb_guest_link_wait(struct sb_guest_stream *s, sb_deadline d, const struct sb_host_call *call,
	struct sb_guest_frame **out, struct sb_error *err);

/* A request and its answer: DONE's fields, or its FAILED as an error. `more` gets MORE frames. */
struct sb_guest_answer {
	struct sb_guest_frame *frame;
	struct sb_cursor c;
};
typedef int (*sb_guest_more_fn)(struct sb_cursor *c, void *arg, struct sb_error *err);
int sb_guest_call(struct sb_guests *g, const char *session, uint8_t what,
	const struct sb_buf *fields, sb_guest_more_fn more, void *arg,
	const struct sb_host_call *call, struct sb_guest_answer *out,
	struct sb_guest_stream **out_stream, struct sb_error *err);
void sb_guest_answer_free(struct sb_guest_answer *a);
/* Reads a FAILED frame. */
int sb_guest_failure(struct sb_cursor *c, struct sb_error *err);
/* Reads an entry; SB_E_PROTO. */
int sb_guest_entry_read(struct sb_cursor *c, struct sb_guest_entry *out, struct sb_error *err);
int sb_guest_strings_read(struct sb_cursor *c, struct sb_strlist *out, struct sb_error *err);
/* A text of the guest's as a new string: at most `max` bytes, without NUL. NULL: it is none. */
char *sb_guest_text_read(struct sb_cursor *c, size_t max);
void sb_guest_put_text(struct sb_buf *b, const char *s);

#endif
