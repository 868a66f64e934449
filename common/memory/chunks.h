/* SPDX-License-Identifier: BSD-3-Clause */
/* The two ends of a ring of chunks in device memory, as their hosts see them. */
#ifndef COMMON_MEMORY_CHUNKS_H
#define COMMON_MEMORY_CHUNKS_H

#include "common/memory/chunk.h"
#include "common/memory/copier.h"

/* Chunks and how many of a ring: a message of 8 KiB is one chunk, and several are under way. */
#define CHUNK_BYTES 8192
#define RING_CHUNKS 16

/* Device memory that the receiver gives: the chunks, and behind them the line of its counter. */
#define RING_BYTES ((size_t) CHUNK_BYTES * RING_CHUNKS + CHUNK_LINE_BYTES)

/* One end. Messages go through it one after the other. */
struct chunk_end {
    struct copier *copier;
    enum copy_direction direction; /* whose stream runs its kernels */
    struct chunk_job job;
    uint64_t next;   /* number of the first chunk that was not moved */
    uint64_t *moved; /* by the last kernel: pinned, so that both see it */
    driver_event event;
};

/* `ring` is what the receiver gave, `emptied` the line of the sender's counter: where this process
 * has them mapped, and their counters cleared at first. DRIVER_SUCCESS, or what is missing. */
driver_result chunk_end_init(struct chunk_end *end, struct copier *copier, bool is_sender,
                             driver_ptr ring, driver_ptr emptied);
void chunk_end_fini(struct chunk_end *end);

/* Starts to move a message from or to device memory at this end. After an error nothing is under
 * way. */
driver_result chunk_end_start(struct chunk_end *end, driver_ptr user, size_t bytes);

/* How many chunks a message takes. */
static inline uint64_t chunks_of(size_t bytes)
{
    return (bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
}

/* DRIVER_SUCCESS: this end has moved it; DRIVER_NOT_READY: not yet, ask again. Where the kernel has
 * given up waiting for the other end it is started anew, or, if the message is not to `go_on`, that
 * is DRIVER_LAUNCH_TIMEOUT. After an error nothing is under way. */
driver_result chunk_end_test(struct chunk_end *end, bool go_on);

#endif
