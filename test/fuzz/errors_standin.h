/* SPDX-License-Identifier: BSD-3-Clause */
/* What the fuzzer learns of failed lanes. */
#ifndef TEST_FUZZ_ERRORS_STANDIN_H
#define TEST_FUZZ_ERRORS_STANDIN_H

#include <stdint.h>

extern uint64_t errors_standin_count;

#endif
