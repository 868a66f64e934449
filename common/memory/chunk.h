/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring of chunks in device memory, as its kernels see it: the same text is compiled for the
 * device (kernels.cu) and, for tests without one, for the processor.
 *
 * Two counters that only grow, each on a line of its own in the memory of the end that waits for
 * it: `filled` with the receiver, `emptied` with the sender. So neither end looks again and again
 * at memory that is far. Nothing is reset between messages or kernels. A kernel waits for a counter
 * a bounded number of looks and then ends, having said how far it got: of two kernels that wait for
 * each other on one device only one may be running. */
#ifndef COMMON_MEMORY_CHUNK_H
#define COMMON_MEMORY_CHUNK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/memory/pack.h"

/* The file that includes this for the device says how counters are read and written, for all that
 * use the device's memory or have it mapped, and how the threads of a block meet. As functions of C
 * a block is one thread. */
#ifndef KERNEL_BARRIER
#define KERNEL_BARRIER()
#define KERNEL_SHARED static __thread
#define KERNEL_ACQUIRE(address)                                                                    \
    __atomic_load_n(KERNEL_PLACE(const uint64_t, address), __ATOMIC_ACQUIRE)
#define KERNEL_RELEASE(address, value)                                                             \
    __atomic_store_n(KERNEL_PLACE(uint64_t, address), value, __ATOMIC_RELEASE)
#endif

/* Each counter has a line of its own. */
#define CHUNK_LINE_BYTES 128

/* What one end is to move, from the chunk of that number on; both ends count all chunks since the
 * ring was made. */
struct chunk_job {
    uint64_t user;   /* the message's bytes, at this end */
    uint64_t bytes;  /* of the message from there on */
    uint64_t chunks; /* the ring, in the receiver's memory */
    uint64_t waits;  /* the counter that this end waits for, in its own memory */
    uint64_t tells;  /* the one that the other end waits for, in the other's */
    uint64_t first;  /* number of the first chunk */
    uint64_t moved;  /* where the number of chunks moved is written */
    uint32_t chunk_bytes, ring_chunks;
    uint32_t looks; /* at a counter, before the kernel gives up */
    uint32_t is_sender;
};

KERNEL_FUNCTION uint64_t chunk_count(const struct chunk_job *job)
{
    return (job->bytes + job->chunk_bytes - 1) / job->chunk_bytes;
}

/* May chunk `number` be touched by this end now? The sender needs one that was emptied as often as
 * the ring has gone round, the receiver one that was filled. */
KERNEL_FUNCTION bool chunk_await(const struct chunk_job *job, uint64_t number)
{
    uint64_t ahead = job->is_sender ? job->ring_chunks : 0;
    for (uint32_t look = 0; look < job->looks; look++)
        if (KERNEL_ACQUIRE(job->waits) + ahead > number)
            return true;
    return false;
}

/* One thread's part of a chunk. */
KERNEL_FUNCTION void chunk_copy(uint64_t to, uint64_t from, uint64_t bytes, uint32_t thread,
                                uint32_t threads)
{
    uint64_t bits = to | from | 8;
    uint32_t word = (uint32_t) (bits & (~bits + 1));
    uint64_t words = bytes / word;
    for (uint64_t i = thread; i < words; i += threads)
        pack_copy_word(to + i * word, from + i * word, word);
    for (uint64_t i = words * word + thread; i < bytes; i += threads)
        pack_copy_word(to + i, from + i, 1);
}

KERNEL_FUNCTION void chunk_move(const struct chunk_job *job, uint64_t number, uint32_t thread,
                                uint32_t threads)
{
    uint64_t done = (number - job->first) * job->chunk_bytes, left = job->bytes - done;
    uint64_t bytes = left < job->chunk_bytes ? left : job->chunk_bytes;
    uint64_t user = job->user + done;
    uint64_t chunk = job->chunks + number % job->ring_chunks * job->chunk_bytes;
    if (job->is_sender)
        chunk_copy(chunk, user, bytes, thread, threads);
    else
        chunk_copy(user, chunk, bytes, thread, threads);
}

/* One block does it all, chunk after chunk. True: all of it; every thread is told. */
KERNEL_FUNCTION bool chunk_run(const struct chunk_job *job, uint32_t thread, uint32_t threads)
{
    KERNEL_SHARED bool goes_on;
    uint64_t number = job->first, end = number + chunk_count(job);
    for (; number < end; number++) {
        if (thread == 0)
            goes_on = chunk_await(job, number);
        KERNEL_BARRIER(); /* and the acquire is for all of them */
        if (!goes_on)
            break;
        chunk_move(job, number, thread, threads);
        KERNEL_BARRIER(); /* all have moved their part: the release is for all of them */
        if (thread == 0)
            KERNEL_RELEASE(job->tells, number + 1);
    }
    if (thread == 0)
        KERNEL_RELEASE(job->moved, number - job->first);
    return number == end;
}

#endif
