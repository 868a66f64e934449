/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes values of JSON. */
#include "common/report/json.h"

#include <math.h>

#include "common/model/number.h"

void json_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text; text++) {
        unsigned char c = (unsigned char) *text;
        if (c < 0x20 || c == '"' || c == '\\')
            fprintf(file, "\\u%04x", c);
        else
            fputc(c, file);
    }
    fputc('"', file);
}

void json_real(FILE *file, double value)
{
    fputs(isfinite(value) ? number_real(value).text : "null", file);
}
