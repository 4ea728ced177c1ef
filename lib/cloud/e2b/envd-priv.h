/* SPDX-License-Identifier: MIT */
#ifndef SB_CLOUD_ENVD_PRIV_H
#define SB_CLOUD_ENVD_PRIV_H

#include <cloud/e2b/envd.h>

struct sb_envd {
	struct sb_rest *rest;
};

/* 0 for a good answer, else its error. */
int sb_envd_check(struct sb_envd *e, const struct sb_rest_answer *a, const char *what,
	struct sb_error *err);
/* One call of process.Process; takes `in`. `out` may be NULL. */
int sb_envd_ask(struct sb_envd *e, const char *method, json_t *in, enum sb_rest_again again,
	const struct sb_rest_wait *wait, json_t **out, struct sb_error *err);
/* Its input ends, it gets TERM, a while later KILL; waits for its end. Not there is success. */
int sb_envd_end_program(struct sb_envd *e, json_int_t pid, struct sb_error *err);

#endif
