/* SPDX-License-Identifier: MIT */
#ifndef SB_CLOUD_E2BAPI_H
#define SB_CLOUD_E2BAPI_H

#include <cloud/http/rest.h>

/*
 * The control plane of E2B, or of a host that speaks its API: sandboxes from create to kill.
 * Thread-safe. What a request may not do twice goes out once; SB_E_SANDBOX_NOT_FOUND for 404.
 */
struct sb_e2bapi;

#define SB_E2BAPI_DOMAIN "e2b.app"

struct sb_e2bapi_opts {
	size_t size;
	const char *api_url;     /* NULL: https://api.DOMAIN */
	const char *sandbox_url; /* of every sandbox; NULL: https://49983-ID.DOMAIN */
	const char *domain;      /* NULL: SB_E2BAPI_DOMAIN */
	const char *ca_file;
	const char *key;
	struct sb_log log;
};
#define SB_E2BAPI_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_e2bapi_opts) \
	}

struct sb_e2bapi *sb_e2bapi_new(const struct sb_e2bapi_opts *o, struct sb_error *err);
void sb_e2bapi_free(struct sb_e2bapi *a);
SB_CLEANUP_PTR(sb_e2bapi, sb_e2bapi_free)

/* A sandbox that can be spoken to. */
struct sb_e2bapi_box {
	char *id;
	char *token; /* of its own plane; secret; NULL: it needs none */
	char *url;   /* of its own plane */
};
void sb_e2bapi_box_free(struct sb_e2bapi_box *b);
SB_CLEANUP_VALUE(sb_e2bapi_box, sb_e2bapi_box_free)

struct sb_e2bapi_wish {
	const char *template;
	const char *const *metadata; /* "KEY=value" */
	int64_t timeout_s;           /* until it is paused, never killed, by itself */
	bool internet;
	const char *const *allow, *const *deny; /* lists of the network; may be NULL */
};
/* Whoever is cut off here finds by its metadata what may have been made. */
int sb_e2bapi_create(struct sb_e2bapi *a, const struct sb_e2bapi_wish *w,
	const struct sb_rest_wait *wait, struct sb_e2bapi_box *out, struct sb_error *err);

/* Resumes it if it is paused; it stays for `timeout_s` from now at least. */
int sb_e2bapi_connect(struct sb_e2bapi *a, const char *id, int64_t timeout_s,
	const struct sb_rest_wait *wait, struct sb_e2bapi_box *out, struct sb_error *err);

/* The first one made with all of that metadata. A new string in `id`. */
int sb_e2bapi_find(struct sb_e2bapi *a, const char *const *metadata,
	const struct sb_rest_wait *wait, char **id, bool *running, struct sb_error *err);

/* Whether it is there, and runs. Its metadata is the caller's, when asked for. */
int sb_e2bapi_get(struct sb_e2bapi *a, const char *id, const struct sb_rest_wait *wait,
	bool *running, json_t **metadata, struct sb_error *err);

/* It stays for so long from now. */
int sb_e2bapi_extend(struct sb_e2bapi *a, const char *id, int64_t timeout_s,
	const struct sb_rest_wait *wait, struct sb_error *err);

/* One that is paused already is paused; one that is not there is killed. */
int sb_e2bapi_pause(struct sb_e2bapi *a, const char *id, const struct sb_rest_wait *wait,
	struct sb_error *err);
int sb_e2bapi_kill(struct sb_e2bapi *a, const char *id, const struct sb_rest_wait *wait,
	struct sb_error *err);

/* Two looks that change nothing: does the account work; is there that template? */
int sb_e2bapi_try(struct sb_e2bapi *a, const struct sb_rest_wait *wait, struct sb_error *err);
int sb_e2bapi_try_template(struct sb_e2bapi *a, const char *name, const struct sb_rest_wait *wait,
	struct sb_error *err);
/* Its address, for messages; borrowed. */
const char *sb_e2bapi_name(const struct sb_e2bapi *a);

#endif
