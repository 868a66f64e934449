/* SPDX-License-Identifier: BSD-3-Clause */
/* Moving many bytes in pieces: one mechanism for sends, gets and puts, whatever thread ends a
 * piece. */
#ifndef MULTILANE_TRANSFER_H
#define MULTILANE_TRANSFER_H

#include <stdatomic.h>

#include "common/compat/pml.h"

#include "base/pending.h"

struct transfer;

struct transfer_steps {
    /* Starts to move up to *size bytes from `offset`, sets *size to what it started, and reports
     * the end of the piece by transfer_piece_done, at once or later. LANE_AGAIN: no room now. */
    int (*start)(struct transfer *transfer, size_t offset, size_t *size);
    /* All pieces are moved, or one failed and none is under way. The transfer is its owner's again
     * and may be freed or used anew. */
    void (*finish)(struct transfer *transfer, int status);
};

/* Any thread may end a piece, and only one at a time may start pieces: the thread that raises
 * `guard` from 0 owns the transfer and works off events until it has brought guard back to 0; every
 * other thread leaves an event there and goes. So nothing is locked, nothing recurses, and a piece
 * that ends inside its own start is simply the next event. */
struct transfer {
    const struct transfer_steps *way;
    _Atomic uint32_t guard; /* ended pieces, plus TRANSFER_KICK for each wish to look again */
    _Atomic int status; /* first error; written by a thread that ends a piece, read by the owner */
    uint32_t depth;     /* pieces under way at most */
    /* The owner's: */
    uint32_t in_flight;
    size_t next; /* first byte that was not started */
    size_t end;
    struct pending pending;
};

/* Moves the bytes [from, end), up to `depth` pieces at once. Returns when they are moved or under
 * way. */
void transfer_begin(struct transfer *transfer, const struct transfer_steps *way, size_t from,
                    size_t end, uint32_t depth);

void transfer_piece_done(struct transfer *transfer, int status);

#endif
