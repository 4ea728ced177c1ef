/* SPDX-License-Identifier: MIT */
#ifndef SB_ERROR_H
#define SB_ERROR_H

#include <stddef.h>

/* In front of every function that leaves the library; gives it C linkage in C++. */
#ifdef __cplusplus
#define SB_API extern "C" __attribute__((visibility("default")))
#else
#define SB_API __attribute__((visibility("default")))
#endif
#define SB_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/*
 * Error codes: negative, stable, never reused. The text is the class of the failure; the message
 * in `struct sb_error` names the value. Codes below -100 belong to the sandbox contracts.
 */
#define SB_CODE_MAP(X) \
	X(-1, SYS, "system call failed") \
	X(-2, NOMEM, "out of memory") \
	X(-3, INVAL, "invalid value") \
	X(-4, STATE, "not allowed now") \
	X(-5, PROTO, "peer broke protocol") \
	X(-6, TIMEOUT, "deadline passed") \
	X(-7, CANCELED, "canceled") \
	X(-8, LIMIT, "limit exceeded") \
	X(-9, CORRUPT, "data is damaged") \
	X(-10, VERSION, "unsupported version") \
	X(-11, LOCKED, "held by another process") \
	X(-12, NOTFOUND, "not found") \
	X(-13, EXISTS, "exists already") \
	X(-14, DENIED, "permission denied") \
	X(-15, ESCAPE, "path leads out of the root") \
	X(-16, CHANGED, "changed meanwhile") \
	X(-17, CONFLICT, "conflict") \
	X(-18, BRAKE, "refused for safety") \
	X(-19, IDENTITY, "wrong sandbox identity") \
	X(-20, CONNECT, "connection failed") \
	X(-21, AUTH, "authentication failed") \
	X(-22, HOSTKEY, "host key refused") \
	X(-23, CLOSED, "connection closed") \
	X(-24, NOSPACE, "no space left") \
	X(-25, UNSUPPORTED, "not supported here") \
	X(-26, PEER, "peer reported an error") \
	X(-27, CHILD, "child process failed") \
	X(-28, USAGE, "wrong usage") \
	X(-29, UNSTABLE, "file keeps changing") \
	X(-30, FULL, "buffer is full") \
	X(-31, UNAVAILABLE, "temporarily unavailable") \
	X(-101, SESSION_NOT_FOUND, "sandbox: session not found") \
	X(-102, SESSION_EXISTS, "sandbox: session already exists") \
	X(-103, SESSION_PAUSED, "sandbox: session is paused") \
	X(-104, SESSION_DESTROYING, "sandbox: session is destroying") \
	X(-105, PROCESS_NOT_FOUND, "sandbox: process not found") \
	X(-106, ROLLBACK_IN_PROGRESS, "sandbox: rollback in progress") \
	X(-107, INVALID_STATE, "sandbox: invalid session state") \
	X(-108, MAX_SESSIONS, "sandbox: max sessions reached") \
	X(-109, TOOLS_IN_FLIGHT, "sandbox: tools in flight") \
	X(-110, NO_SNAPSHOTS, "sandbox: snapshots not available (storage local-disk has none)") \
	X(-111, SHUTTING_DOWN, "sandbox: shutting down") \
	X(-112, SNAPSHOT_NOT_FOUND, "sandbox: snapshot not found") \
	X(-113, SNAPSHOT_EXISTS, "sandbox: snapshot already exists") \
	X(-114, SNAPSHOT_HELD, "sandbox: snapshot is held") \
	X(-115, SNAPSHOT_IN_USE, "sandbox: snapshot has forks") \
	X(-116, BASE_NOT_FOUND, "sandbox: base image not found") \
	X(-117, POOL_FULL, "sandbox: storage is full") \
	X(-118, STORAGE_BUSY, "sandbox: storage is busy") \
	X(-119, STORAGE, "sandbox: storage command failed") \
	X(-120, HOLD_NOT_FOUND, "sandbox: hold not found") \
	X(-121, TOOL_UNKNOWN, "sandbox: unknown tool") \
	X(-122, RUNTIME, "sandbox: container runtime failed") \
	X(-131, PROVIDER_NULL, "sandbox: provider is null or incomplete") \
	X(-132, BACKEND_INVALID, "sandbox: invalid provider backend") \
	X(-133, PROVIDER_MISSING, "sandbox: provider not registered") \
	X(-134, PROVIDER_EXISTS, "sandbox: provider already registered") \
	X(-135, SANDBOX_NOT_FOUND, "sandbox: remote sandbox not found") \
	X(-136, TERMINAL_NOT_FOUND, "sandbox: terminal not found") \
	X(-137, UNSYNCED, "sandbox: work is not synced back") \
	X(-138, HOOK_DENIED, "sandbox: refused by a hook") \
	X(-139, PROFILE_NOT_FOUND, "sandbox: profile not found") \
	X(-140, SECRET, "sandbox: secret cannot be resolved") \
	X(-152, FENCED, "sandbox: fenced off by a newer token") \
	X(-141, NETWORK_POLICY, "sandbox: network policy cannot be enforced") \
	X(-151, UNTRUSTED, "sandbox: project file is not trusted")

enum sb_code {
	SB_OK = 0,
#define SB_CODE_ENUM(num, name, text) SB_E_##name = num,
	SB_CODE_MAP(SB_CODE_ENUM)
#undef SB_CODE_ENUM
};

#define SB_ERROR_MSG_MAX 512

/*
 * A failure as a value: nothing to free, copy freely. `code` is 0 or an enum sb_code, `sys` the
 * errno where one was the cause (else 0). `msg` is always NUL-terminated; too long a text loses its
 * end.
 */
struct sb_error {
	int code;
	int sys;
	char msg[SB_ERROR_MSG_MAX];
};

/*
 * Each sets `err` (NULL is allowed) and returns the code, so that a failing function can end with
 * `return sb_fail(...)`. sb_fail_errno uses the current errno, appends its text and picks the code
 * (ENOMEM, ENOSPC, EDQUOT, ENOENT, EEXIST, EACCES/EPERM, ETIMEDOUT, ECANCELED have their own).
 * sb_wrap puts context in front of the message there is and keeps the code.
 */
SB_API int sb_fail(struct sb_error *err, int code, const char *fmt, ...) SB_PRINTF(3, 4);
SB_API int sb_fail_errno(struct sb_error *err, const char *fmt, ...) SB_PRINTF(2, 3);
SB_API int sb_wrap(struct sb_error *err, int code, const char *fmt, ...) SB_PRINTF(3, 4);

/* The class text of a code ("deadline passed") and its name ("TIMEOUT"); never NULL. */
SB_API const char *sb_code_text(int code);
SB_API const char *sb_code_name(int code);

/* The code for an errno value; the mapping sb_fail_errno uses. */
SB_API int sb_code_from_errno(int sys);

#endif
