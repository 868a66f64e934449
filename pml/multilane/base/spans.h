/* SPDX-License-Identifier: BSD-3-Clause */
/* Which bytes of a message have come: so that a part that comes twice counts once, whoever sent it
 * again, and for whatever reason. */
#ifndef MULTILANE_SPANS_H
#define MULTILANE_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More gaps than this are not left by lanes that overtake each other. */
#define SPANS_MAX 4096

struct span {
    size_t from, end;
};

/* Ascending, and no two of them touch. A zeroed one is empty. */
struct spans {
    uint32_t count;
    uint32_t room;      /* of items; 0: own is used */
    struct span *items; /* on the heap */
    struct span own[2]; /* enough for one lane */
};

/* Adds [from, end), which is not empty; *fresh is how many of its bytes were not there. False: that
 * would be too many spans, or there is no memory; nothing was added. */
bool spans_add(struct spans *spans, size_t from, size_t end, size_t *fresh);

/* Makes it empty. */
void spans_clear(struct spans *spans);

#endif
