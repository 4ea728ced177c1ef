/* SPDX-License-Identifier: MIT */
/* Error codes with their names and texts, and how a message is built (declared in sb/error.h). */
#include "config.h"

#include <sb/error.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	int code;
	const char *name;
	const char *text;
} codes[] = { { 0, "OK", "no error" },
#define SB_CODE_ROW(num, name, text) { num, #name, text },
	SB_CODE_MAP(SB_CODE_ROW)
#undef SB_CODE_ROW
};

int
sb_fail(struct sb_error *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return code;
	err->code = code;
	err->sys = 0;
	va_start(ap, fmt);
	(void)vsnprintf(err->msg, sizeof err->msg, fmt, ap);
	va_end(ap);
	return code;
}

int
sb_code_from_errno(int sys)
{
	switch (sys) {
	case ENOMEM: return SB_E_NOMEM;
	case ENOSPC: return SB_E_NOSPACE;
	case EDQUOT: return SB_E_NOSPACE;
	case E2BIG: return SB_E_INVAL; /* what the caller gave is more than a command line holds */
	case ENOENT: return SB_E_NOTFOUND;
	case EEXIST: return SB_E_EXISTS;
	case EACCES: return SB_E_DENIED;
	case EPERM: return SB_E_DENIED;
	case EROFS: return SB_E_DENIED;
	case ETIMEDOUT: return SB_E_TIMEOUT;
	case ECANCELED: return SB_E_CANCELED;
	default: return SB_E_SYS;
	}
}

int
sb_fail_errno(struct sb_error *err, const char *fmt, ...)
{
	int sys = errno;
	int code = sb_code_from_errno(sys);
	char why[128];
	va_list ap;
	int n;

	if (!err)
		return code;
	err->code = code;
	err->sys = sys;
	va_start(ap, fmt);
	n = vsnprintf(err->msg, sizeof err->msg, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof err->msg)
		(void)snprintf(err->msg + n, sizeof err->msg - (size_t)n, ": %s",
			strerror_r(sys, why, sizeof why));
	errno = sys;
	return code;
}

/* Adds ": " and `text` behind the first `at` bytes of the message, as far as there is room. */
static void
append(struct sb_error *err, size_t at, const char *text)
{
	for (const char *p = ": "; *p && at < sizeof err->msg - 1; p++)
		err->msg[at++] = *p;
	while (*text && at < sizeof err->msg - 1)
		err->msg[at++] = *text++;
	err->msg[at] = 0;
}

int
sb_wrap(struct sb_error *err, int code, const char *fmt, ...)
{
	char old[SB_ERROR_MSG_MAX];
	va_list ap;
	int n;

	if (!err)
		return code;
	memcpy(old, err->msg, sizeof old);
	va_start(ap, fmt);
	n = vsnprintf(err->msg, sizeof err->msg, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof err->msg)
		append(err, (size_t)n, old);
	err->code = code;
	return code;
}

const char *
sb_code_text(int code)
{
	for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
		if (codes[i].code == code)
			return codes[i].text;
	return "unknown error";
}

const char *
sb_code_name(int code)
{
	for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
		if (codes[i].code == code)
			return codes[i].name;
	return "UNKNOWN";
}
