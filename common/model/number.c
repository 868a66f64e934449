/* SPDX-License-Identifier: BSD-3-Clause */
/* Strict readers for the numbers that people write, and the error buffer they share. */
#include "common/model/number.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longest text that can be a number; what is longer is nonsense and is cut in messages. */
#define NUMBER_CHARS_MAX 64

size_t character_bytes(const unsigned char *text)
{
    static const uint32_t least[] = {0, 0, 0xa0, 0x800, 0x10000};
    size_t length = (*text & 0xe0) == 0xc0   ? 2
                    : (*text & 0xf0) == 0xe0 ? 3
                    : (*text & 0xf8) == 0xf0 ? 4
                                             : 0;
    uint32_t code = *text & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3fu);
    }
    bool is_good = code >= least[length] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    return is_good ? length : 0;
}

/* It quotes what came from outside, and words of the system in the user's language: what could
 * control a terminal is taken out. */
static void controls_replace(char *text)
{
    for (size_t length; *text; text += length) {
        bool is_ascii = *text >= ' ' && *text <= '~';
        length = is_ascii ? 1 : character_bytes((const unsigned char *) text);
        if (length == 0) {
            *text = '?';
            length = 1;
        }
    }
}

bool fail_with(struct error_text *error, const char *format, ...)
{
    if (error) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(error->text, sizeof error->text, format, arguments);
        va_end(arguments);
        controls_replace(error->text);
    }
    return false;
}

/* Nonsense may be of any length; a message shows its start. */
static bool number_refuse(struct error_text *error, const char *text, const char *wanted)
{
    bool cut = memchr(text, 0, 33) == NULL;
    return fail_with(error, "\"%.32s%s\" is not %s", text, cut ? "..." : "", wanted);
}

/* Of what strtod takes nothing but decimal numbers: no sign in front, no space, no inf. */
static bool is_decimal(const char *text)
{
    return (isdigit((unsigned char) *text) || *text == '.') &&
           text[strspn(text, "0123456789.eE+-")] == '\0';
}

/* strtod reads the locale's decimal point, and the program that we are loaded into may have set any
 * locale. */
static void put_locale_point(const char *text, char *out, size_t out_size)
{
    const char *point = localeconv()->decimal_point;
    const char *dot = strchr(text, '.');
    if (dot)
        snprintf(out, out_size, "%.*s%s%s", (int) (dot - text), text, point, dot + 1);
    else
        snprintf(out, out_size, "%s", text);
}

bool number_parse_real(const char *text, double *value, struct error_text *error)
{
    static const char wanted[] = "a number of 0 or more, such as 1.3e-6";
    char local[NUMBER_CHARS_MAX + 16], *end;
    if (strlen(text) > NUMBER_CHARS_MAX || !is_decimal(text))
        return number_refuse(error, text, wanted);
    put_locale_point(text, local, sizeof local);
    double read = strtod(local, &end);
    if (end == local || *end)
        return number_refuse(error, text, wanted);
    if (!isfinite(read))
        return number_refuse(error, text, "a number that a double can hold");
    *value = read;
    return true;
}

/* Digits only, no overflow; *end is what follows them. */
static bool parse_digits(const char *text, uint64_t *value, const char **end)
{
    char *behind;
    if (!isdigit((unsigned char) *text))
        return false;
    errno = 0;
    *value = strtoull(text, &behind, 10);
    *end = behind;
    return errno == 0;
}

/* The shift of a suffix, 0 without one, below 0 for what is none. */
static int suffix_shift(const char *suffix)
{
    static const char letters[] = "kmgt";
    if (!*suffix)
        return 0;
    const char *found = strchr(letters, tolower((unsigned char) *suffix));
    return found && !suffix[1] ? 10 * (int) (found - letters + 1) : -1;
}

