/* SPDX-License-Identifier: MIT */
#ifndef SB_SANDBOX_H
#define SB_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sb/cancel.h>
#include <sb/error.h>
#include <sb/log.h>
#include <sb/strlist.h>
#include <sbsync/sync.h>

/*
 * The words of the sandbox contract. Every enumeration is a word on disk and on the wire; X(NAME,
 * "word").
 */
#define SB_BACKEND_MAP(X) \
	X(LOCAL, "local") \
	X(SSH, "ssh") \
	X(HOST, "host") X(DOCKER, "docker") X(DAYTONA, "daytona") X(E2B, "e2b") X(FLY, "fly")
#define SB_SYNC_MODE_MAP(X) \
	X(NONE, "none") X(SESSION, "session-bidirectional") X(TURN, "turn-bidirectional")
#define SB_PERSIST_MAP(X) X(TRANSIENT, "transient") X(REUSE, "reuse") X(ARCHIVE, "archive")
#define SB_WHEN_MAP(X) X(START, "start") X(TURN, "turn") X(STOP, "stop") X(CRASH, "crash")
#define SB_WAY_MAP(X) X(TO_RUNTIME, "to_runtime") X(FROM_RUNTIME, "from_runtime")
#define SB_LIFE_MAP(X) \
	X(CREATING, "creating") /* recorded; the provider has been or is about to be asked */ \
	X(READY, "ready")       /* a provider's word for prepared */ \
	X(FOUND, "found")       /* a provider's word for one that a search gave */ \
	X(PREPARED, "prepared") /* there, nothing ran in it yet */ \
	X(ACTIVE, "active")     /* synced in; something may run and change files there */ \
	X(STOPPING, "stopping") /* nothing runs any more, the sync back is under way */ \
	X(UNSYNCED, "unsynced") /* the sync back failed: nothing over there may be thrown away */ \
	X(STOPPED, "stopped")   /* synced back; the sandbox is kept */ \
	X(DESTROYED, "destroyed") /* synced back (or discarded on demand) and gone */
#define SB_PERM_OP_MAP(X) \
	X(READ, "fs/read_text_file") \
	X(WRITE, "fs/write_text_file") \
	X(TERMINAL, "terminal/create") X(REQUEST, "session/request_permission")
#define SB_DECISION_MAP(X) \
	X(PENDING, "pending") \
	X(ALLOW_ONCE, "allow-once") \
	X(ALLOW_ALWAYS, "allow-always") \
	X(REJECT_ONCE, "reject-once") X(REJECT_ALWAYS, "reject-always")
#define SB_PERM_MODE_MAP(X) \
	X(APPROVE_READS, "approve-reads") X(DENY_ALL, "deny-all") X(APPROVE_ALL, "approve-all")

/* The lists of words: one for each enumeration. */
enum sb_words {
	SB_WORDS_BACKEND,
	SB_WORDS_SYNC_MODE,
	SB_WORDS_PERSIST,
	SB_WORDS_WHEN,
	SB_WORDS_WAY,
	SB_WORDS_LIFE,
	SB_WORDS_PERM_OP,
	SB_WORDS_DECISION,
	SB_WORDS_PERM_MODE,
};

/* The functions behind those that SB_WORDS_DECLARE makes for each enumeration. */
SB_API const char *sb_word_name(enum sb_words list, int value);
SB_API int sb_word_parse(enum sb_words list, const char *s, int *out, struct sb_error *err);
SB_API const char *const *sb_word_all(enum sb_words list);

/*
 * Defines enum sb_NOUN with its values, whose first is the default of a zeroed struct, and
 *   const char *sb_NOUN_name(enum sb_NOUN v);      the word; "?" for no value of it
 *   int sb_NOUN_parse(const char *s, enum sb_NOUN *out, struct sb_error *err);
 *     compares exactly; SB_E_INVAL (backends: SB_E_BACKEND_INVALID) names the text and the words
 *   const char *const *sb_NOUN_words(void);        all words in order, NULL-terminated
 */
