/* SPDX-License-Identifier: BSD-3-Clause */
/* Which bytes of a message have arrived, so that a part that arrives twice counts once. */
#ifndef MULTILANE_SPANS_H
#define MULTILANE_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lanes that overtake each other leave fewer gaps than this. */
#define SPANS_MAX 4096

struct span {
    size_t from, end;
};

/* Ascending; no two touch each other. Zeroed, it is empty. */
struct spans {
    uint32_t count;
    uint32_t room;      /* of items; 0: own is used */
    struct span *items; /* on the heap */
    struct span own[2]; /* enough for one lane */
};

/* Adds [from, end), which is not empty; *fresh is how many of its bytes are new. False: too many
 * spans, or no memory; nothing was added. */
bool spans_add(struct spans *spans, size_t from, size_t end, size_t *fresh);

void spans_clear(struct spans *spans);

#endif