bool number_parse_size(const char *text, uint64_t *value, struct error_text *error)
{
    static const char wanted[] = "a size of at most 2^64-1 bytes, such as 4096, 64k or inf";
    if (!strcmp(text, "inf")) {
        *value = UINT64_MAX;
        return true;
    }
    uint64_t read;
    const char *suffix;
    if (!parse_digits(text, &read, &suffix))
        return number_refuse(error, text, wanted);
    int shift = suffix_shift(suffix);
    if (shift < 0 || read > UINT64_MAX >> shift)
        return number_refuse(error, text, wanted);
    *value = read << shift;
    return true;
}

bool number_parse_count(const char *text, uint64_t least, uint64_t most, uint64_t *value,
                        struct error_text *error)
{
    uint64_t read;
    const char *end;
    if (parse_digits(text, &read, &end) && !*end && read >= least && read <= most) {
        *value = read;
        return true;
    }
    char wanted[80];
    snprintf(wanted, sizeof wanted, "a whole number from %llu to %llu", (unsigned long long) least,
             (unsigned long long) most);
    return number_refuse(error, text, wanted);
}

bool number_parse_range(const char *text, uint64_t *first, uint64_t *last, struct error_text *error)
{
    static const char wanted[] = "a range of sizes, such as 4k-64k or 1m-inf";
    char low[NUMBER_CHARS_MAX + 1];
    const char *dash = strchr(text, '-');
    size_t low_chars = dash ? (size_t) (dash - text) : strlen(text);
    if (low_chars > NUMBER_CHARS_MAX)
        return number_refuse(error, text, wanted);
    memcpy(low, text, low_chars);
    low[low_chars] = 0;
    uint64_t from, to;
    if (!number_parse_size(low, &from, NULL) ||
        !number_parse_size(dash ? dash + 1 : low, &to, NULL))
        return number_refuse(error, text, wanted);
    if (from > to)
        return number_refuse(error, text, "a range of sizes whose first is not above its last");
    *first = from;
    *last = to;
    return true;
}

bool text_list_has(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (; *list; list += strcspn(list, ","), list += *list == ',')
        if (strcspn(list, ",") == length && strncmp(list, word, length) == 0)
            return true;
    return false;
}

static void append(char *text, size_t size, const char *format, va_list arguments)
{
    size_t length = strlen(text);
    vsnprintf(text + length, size - length, format, arguments);
}

void text_more(char *text, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    append(text, size, format, arguments);
    va_end(arguments);
}

void words_more(struct words *words, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    append(words->text, sizeof(words->text), format, arguments);
    va_end(arguments);
}

struct words words_of(const char *format, ...)
{
    struct words words = {""};
    va_list arguments;
    va_start(arguments, format);
    append(words.text, sizeof(words.text), format, arguments);
    va_end(arguments);
    return words;
}

static int by_value(const void *one, const void *other)
{
    double a = *(const double *) one, b = *(const double *) other;
    return (a > b) - (a < b);
}

double number_median(double *values, uint32_t count)
{
    qsort(values, count, sizeof(values[0]), by_value);
    return values[(count - 1) / 2];
}

struct words number_size(uint64_t bytes)
{
    static const char suffixes[] = " kmgt";
    int step = 0;
    if (bytes == UINT64_MAX)
        return words_of("inf");
    while (bytes && step < 4 && bytes % 1024 == 0) {
        bytes /= 1024;
        step++;
    }
    return words_of("%llu%.*s", (unsigned long long) bytes, step > 0, suffixes + step);
}

struct words number_real(double value)
{
    struct words out = words_of("%.15g", value);
    for (int digits = 16; digits <= 17 && strtod(out.text, NULL) != value; digits++)
        out = words_of("%.*g", digits, value);
    return out;
}

struct words number_time(double seconds)
{
    static const struct {
        double unit_s;
        const char *name;
    } units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
    int unit = 0;
    if (seconds == 0)
        return words_of("0s");
    while (unit < 3 && seconds < units[unit].unit_s)
        unit++;
    return words_of("%.4g%s", seconds / units[unit].unit_s, units[unit].name);
}
