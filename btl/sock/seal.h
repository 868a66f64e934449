/* SPDX-License-Identifier: BSD-3-Clause */
/* A keyed hash, SipHash-2-4 with 128 bits of result: who knows the key can make it, and no other.
 * Greetings carry it, so that no byte of a stranger is believed. */
#ifndef MULTILANE_SOCK_SEAL_H
#define MULTILANE_SOCK_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seal {
    uint64_t words[2];
};

/* Of `length` bytes, by the key. */
struct seal seal_make(const struct seal *key, const void *bytes, size_t length);

/* In a time that tells nothing of where they differ. */
bool seals_equal(const struct seal *a, const struct seal *b);

#endif
