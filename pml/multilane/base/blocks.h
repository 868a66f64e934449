/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies between packed bytes and blocks of equal size at equal distances. */
#ifndef MULTILANE_BLOCKS_H
#define MULTILANE_BLOCKS_H

#include <stddef.h>
#include <string.h>

/* Blocks up to this size are copied without a call of the C library. */
#define BLOCK_SHORT_BYTES 64u

/* A copy of constant size is a few moves, without a call: `size` is one of the cases below. */
#define BLOCKS_OF(size)                                                                            \
    case size:                                                                                     \
        for (; count; count--, to += to_stride, from += from_stride)                               \
            memcpy(to, from, size);                                                                \
        break

/* Two moves that overlap in the middle: for size/2 < bytes <= size. */
static inline void block_copy_halves(char *to, const char *from, size_t half, size_t bytes)
{
    memcpy(to, from, half);
    memcpy(to + bytes - half, from + bytes - half, half);
}

static inline void block_copy(char *to, const char *from, size_t bytes)
{
    if (bytes > BLOCK_SHORT_BYTES)
        memcpy(to, from, bytes);
    else if (bytes >= 32)
        block_copy_halves(to, from, 32, bytes);
    else if (bytes >= 16)
        block_copy_halves(to, from, 16, bytes);
    else if (bytes >= 8)
        block_copy_halves(to, from, 8, bytes);
    else if (bytes >= 4)
        block_copy_halves(to, from, 4, bytes);
    else
        for (size_t i = 0; i < bytes; i++)
            to[i] = from[i];
}

/* Copies `count` blocks; the next one is so many bytes further. One of the strides is `bytes`. */
static inline void blocks_copy(char *to, ptrdiff_t to_stride, const char *from,
                               ptrdiff_t from_stride, size_t bytes, size_t count)
{
    switch (bytes) {
        BLOCKS_OF(1);
        BLOCKS_OF(2);
        BLOCKS_OF(4);
        BLOCKS_OF(8);
        BLOCKS_OF(12);
        BLOCKS_OF(16);
        BLOCKS_OF(24);
        BLOCKS_OF(32);
        BLOCKS_OF(48);
        BLOCKS_OF(64);
    default:
        for (; count; count--, to += to_stride, from += from_stride)
            block_copy(to, from, bytes);
    }
}

#undef BLOCKS_OF

#endif
