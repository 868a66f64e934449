/* SPDX-License-Identifier: BSD-3-Clause */
/* What the number readers take and refuse, and that sums without rounding do not round. */
#include <float.h>
#include <locale.h>
#include <math.h>
#include <string.h>

#include "check.h"
#include "tools/model/exact.h"
#include "common/model/number.h"

static void reals_are_read_or_refused(void)
{
    static const struct {
        const char *text;
        double value; /* below 0: refused */
    } cases[] = {
        {"0", 0},      {"1.3e-6", 1.3e-6}, {"12.5e9", 12.5e9}, {".5", .5},         {"5.", 5},
        {"1E3", 1000}, {"1e+3", 1000},     {"0.99", 0.99},     {"4e-324", 5e-324}, {"1e308", 1e308},
        {"", -1},      {".", -1},          {"e5", -1},         {"1e", -1},         {"1e+", -1},
        {"-1", -1},    {"+1", -1},         {"nan", -1},        {"inf", -1},        {"infinity", -1},
        {"0x10", -1},  {"1e999", -1},      {"1.2.3", -1},      {"1 ", -1},         {" 1", -1},
        {"1,5", -1},   {"abc", -1},        {"1k", -1},         {"1e5e5", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error_text error = {""};
        double value = -7;
        bool read = number_parse_real(cases[i].text, &value, &error);
        CHECK(read == (cases[i].value >= 0), "\"%s\": %s", cases[i].text, error.text);
        CHECK(value == (read ? cases[i].value : -7), "\"%s\" gave %g", cases[i].text, value);
        CHECK(read || strstr(error.text, cases[i].text), "\"%s\": %s", cases[i].text, error.text);
    }
}

static void sizes_are_read_or_refused(void)
{
    static const struct {
        const char *text;
        uint64_t value;
        bool good;
    } cases[] = {{"0", 0, true},
                 {"4096", 4096, true},
                 {"4k", 4096, true},
                 {"4K", 4096, true},
                 {"3m", 3145728, true},
                 {"1g", UINT64_C(1) << 30, true},
                 {"2t", UINT64_C(2) << 40, true},
                 {"inf", UINT64_MAX, true},
                 {"18446744073709551615", UINT64_MAX, true},
                 {"18446744073709551616", 0, false},
                 {"18014398509481983k", (UINT64_MAX >> 10) << 10, true},
                 {"18014398509481984k", 0, false},
                 {"", 0, false},
                 {"k", 0, false},
                 {"4kk", 0, false},
                 {"4kb", 0, false},
                 {"-1", 0, false},
                 {"1.5k", 0, false},
                 {"abc", 0, false},
                 {"Inf", 0, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t value = 7;
        bool read = number_parse_size(cases[i].text, &value, NULL);
        CHECK(read == cases[i].good, "\"%s\"", cases[i].text);
        CHECK(value == (read ? cases[i].value : 7), "\"%s\" gave %llu", cases[i].text,
              (unsigned long long) value);
    }
}

static void printed_sizes_read_back(void)
{
    uint64_t chance = 11, back;
    for (int i = 0; i < 20000; i++) {
        uint64_t bytes = chance_next(&chance);
        bytes >>= chance_below(&chance, 64);
        bytes <<= chance_below(&chance, 40);
        CHECK(number_parse_size(number_size(bytes).text, &back, NULL) && back == bytes,
              "%llu was printed as %s", (unsigned long long) bytes, number_size(bytes).text);
    }
}

static void printed_reals_read_back(void)
{
    uint64_t chance = 12;
    for (int i = 0; i < 20000; i++) {
        int exponent = (int) chance_below(&chance, 600) - 300;
        double value = ldexp(chance_real(&chance), exponent), back;
        CHECK(number_parse_real(number_real(value).text, &back, NULL) && back == value,
              "%a was printed as %s", value, number_real(value).text);
    }
}

static void ranges_are_read_or_refused(void)
{
    uint64_t first, last;
    CHECK(number_parse_range("4k-64k", &first, &last, NULL) && first == 4096 && last == 65536,
          "4k-64k");
    CHECK(number_parse_range("1m-inf", &first, &last, NULL) && last == UINT64_MAX, "1m-inf");
    CHECK(number_parse_range("7", &first, &last, NULL) && first == 7 && last == 7, "7");
    static const char *const bad[] = {"", "-", "4k-", "-4k", "64k-4k", "1-2-3", "a-b", "inf-1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(!number_parse_range(bad[i], &first, &last, NULL), "\"%s\" is no range", bad[i]);
}

/* The program that we are loaded into may use a locale whose decimal point is a comma. */
static void locale_does_not_matter(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C.UTF-8"};
    double value = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (setlocale(LC_ALL, names[i])) {
            CHECK(number_parse_real("1.25", &value, NULL) && value == 1.25, "in %s", names[i]);
            CHECK(!number_parse_real("1,25", &value, NULL), "in %s", names[i]);
        }
    setlocale(LC_ALL, "C");
}

/* Words of the system come in the user's language; what could control a terminal is taken out. */
static void errors_keep_letters_and_nothing_that_controls(void)
{
    static const struct {
        const char *is, *becomes;
    } cases[] = {
        {"Nicht genug Speicher f\xc3\xbcr Gr\xc3\xb6\xc3\x9f"
         "e",
         "Nicht genug Speicher f\xc3\xbcr Gr\xc3\xb6\xc3\x9f"
         "e"},
        {"\xe3\x83\xa1\xf0\x9f\x9a\x80.", "\xe3\x83\xa1\xf0\x9f\x9a\x80."},
        {"a\033[31mb\nc\x7f", "a?[31mb?c?"},
        {"\xc2\x9b"
         "31m",
         "??31m"},                /* the same as \033[ */
        {"f\xfcr \xc3", "f?r ?"}, /* of another encoding, and cut off */
        {"\xc0\xaf \xe0\x80\xaf \xf0\x80\x80\xaf", "?? ??? ????"}, /* longer than need be */
        {"\xed\xa0\x80 \xf4\x90\x80\x80 \xf8\x88\x80\x80\x80", "??? ???? ?????"}};
    struct error_text why;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fail_with(&why, "%s", cases[i].is);
        CHECK(strcmp(why.text, cases[i].becomes) == 0, "case %zu: %s", i, why.text);
    }
}

static double chance_double(uint64_t *chance)
{
    int exponent = (int) chance_below(chance, 2040) - 1074;
    double value = ldexp(1 + chance_real(chance), exponent);
    return chance_below(chance, 2) ? value : -value;
}

/* (a + b) * (a - b) == a * a - b * b holds only without rounding, whatever the exponents. */
static void exact_keeps_every_bit(void)
{
    uint64_t chance = 13;
    for (int i = 0; i < 20000; i++) {
        double a = chance_double(&chance), b = chance_double(&chance);
        struct exact number_a, number_b, sum, difference, left, right, square;
        exact_set(&number_a, a);
        exact_set(&number_b, b);
        sum = number_a;
        exact_add(&sum, &number_b);
        difference = number_a;
        exact_add_double(&difference, -b);
        exact_multiply(&left, &sum, &difference);
        exact_multiply(&right, &number_a, &number_a);
        exact_multiply(&square, &number_b, &number_b);
        exact_negate(&square);
        exact_add(&right, &square);
        exact_negate(&right);
        exact_add(&left, &right);
        CHECK(exact_sign(&left) == 0, "%a and %a", a, b);
        exact_add_double(&left, DBL_TRUE_MIN);
        CHECK(exact_sign(&left) == 1, "%a and %a", a, b);
    }
}

static void exact_signs_are_those_of_whole_numbers(void)
{
    uint64_t chance = 14;
    for (int i = 0; i < 50000; i++) {
        int64_t slope = (int64_t) chance_below(&chance, 2000001) - 1000000;
        int64_t size = (int64_t) chance_below(&chance, 1000000);
        int64_t offset = -slope * size + (int64_t) chance_below(&chance, 3) - 1;
        struct exact exact_offset, exact_slope;
        exact_set(&exact_offset, (double) offset);
        exact_set(&exact_slope, (double) slope);
        int64_t value = offset + slope * size;
        CHECK(exact_sign_at(&exact_offset, &exact_slope, (uint64_t) size) ==
                  (value > 0) - (value < 0),
              "%lld + %lld * %lld", (long long) offset, (long long) slope, (long long) size);
    }
}

int main(void)
{
    reals_are_read_or_refused();
    sizes_are_read_or_refused();
    printed_sizes_read_back();
    printed_reals_read_back();
    ranges_are_read_or_refused();
    locale_does_not_matter();
    errors_keep_letters_and_nothing_that_controls();
    exact_keeps_every_bit();
    exact_signs_are_those_of_whole_numbers();
    return check_end();
}
