/* SPDX-License-Identifier: BSD-3-Clause */
/* Moves many bytes in pieces: one mechanism for sends, gets and puts, and for any number of
 * threads. */
#ifndef MULTILANE_TRANSFER_H
#define MULTILANE_TRANSFER_H

#include "common/compat/pml.h"

#include "base/pending.h"

/* Where pieces end within their start, as copies do, all else of the process waits meanwhile: after
 * so many bytes it has its turn. */
#define TRANSFER_TURN_BYTES ((size_t) 16 << 20)

struct transfer;

struct transfer_steps {
    /* Starts a piece of up to *size bytes at `offset`, sets *size to what it started, and calls
     * transfer_piece_done for it, at once or later. LANE_AGAIN: no room now. */
    int (*start)(struct transfer *transfer, size_t offset, size_t *size);
    /* All pieces are moved, or one failed and no other is under way. The transfer may be freed
     * or used again. */
    void (*finish)(struct transfer *transfer, int status);
};

/* Any thread may end a piece; one thread at a time may start pieces. The thread that raises
 * `guard` from 0 is the owner: it handles events until it has brought `guard` back to 0. Every
 * other thread adds its event to `guard` and leaves. So there is no lock and no recursion: a
 * piece that ends inside its own start is the next event. */
struct transfer {
    const struct transfer_steps *way;
    _Atomic uint32_t guard; /* ended pieces, plus TRANSFER_KICK for each wish to try again */
    _Atomic int status;     /* the first error; relaxed: `guard` orders it */
    uint32_t depth;         /* most pieces under way */
    /* Of the owner alone: */
    uint32_t in_flight;
    size_t next; /* first byte not started */
    size_t end;
    struct pending pending;
};

/* Moves the first `end` bytes, with up to `depth` pieces under way. */
void transfer_begin(struct transfer *transfer, const struct transfer_steps *way, size_t end,
                    uint32_t depth);

void transfer_piece_done(struct transfer *transfer, int status);

#endif