#define SB_WORDS_DECLARE(noun, NOUN, MAP) \
	enum sb_##noun{ MAP(SB_WORD_OF_##NOUN) SB_##NOUN##_COUNT }; \
	static inline const char *sb_##noun##_name(enum sb_##noun v) \
	{ \
		return sb_word_name(SB_WORDS_##NOUN, (int)v); \
	} \
	static inline int sb_##noun##_parse(const char *s, enum sb_##noun *out, \
		struct sb_error *err) \
	{ \
		int v = 0; \
		int r = sb_word_parse(SB_WORDS_##NOUN, s, &v, err); \
\
		if (r < 0) \
			return r; \
		*out = (enum sb_##noun)v; \
		return 0; \
	} \
	static inline const char *const *sb_##noun##_words(void) \
	{ \
		return sb_word_all(SB_WORDS_##NOUN); \
	}
#define SB_WORD_OF_BACKEND(name, text) SB_BACKEND_##name,
#define SB_WORD_OF_SYNC_MODE(name, text) SB_SYNC_MODE_##name,
#define SB_WORD_OF_PERSIST(name, text) SB_PERSIST_##name,
#define SB_WORD_OF_WHEN(name, text) SB_WHEN_##name,
#define SB_WORD_OF_WAY(name, text) SB_WAY_##name,
#define SB_WORD_OF_LIFE(name, text) SB_LIFE_##name,
#define SB_WORD_OF_PERM_OP(name, text) SB_PERM_OP_##name,
#define SB_WORD_OF_DECISION(name, text) SB_DECISION_##name,
#define SB_WORD_OF_PERM_MODE(name, text) SB_PERM_MODE_##name,

SB_WORDS_DECLARE(backend, BACKEND, SB_BACKEND_MAP)
SB_WORDS_DECLARE(sync_mode, SYNC_MODE, SB_SYNC_MODE_MAP)
SB_WORDS_DECLARE(persist, PERSIST, SB_PERSIST_MAP) /* what becomes of the sandbox at the end */
SB_WORDS_DECLARE(when, WHEN, SB_WHEN_MAP)          /* reason of a sync */
SB_WORDS_DECLARE(way, WAY, SB_WAY_MAP)             /* direction of a sync */
SB_WORDS_DECLARE(life, LIFE, SB_LIFE_MAP)          /* state of a sandbox */
SB_WORDS_DECLARE(perm_op, PERM_OP, SB_PERM_OP_MAP) /* what a tool host is asked to allow */
SB_WORDS_DECLARE(decision, DECISION, SB_DECISION_MAP)
SB_WORDS_DECLARE(perm_mode, PERM_MODE, SB_PERM_MODE_MAP)

/* May a sandbox go from one state to the other? Staying is allowed. One table (life.c). */
SB_API bool sb_life_allows(enum sb_life from, enum sb_life to);

/*
 * How long a call may take, and who gets its log and progress. Every blocking call takes one; NULL
 * waits without limit. It belongs to that call alone: no object lives or dies with it.
 */
struct sb_call {
	size_t size;
	const struct sb_cancel *cancel; /* may be NULL */
	sb_deadline deadline;
	struct sb_log log;
	sb_progress_fn progress; /* may be NULL */
	void *progress_arg;
};
#define SB_CALL_INIT \
	{ \
		.size = sizeof(struct sb_call), .deadline = SB_NEVER \
	}

/* SB_E_CANCELED or SB_E_TIMEOUT naming `what`, or 0. `call` may be NULL. */
SB_API int sb_call_check(const struct sb_call *call, const char *what, struct sb_error *err);
/* `call` (NULL: without limit) with a deadline no later than `ms` from now. */
SB_API struct sb_call sb_call_within(const struct sb_call *call, int64_t ms);

/* How a program ended. */
struct sb_ended {
	int code;   /* exit code; 128 + signal number for a signal */
	int signal; /* 0: it exited */
	bool asked; /* ended by a stop that was asked for */
	bool lost;  /* the connection was lost: what became of it is not known, `code` is 255 */
};

/*
 * The network that the user wants; capabilities tell what a provider can enforce. `required`: the
 * provider refuses the sandbox if it cannot enforce it.
 */
struct sb_network {
	bool allow_public_ingress;
	bool allow_outbound;
	struct sb_strlist allow_list;
	struct sb_strlist deny_list;
	bool required;
};

#endif
