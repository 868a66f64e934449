/* SPDX-License-Identifier: BSD-3-Clause */
/* What a unit test says when something does not hold, and chance that repeats itself. */
#ifndef TEST_UNIT_CHECK_H
#define TEST_UNIT_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __clang__ /* a test may read and write atomics without naming an order */
#pragma clang diagnostic ignored "-Watomic-implicit-seq-cst"
#endif

static unsigned check_count, check_failures;

/* CHECK(condition, format, ...): what should hold, and the values that it depends on. After some
 * failures the rest is only counted. */
#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        check_count++;                                                                             \
        if (!(condition) && check_failures++ < 20) {                                               \
            fprintf(stderr, "%s:%d: does not hold: %s: ", __FILE__, __LINE__, #condition);         \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
        }                                                                                          \
    } while (0)

/* Was the run asked to take its time (test/all --long)? */
static inline bool check_is_long(void)
{
    const char *wanted = getenv("MULTILANE_LONG");
    return wanted && *wanted;
}

/* A folder that the test made, with all in it. */
static inline void check_folder_remove(const char *folder)
{
    char command[512];

    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    CHECK(system(command) == 0, "%s", command);
}

/* The test's exit status. */
static inline int check_end(void)
{
    printf("%u checks, %u failed\n", check_count, check_failures);
    return check_failures || !check_count;
}

/* A generator with a seed of its own (xorshift64*): the same numbers on every machine. */
static inline uint64_t chance_next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545f4914f6cdd1d);
}

static inline uint64_t chance_below(uint64_t *state, uint64_t bound)
{
    return (chance_next(state) >> 11) % bound;
}

/* From 0 to below 1. */
static inline double chance_real(uint64_t *state)
{
    return (double) (chance_next(state) >> 11) * 0x1p-53;
}

#endif
