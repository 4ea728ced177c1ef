/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_RULES_PRIV_H
#define SBSYNC_RULES_PRIV_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sync/scan/rules.h>

/* Ceilings of one rule set. They bound memory and time, whoever wrote the rules. */
#define SB_RULE_TEXT_MAX 4096u
#define SB_RULES_FILE_MAX (1u << 20)
#define SB_RULES_COUNT_MAX (1u << 18)
#define SB_RULES_BYTES_MAX (16u << 20)
#define SB_RULES_DIRS_MAX (1u << 16)
#define SB_RULES_DIR_LEN_MAX (1u << 16)
#define SB_RULES_ENCODED_MAX (64u << 20)

/* How a pattern is compared; all but the last two look at the name only. */
enum sb_rule_kind {
	SB_RULE_NEVER,       /* matches nothing: empty, or a class or escape without an end */
	SB_RULE_NAME,        /* core */
	SB_RULE_NAME_SUFFIX, /* *.o */
	SB_RULE_NAME_PREFIX, /* build-* */
	SB_RULE_NAME_GLOB,   /* *.[oa] */
	SB_RULE_PATH,        /* /build, doc/html: from the list's directory on */
	SB_RULE_PATH_GLOB,   /* doc/ *.html, with any number of ** */
};

/* Where the lists of a directory stand. */
enum { SB_RULES_FILE_GIT, SB_RULES_FILE_SBSYNC, SB_RULES_FILE_GITEXCLUDE, SB_RULES_FILES };

/*
 * One pattern. `text` (`len` bytes) is the line as it was written, without trailing
 * blanks; the part that is compared is `plen` bytes at `start` ('!', a leading '/' and
 * the final '/' are outside). It begins with `head` bytes without any special character
 * and ends with `tail` such bytes; both are compared before the rest.
 */
struct sb_rule {
	const char *text;
	uint16_t len;
	uint16_t start;
	uint16_t plen;
	uint16_t head;
	uint16_t tail;
	uint8_t kind;
	uint8_t last; /* the byte every matching path ends with; 0: none */
	bool negative;
	bool dir_only;
};

/* Fills `out` from `text` (1 to SB_RULE_TEXT_MAX bytes), which must live as long. */
void sb_rules_pattern_compile(struct sb_rule *out, const char *text, size_t len);

/*
 * Does the pattern match? `rel` (`rel_len`) is the path from the list's directory on,
 * `name` its last component. Time is at most about plen x rel_len, memory none.
 */
bool sb_rules_pattern_match(const struct sb_rule *r, const char *rel, size_t rel_len,
	const char *name, size_t name_len, bool is_dir);

/*
 * Patterns in the order they were added. A block is never moved and its filled part
 * never changed, so that a view (block and count, taken under the lock) is read without
 * one while others add.
 */
struct sb_rule_block {
	struct sb_rule_block *prev; /* the weaker ones, settled */
	size_t n;
	size_t cap;
	struct sb_rule v[];
};

struct sb_rule_view {
	const struct sb_rule_block *last;
	size_t n; /* of `last` */
};

/* The ignore files of one directory. */
struct sb_rules_dir {
	struct sb_rules_dir *next; /* same hash bucket */
	uint64_t hash;
	struct sb_rule_block *files[SB_RULES_FILES];
	struct sb_rules_node *node; /* the last one made for it */
	size_t len;
	char path[];
};

struct sb_rules_node {
	const struct sb_rules_node *up; /* next directory above that has rules, or NULL */
	struct sb_rules_node *next;     /* all nodes of the set */
	const struct sb_rules_dir *dir;
	size_t dir_len;
	struct sb_rule_view files[SB_RULES_FILES];
	/* The same in every node that came from one root. */
	struct sb_rule_view command, from_file, builtin;
	const struct sb_rules_tracked *tracked; /* NULL: none */
	bool fold;
};

/* A piece of heap that rule texts point into. */
struct sb_rules_text {
	struct sb_rules_text *next;
	char bytes[];
};

/* rules-tracked.c; never changed once it is in a rule set. */
struct sb_rules_tracked {
	struct sb_rules_tracked *old; /* that it took the place of: nodes may know it */
	size_t n;
	const char *v[];
};

/* Is this a tracked file, or a directory with something tracked beneath it? */
bool sb_rules_tracked_has(const struct sb_rules_tracked *t, const char *path, size_t len,
	bool is_dir);
/* Does it lie in a directory that git ignores but for what it tracks there? */
bool sb_rules_tracked_buries(const struct sb_rules_tracked *t, const char *path, size_t len);

struct sb_rules {
	pthread_rwlock_t mu; /* guards everything below */
	struct sb_rule_block *command, *from_file, *builtin;
	struct sb_rules_dir **buckets;
	size_t n_buckets; /* a power of two */
	size_t n_dirs;
	uint64_t seed;
	struct sb_rules_node *nodes;
	struct sb_rules_node *root; /* the last root node */
	struct sb_rules_text *texts;
	struct sb_rules_tracked *tracked;
	bool fold; /* git's lists, in lower case, are compared without regard to case */
	size_t n_rules;
	size_t n_bytes;
};

/*
 * Adds `n` patterns (texts[i] of lens[i] bytes, copied) to the list of (`src`, `dir`);
 * all or none. Checks the ceilings. Used by the text parser and by the decoder.
 */
int sb_rules_add_texts(struct sb_rules *r, enum sb_rules_source src, const char *dir,
	size_t dir_len, const char *const *texts, const uint16_t *lens, size_t n,
	struct sb_error *err);

/* The source of a list of a directory, by its place in `files`. */
static inline enum sb_rules_source
sb_rules_source_of(size_t file)
{
	return file == SB_RULES_FILE_GIT     ? SB_RULES_GITIGNORE :
		file == SB_RULES_FILE_SBSYNC ? SB_RULES_SBSYNCIGNORE :
					       SB_RULES_GITEXCLUDE;
}

/* "" or components of 1 to 255 bytes, none "." or "..", single slashes between. */
bool sb_rules_dir_ok(const char *dir, size_t len);

#endif
