/* SPDX-License-Identifier: MIT */
#ifndef SB_BOX_GUEST_H
#define SB_BOX_GUEST_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <base/buf.h>
#include <base/cursor.h>
#include <host/guest/guest-wire.h>

/*
 * The guest of a session (lib/host/guest/guest-wire.h): one thread that waits for everything, and a
 * thread for each request that may take long.
 */

/* A host's connection. The main thread owns it; others reach its `out` by guest_send. */
struct guest_link {
	struct guest_link *next;
	int fd;
	int refs;  /* slow requests that will answer here; guarded by guest_mu */
	bool gone; /* guarded by guest_mu */
	struct sb_buf in;
	struct sb_buf out; /* guarded by guest_mu */
};
extern pthread_mutex_t guest_mu;

/* One request; the fields are read from `c`. */
struct guest_ask {
	struct guest_link *link;
	uint32_t id;
	uint8_t what;
	struct sb_cursor c;
};

/* Queues a frame. Thread-safe. */
void guest_send(struct guest_link *l, uint8_t what, uint32_t id, const void *data, size_t len);
void guest_send_buf(struct guest_link *l, uint8_t what, uint32_t id, const struct sb_buf *b);
/* Answers FAILED with errno, or with words of one's own. */
void guest_fail(const struct guest_ask *a, int sys);
/* A text of a request as a new string, or NULL when it is none. */
char *guest_text(struct sb_cursor *c);
/* A list of texts, NULL-terminated, in one block to free; NULL: it is none. */
char **guest_list(struct sb_cursor *c, size_t max);
/* Wakes the main thread, so that it looks at what there is to send. */
void guest_wake(void);

/* guest-proc.c */
void guest_proc_ask(struct guest_ask *a);
void guest_proc_credit(struct guest_link *l, uint32_t id, uint64_t n);
void guest_proc_leave(struct guest_link *l, uint32_t id); /* id 0: all of this link */
void guest_proc_reap(void);
/* What to poll; and what came of it. */
struct pollfd;
size_t guest_proc_poll(struct pollfd *p, size_t max);
void guest_proc_ready(const struct pollfd *p, size_t n);
/* When something is to be ended or forgotten: ms, -1: nothing is. */
int guest_proc_wait(void);

/* guest-file.c */
void guest_file_ask(struct guest_ask *a);
void guest_file_leave(struct guest_link *l, uint32_t id);
/* 0, or an errno. */
int guest_file_entry(const char *path, const char *name, struct sb_buf *out);

/* guest-watch.c */
void guest_watch_ask(struct guest_ask *a);
void guest_watch_leave(struct guest_link *l, uint32_t id);
int guest_watch_fd(void);
void guest_watch_ready(void);

#endif
