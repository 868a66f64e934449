/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes JSON. */
#include "common/report/json.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "common/model/number.h"

void json_put(struct json *json, const char *format, ...)
{
    const char first = format[0], last = format[strlen(format) - 1];
    va_list arguments;
    if (json->needs_comma && first != ']' && first != '}')
        fputs(first == '{' ? ",\n" : ", ", json->file);
    va_start(arguments, format);
    vfprintf(json->file, format, arguments);
    va_end(arguments);
    json->needs_comma = last != '[' && last != '{';
}

#define ESCAPED_CHARS 6 /* of one byte, at most */

struct json_text json_text(const char *text)
{
    struct json_text json = {"\""};
    size_t length = 1;
    for (; *text && length + ESCAPED_CHARS + 2 <= sizeof(json.text); text++) {
        unsigned char c = (unsigned char) *text;
        size_t bytes = character_bytes((const unsigned char *) text);
        if (c < 0x20 || c == '"' || c == '\\') {
            length += (size_t) snprintf(json.text + length, ESCAPED_CHARS + 1, "\\u%04x", c);
        } else if (bytes > 1) {
            memcpy(json.text + length, text, bytes);
            length += bytes;
            text += bytes - 1;
        } else {
            json.text[length++] = c < 0x80 ? *text : '?';
        }
    }
    json.text[length] = '"';
    return json;
}

struct words json_real(double value)
{
    return isfinite(value) ? number_real(value) : words_of("null");
}
