/* SPDX-License-Identifier: BSD-3-Clause */
/* FNV-1a: a number of 64 bits for some bytes, the same in each process and each start. */
#ifndef COMMON_SUM_FNV_H
#define COMMON_SUM_FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV_BEGIN UINT64_C(0xcbf29ce484222325)

/* Goes on from FNV_BEGIN, or from what it gave for the bytes before. */
static inline uint64_t fnv(uint64_t number, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        number = (number ^ ((const unsigned char *) bytes)[i]) * UINT64_C(0x100000001b3);
    return number;
}

#endif
