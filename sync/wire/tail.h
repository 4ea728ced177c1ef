/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_TAIL_H
#define SBSYNC_TAIL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sb/cancel.h>

/*
 * The last bytes that a program wrote to stderr. One thread drains it and adds them, others read
 * them. Thread-safe between init and destroy.
 */
struct sb_tail {
	pthread_mutex_t mu;
	pthread_cond_t cond;
	bool ended;
	uint64_t total;
	char ring[2048];
};

void sb_tail_init(struct sb_tail *t);
void sb_tail_destroy(struct sb_tail *t);
void sb_tail_add(struct sb_tail *t, const char *data, size_t len);
/* No more will come. */
void sb_tail_end(struct sb_tail *t);
/* Waits for sb_tail_end, at most until `d`. */
void sb_tail_wait_end(struct sb_tail *t, sb_deadline d);
/* The tail, escaped, trailing line ends dropped, as much of its end as fits `size`. */
void sb_tail_get(struct sb_tail *t, char *out, size_t size);

#endif
