/* SPDX-License-Identifier: BSD-3-Clause */
/* What of JSON is easily written wrong. */
#ifndef COMMON_REPORT_JSON_H
#define COMMON_REPORT_JSON_H

#include <stdio.h>

/* In quotes, with what has to be escaped. Bytes that are no ASCII stay as they are. */
void json_text(FILE *file, const char *text);

/* Exactly; null where it is infinite or no number, which JSON does not know. */
void json_real(FILE *file, double value);

#endif
