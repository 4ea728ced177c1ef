/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_COLDPACE_H
#define SB_HOST_COLDPACE_H

#include <pthread.h>
#include <stdint.h>

#include <sb/host.h>

/* So many bytes a second for all who share it, and so many transfers at a time. */
struct sb_coldpace {
	pthread_mutex_t mu;
	uint64_t rate;  /* bytes a second; 0: no limit */
	unsigned slots; /* transfers at a time; 0: no limit */
	unsigned running;
	int64_t due_us; /* when the bytes that were let through are paid for */
};

void sb_coldpace_init(struct sb_coldpace *p, uint64_t rate, unsigned slots);
void sb_coldpace_free(struct sb_coldpace *p);

/* Waits until `bytes` more may go. SB_E_CANCELED, SB_E_TIMEOUT. `p` may be NULL. */
int sb_coldpace_take(struct sb_coldpace *p, uint64_t bytes, const struct sb_host_call *call,
	struct sb_error *err);
/* Waits for a slot; give it back. */
int sb_coldpace_enter(struct sb_coldpace *p, const struct sb_host_call *call, struct sb_error *err);
void sb_coldpace_leave(struct sb_coldpace *p);

#endif
