/* SPDX-License-Identifier: MIT */
/* Which version of the library this is (declared in sb/version.h). */
#include "config.h"

#include <sb/version.h>

const char *
sb_version(void)
{
	return PACKAGE_VERSION;
}
