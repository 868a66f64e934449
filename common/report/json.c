/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of JSON. */
#include "common/report/json.h"

#include <math.h>
#include <stdio.h>

#define ESCAPED_CHARS 6 /* of one byte, at most */

struct json_text json_text(const char *text)
{
    struct json_text json = {"\""};
    size_t length = 1;
    for (; *text && length + ESCAPED_CHARS + 2 <= sizeof(json.text); text++) {
        unsigned char c = (unsigned char) *text;
        if (c < 0x20 || c == '"' || c == '\\')
            length += (size_t) snprintf(json.text + length, ESCAPED_CHARS + 1, "\\u%04x", c);
        else
            json.text[length++] = *text;
    }
    json.text[length] = '"';
    return json;
}

struct words json_real(double value)
{
    return isfinite(value) ? number_real(value) : words_of("null");
}
