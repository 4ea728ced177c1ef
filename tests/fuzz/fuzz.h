/* SPDX-License-Identifier: MIT */
#ifndef SB_TESTS_FUZZ_H
#define SB_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/*
 * What every target defines; libFuzzer or replay.c calls it. Returns 0. The bytes are only
 * borrowed.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A property that must hold for every input. Unlike assert it is there in every build. */
#define FUZZ_CHECK(cond) \
	do { \
		if (!(cond)) \
			abort(); \
	} while (0)

#endif
