/* SPDX-License-Identifier: BSD-3-Clause */
/* What the benchmark device_ring and its kernels share. */
#ifndef TEST_BENCH_DEVICE_RING_H
#define TEST_BENCH_DEVICE_RING_H

#include "common/memory/chunk.h"

/* One end's part: a message out and one in, again and again. */
struct turns {
    struct chunk_job out, in;
    uint64_t out_words, in_words; /* of chunks, in their receiver's memory, for the single state */
    uint64_t gave_up;             /* set where a wait was too long */
    uint32_t count;
    uint32_t begins;
};

#endif
