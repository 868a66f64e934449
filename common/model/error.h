/* SPDX-License-Identifier: BSD-3-Clause */
/* What is wrong: one sentence in a buffer of the caller's. */
#ifndef COMMON_MODEL_ERROR_H
#define COMMON_MODEL_ERROR_H

#include <stdbool.h>

struct error_text {
    char text[1024]; /* one sentence without a line end; empty while all is well */
};

/* Writes the sentence, with ? for control characters and for bytes that are no UTF-8, and returns
 * false, so that a check can be `return fail_with(...)`. A null `error` is allowed: the caller does
 * not want to know. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
bool fail_with(struct error_text *error, const char *format, ...);

#endif
