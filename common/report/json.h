/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts and numbers as values of JSON, for one call: json_text(name).text. */
#ifndef COMMON_REPORT_JSON_H
#define COMMON_REPORT_JSON_H

#include "common/model/number.h"

struct json_text {
    char text[8192];
};

/* In quotes, with what has to be escaped. Bytes that are no ASCII stay as they are. What does not
 * fit is left out. */
struct json_text json_text(const char *text);

/* Exactly; null where it is infinite or no number, which JSON does not know. */
struct words json_real(double value);

#endif
