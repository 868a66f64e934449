/* SPDX-License-Identifier: BSD-3-Clause */
/* One end of a ring of chunks, as the kernel of test/bench/device_ring sees it: the same text is
 * compiled for the device (device_ring.cu) and, for tests without one, for the processor
 * (test/fake/cuda.c).
 *
 * Each block has a ring of its own and waits for none of its kernel. What an end waits for only
 * ever grows, so nothing is reset between chunks. With dual state each end waits for a counter in
 * its own memory, which the other one writes; with single state both wait for the word of a chunk,
 * which lies with the chunk. Each signal has a line of its own. */
#ifndef TEST_BENCH_DEVICE_RING_H
#define TEST_BENCH_DEVICE_RING_H

#include <stdbool.h>
#include <stdint.h>

#define RING_LINE_BYTES 128

struct ring_job {
    uint64_t user;          /* the bytes at this end; those of a block lie together */
    uint64_t chunks;        /* the rings of all blocks */
    uint64_t waits, tells;  /* the first line that this end waits for, and that it writes */
    uint64_t moved;         /* uint64_t[blocks]: chunks moved, written at the end */
    uint64_t first, count;  /* number of the first chunk, and how many */
    uint32_t blocks, depth; /* chunks of a block's ring */
    uint32_t chunk_bytes;   /* a multiple of 16 */
    uint32_t looks;         /* at a signal, before the kernel gives up */
    uint32_t is_sender, is_single;
};

struct ring_word {
    uint64_t half[2];
} __attribute__((aligned(16)));

/* The kernel, for a file that says how memory is reached and how the threads of a block meet. */
#ifdef KERNEL_PLACE
/* Signals of chunk `number`: the line, and the value to wait for or to write. */
KERNEL_FUNCTION uint64_t ring_line(const struct ring_job *job, uint32_t block, uint64_t number)
{
    return ((uint64_t) block * job->depth + (job->is_single ? number % job->depth : 0)) *
           RING_LINE_BYTES;
}

KERNEL_FUNCTION uint64_t ring_wanted(const struct ring_job *job, uint64_t number)
{
    if (job->is_single)
        return number / job->depth * 2 + !job->is_sender;
    if (!job->is_sender)
        return number + 1;
    return number < job->depth ? 0 : number + 1 - job->depth;
}

KERNEL_FUNCTION uint64_t ring_told(const struct ring_job *job, uint64_t number)
{
    return job->is_single ? number / job->depth * 2 + (job->is_sender ? 1 : 2) : number + 1;
}

KERNEL_FUNCTION bool ring_await(const struct ring_job *job, uint32_t block, uint64_t number)
{
    uint64_t line = job->waits + ring_line(job, block, number), wanted = ring_wanted(job, number);
    for (uint32_t look = 0; look < job->looks; look++) {
        if (KERNEL_ACQUIRE(line) >= wanted)
            return true;
        KERNEL_PAUSE();
    }
    return false;
}

/* Four words are read before the first is written, so that one thread has several under way. */
KERNEL_FUNCTION void ring_copy(uint64_t to, uint64_t from, uint64_t words, uint32_t thread,
                               uint32_t threads)
{
    uint64_t step = (uint64_t) threads * sizeof(struct ring_word),
             at = thread * sizeof(struct ring_word);
    uint64_t end = words * sizeof(struct ring_word);
    for (; at + 3 * step < end; at += 4 * step) {
        struct ring_word a = *KERNEL_PLACE(const struct ring_word, from + at);
        struct ring_word b = *KERNEL_PLACE(const struct ring_word, from + at + step);
        struct ring_word c = *KERNEL_PLACE(const struct ring_word, from + at + 2 * step);
        struct ring_word d = *KERNEL_PLACE(const struct ring_word, from + at + 3 * step);
        *KERNEL_PLACE(struct ring_word, to + at) = a;
        *KERNEL_PLACE(struct ring_word, to + at + step) = b;
        *KERNEL_PLACE(struct ring_word, to + at + 2 * step) = c;
        *KERNEL_PLACE(struct ring_word, to + at + 3 * step) = d;
    }
    for (; at < end; at += step)
        *KERNEL_PLACE(struct ring_word, to + at) = *KERNEL_PLACE(const struct ring_word, from + at);
}

KERNEL_FUNCTION void ring_block(const struct ring_job *job, uint32_t block, uint32_t thread,
                                uint32_t threads)
{
    KERNEL_SHARED bool goes_on;
    uint64_t done = 0;
    for (; done < job->count; done++) {
        uint64_t number = job->first + done;
        uint64_t chunk =
            job->chunks + (block * (uint64_t) job->depth + number % job->depth) * job->chunk_bytes;
        uint64_t user = job->user + (block * job->count + done) * job->chunk_bytes;
        if (thread == 0)
            goes_on = ring_await(job, block, number);
        KERNEL_BARRIER(); /* and the acquire is for all of them */
        if (!goes_on)
            break;
        ring_copy(job->is_sender ? chunk : user, job->is_sender ? user : chunk,
                  job->chunk_bytes / sizeof(struct ring_word), thread, threads);
        KERNEL_BARRIER(); /* all have moved their part: the release is for all of them */
        if (thread == 0)
            KERNEL_RELEASE(job->tells + ring_line(job, block, number), ring_told(job, number));
    }
    if (thread == 0)
        *KERNEL_PLACE(uint64_t, job->moved + block * sizeof(uint64_t)) = done;
}

#endif
#endif
