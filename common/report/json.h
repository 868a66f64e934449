/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes JSON, and the commas in it. Texts and numbers are made for one call: json_text(name).text.
 */
#ifndef COMMON_REPORT_JSON_H
#define COMMON_REPORT_JSON_H

#include <stdbool.h>
#include <stdio.h>

#include "common/model/number.h"

struct json {
    FILE *file;
    bool needs_comma; /* before the next member or element */
};

/* Members or elements, or what begins or ends an object or a list. Only within one call the caller
 * writes the commas; an object begins a line. */
__attribute__((format(printf, 2, 3))) void json_put(struct json *json, const char *format, ...);

struct json_text {
    char text[8192];
};

/* In quotes, with what has to be escaped. Bytes that are no ASCII stay as they are. What does not
 * fit is left out. */
struct json_text json_text(const char *text);

/* Exactly; null where it is infinite or no number, which JSON does not know. */
struct words json_real(double value);

static inline const char *json_bool(bool value)
{
    return value ? "true" : "false";
}

#endif
