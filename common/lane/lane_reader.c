/* SPDX-License-Identifier: BSD-3-Clause */
/* What every key of a lane file is read with. */
#include "common/lane/lane_reader.h"

#include <stdio.h>
#include <string.h>

#include "common/model/number.h"

/* --- complaints ------------------------------------------------------------------------------- */

/* "FILE:LINE: [lane fast] bandwidth = -1: " and what is wrong with it */
bool reader_refuse_value(struct reader *reader, const char *key, const char *value, const char *why)
{
    return model_fail(reader->error, "%.80s:%u: %s%.40s%s%s = %.40s: %s", reader->name,
                      reader->line, reader->title[0] ? "[" : "", reader->title,
                      reader->title[0] ? "] " : "", key, value, why);
}

bool reader_refuse_line(struct reader *reader, const char *what, const char *shown)
{
    return model_fail(reader->error, "%.80s:%u: %s%s%.60s%s", reader->name, reader->line, what,
                      shown ? " \"" : "", shown ? shown : "", shown ? "\"" : "");
}

/* --- values ----------------------------------------------------------------------------------- */

bool reader_read_real(struct reader *reader, const char *value, const struct key *key, double *out)
{
    struct model_error why;
    return number_parse_real(value, out, &why) ||
           reader_refuse_value(reader, key->name, value, why.text);
}

bool reader_read_count(struct reader *reader, const char *value, const struct key *key,
                       uint64_t least, uint64_t most, uint32_t *out)
{
    struct model_error why;
    uint64_t read;
    if (!number_parse_count(value, least, most, &read, &why))
        return reader_refuse_value(reader, key->name, value, why.text);
    *out = (uint32_t) read;
    return true;
}

bool reader_read_size(struct reader *reader, const char *value, const struct key *key,
                      uint64_t *out)
{
    struct model_error why;
    return number_parse_size(value, out, &why) ||
           reader_refuse_value(reader, key->name, value, why.text);
}

static char *stored_at(struct reader *reader, const struct key *key)
{
    char *base = reader->section == SECTION_LANE ? (char *) reader->lane : (char *) reader->file;
    return base + key->offset;
}

bool reader_store_count(struct reader *reader, const char *value, const struct key *key)
{
    return reader_read_count(reader, value, key, 0, 1000000,
                             (uint32_t *) (void *) stored_at(reader, key));
}

bool reader_store_size(struct reader *reader, const char *value, const struct key *key)
{
    return reader_read_size(reader, value, key, (uint64_t *) (void *) stored_at(reader, key));
}

/* Words between commas or spaces; `name_of` names the bits. */
bool reader_read_bits(struct reader *reader, const char *value, const struct key *key,
                      const char *(*name_of)(uint32_t bit), int bit_count, uint32_t *out)
{
    char copy[LINE_CHARS_MAX], known[160] = "";
    uint32_t bits = 0;
    snprintf(copy, sizeof copy, "%s", value);
    char *rest;
    for (char *word = strtok_r(copy, ", \t", &rest); word; word = strtok_r(NULL, ", \t", &rest)) {
        int bit = 0;
        while (bit < bit_count && strcmp(word, name_of(UINT32_C(1) << bit)))
            bit++;
        if (bit == bit_count) {
            for (int i = 0; i < bit_count; i++) {
                size_t length = strlen(known);
                snprintf(known + length, sizeof known - length, "%s%s", i ? ", " : "known are ",
                         name_of(UINT32_C(1) << i));
            }
            return reader_refuse_value(reader, key->name, value, known);
        }
        bits |= UINT32_C(1) << bit;
    }
    *out = bits;
    return true;
}
