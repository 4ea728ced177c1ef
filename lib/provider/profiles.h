/* SPDX-License-Identifier: MIT */
#ifndef SB_PROVIDER_PROFILES_H
#define SB_PROVIDER_PROFILES_H

#include <yaml.h>

#include <provider/provider.h>

/* A profile and where it stands. */
struct profiles_entry {
	struct sb_profile p;
	const char *file; /* of struct sb_profiles */
	size_t line;
};

struct sb_profiles {
	char *user_file, *project_file;
	struct profiles_entry *v;
	size_t n;
	char *default_name; /* defaults.sandbox */
	char *project_name; /* sandbox, of the project */
	size_t default_line, project_line;
	struct sb_profile_control *controls;
	size_t n_controls;
	char *default_control; /* defaults.control */
	size_t default_control_line;
	bool disabled;
	enum sb_trust trust;
	bool says;                          /* the project's file says anything at all */
	struct sb_strlist include, exclude; /* of the project */
};

/* A file being read. Mistakes are told and counted; reading goes on. */
struct profiles_reader {
	struct sb_profiles *ps;
	const struct sb_profiles_opts *o;
	const char *file;
	bool project; /* it came with a workspace */
	yaml_document_t doc;
	size_t mistakes;
	struct sb_error *first; /* the first mistake; never NULL */
};

/* profiles-field.c */
void sb_profiles_mistake(struct profiles_reader *f, const yaml_node_t *at, const char *fmt, ...)
	SB_PRINTF(3, 4);
/* A text without a NUL; NULL after telling the mistake. */
const char *sb_profiles_text(struct profiles_reader *f, const yaml_node_t *n, const char *what);
void sb_profiles_bool(struct profiles_reader *f, const yaml_node_t *n, const char *what, bool *out);
void sb_profiles_list(struct profiles_reader *f, const yaml_node_t *n, const char *what,
	struct sb_strlist *out);
/* Calls `fn` for each pair of a map; a key that comes twice is a mistake. */
typedef void (*sb_profiles_pair_fn)(struct profiles_reader *f, const yaml_node_t *key,
	const char *name, const yaml_node_t *value, void *arg);
void sb_profiles_map(struct profiles_reader *f, const yaml_node_t *n, const char *what,
	sb_profiles_pair_fn fn, void *arg);
/* The body of one profile into `p`, which has the name already. */
void sb_profiles_body(struct profiles_reader *f, const yaml_node_t *n, struct sb_profile *p);

/* profiles-control.c: "controls" of the user's file. */
void sb_profiles_controls(struct profiles_reader *f, const yaml_node_t *n);
/* 1 after telling of a default control that is not there. */
int sb_profiles_controls_end(const struct sb_profiles *ps, const struct sb_profiles_opts *o,
	struct sb_error *first);
void sb_profiles_controls_free(struct sb_profiles *ps);

/* A name of a profile or of a control. */
bool sb_profiles_name_ok(const char *s);

/* profiles-effect.c: what `file` (a pointer out of `ps`) does, as sb_profiles_effects has it. */
char *sb_profiles_effects_of(const struct sb_profiles *ps, const char *file, struct sb_error *err);

#endif
