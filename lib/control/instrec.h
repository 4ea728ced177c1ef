/* SPDX-License-Identifier: MIT */
#ifndef SB_CONTROL_INSTREC_H
#define SB_CONTROL_INSTREC_H

#include <base/cleanup.h>
#include <sb/instance.h>

SB_CLEANUP_VALUE(sb_instance, sb_instance_free)

/*
 * The records of a provisioner that keeps its instances itself: DIR/ID/record, which a crash leaves
 * old or new, never half. Changes happen under one lock of the directory.
 */
struct sb_instrec {
	struct sb_instance i; /* state: as it was wanted last; `url` where it is fixed */
	double cpus;
	uint64_t mem_mb;
	int64_t lifetime_ms;
};
void sb_instrec_free(struct sb_instrec *r);
SB_CLEANUP_VALUE(sb_instrec, sb_instrec_free)

/* Makes DIR where it is missing. The lock goes with the descriptor (sb_file_unlock). */
int sb_instrec_lock(const char *dir, const struct sb_control_call *call, struct sb_error *err);
/* SB_E_NOTFOUND. */
int sb_instrec_read(const char *dir, const char *id, struct sb_instrec *out, struct sb_error *err);
/* Makes DIR/ID where it is missing. */
int sb_instrec_write(const char *dir, const struct sb_instrec *r, struct sb_error *err);
/* The record first: what is there without one is no instance. */
int sb_instrec_remove(const char *dir, const char *id, struct sb_error *err);
/* The ids of all records, sorted. */
int sb_instrec_all(const char *dir, struct sb_strlist *out, struct sb_error *err);

/* Has it all these tags? */
bool sb_instrec_has(const struct sb_instance *i, const char *const *tags);
/* i- and 16 digits that the token determines. */
int sb_instrec_id(const char *token, char out[SB_INSTANCE_ID_MAX + 1], struct sb_error *err);

/*
 * The list of a provisioner with records: `describe` tells of each; one that is gone meanwhile is
 * left out.
 */
int sb_instrec_list(struct sb_provisioner *p, const char *dir, const struct sb_instance_filter *f,
	const struct sb_control_call *call, struct sb_instance **out, size_t *out_n,
	struct sb_error *err);

#endif
