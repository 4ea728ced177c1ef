/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sb/version.h>

const char *
sb_version(void)
{
	return PACKAGE_VERSION;
}
