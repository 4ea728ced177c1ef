/* SPDX-License-Identifier: MIT */
#ifndef SB_DOCKER_NAME_H
#define SB_DOCKER_NAME_H

#include <stdbool.h>

/*
 * What may stand in a command line as it is: names of sandboxes and containers, and paths. Each is
 * one word, so the only dangers are words that look like options and texts that the programs take
 * apart themselves.
 */

/* Letters, digits, "._+-", a letter or digit first, at most 128. */
bool sb_name_ok(const char *name);
/* A reference to an image: "[HOST[:PORT]/]NAME[:TAG][@DIGEST]"; its characters, not its grammar. */
bool sb_name_image_ok(const char *ref);

/*
 * The name of a sandbox with that id: "sbsync-" and the id. `plus`: '_', which sbx does not take,
 * becomes '+', which containers do not. A new string.
 */
char *sb_name_of_sandbox(const char *id, bool plus);

/*
 * `path` made absolute from the current directory and clean: no ".", "..", double or trailing
 * slash. Nothing is looked up. A new string; NULL: no memory, or there is no current directory.
 */
char *sb_name_clean_path(const char *path);
/* Whether the clean absolute path is `dir`, or lies in it. */
bool sb_name_inside(const char *dir, const char *path);

#endif
