/* SPDX-License-Identifier: MIT */
#ifndef SB_DOCKER_YAMLDOC_H
#define SB_DOCKER_YAMLDOC_H

#include <stdbool.h>
#include <yaml.h>

#include <base/cleanup.h>
#include <sb/error.h>

/*
 * A YAML file of somebody else's program, of which we look at a few members: whatever is not as
 * expected is as if it were not there. Nodes are borrowed.
 */
struct sb_yamldoc {
	yaml_document_t doc;
	bool open;
};
void sb_yamldoc_free(struct sb_yamldoc *d);
SB_CLEANUP_VALUE(sb_yamldoc, sb_yamldoc_free)

/* The first document; SB_E_INVAL says where it is no YAML. An empty text has no root. */
int sb_yamldoc_parse(const char *text, size_t len, struct sb_yamldoc *out, struct sb_error *err);
int sb_yamldoc_read(const char *path, struct sb_yamldoc *out, struct sb_error *err);

yaml_node_t *sb_yamldoc_root(struct sb_yamldoc *d);
/* A member of a map, also one that is merged in by "<<". NULL, also for anything but a map. */
yaml_node_t *sb_yamldoc_get(struct sb_yamldoc *d, const yaml_node_t *map, const char *key);
/* The text of a scalar without NUL, or NULL; "" is NULL, too. */
const char *sb_yamldoc_text(const yaml_node_t *n);
/* The text of a member. */
const char *sb_yamldoc_text_of(struct sb_yamldoc *d, const yaml_node_t *map, const char *key);
/* Goes over the values of a map or list: the nth, and its key (NULL in a list). NULL at the end. */
yaml_node_t *sb_yamldoc_nth(struct sb_yamldoc *d, const yaml_node_t *n, size_t nth,
	const char **key);

#endif
