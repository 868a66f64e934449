/* SPDX-License-Identifier: BSD-3-Clause */
/* Strict readers for the numbers that people write: what is not wholly a number is refused. */
#ifndef COMMON_MODEL_NUMBER_H
#define COMMON_MODEL_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/error.h"

/* All of them return false and say why in *error (which may be null) when `text` is not exactly
 * what they read; *value is then untouched. White space is not skipped. None depends on the locale.
 */

/* A decimal real, 0 or more, finite: "12.5e9", "0.99", ".5". Hexadecimal, "inf", "nan", signs in
 * front and what a double can only hold as infinity are refused. */
bool number_parse_real(const char *text, double *value, struct error_text *error);

/* Bytes: a whole number with one of k, m, g, t (powers of 1024, either case) after it or none;
 * "inf" is UINT64_MAX. What does not fit 64 bits is refused. */
bool number_parse_size(const char *text, uint64_t *value, struct error_text *error);

/* A count without suffix, from `least` to `most`. */
bool number_parse_count(const char *text, uint64_t least, uint64_t most, uint64_t *value,
                        struct error_text *error);

/* "LO-HI", two sizes, both included, LO not above HI; a single size is a range of one. */
bool number_parse_range(const char *text, uint64_t *first, uint64_t *last,
                        struct error_text *error);

/* What makes a word plural that so many are counted by: "s", but for one "". */
static inline const char *number_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* Of a character of UTF-8 that has several bytes and controls no terminal: their number; else 0. */
size_t character_bytes(const unsigned char *text);

/* Is this word one of the list's, between commas? */
bool text_list_has(const char *list, const char *word);

/* Appends to a text, which ends and fits whatever is appended. */
__attribute__((format(printf, 3, 4))) void text_more(char *text, size_t size, const char *format,
                                                     ...);

/* Some words, for one call: words_of("rank %u", rank).text. Cut where they do not fit. */
struct words {
    char text[1024];
};

__attribute__((format(printf, 1, 2))) struct words words_of(const char *format, ...);
__attribute__((format(printf, 2, 3))) void words_more(struct words *words, const char *format, ...);

/* The value in the middle, the lower of two, of at least one; sorts them. */
double number_median(double *values, uint32_t count);

/* Bytes as people say them, exactly: "4k", "3951429", "inf". */
struct words number_size(uint64_t bytes);

/* The shortest decimal that reads as this very double: "0.99", "1.4e-12". */
struct words number_real(double value);

/* Seconds with a fitting unit, four digits: "1.3us". */
struct words number_time(double seconds);

#endif
