/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC32C (Castagnoli), by the processor's instructions where it has them. */
#ifndef MULTILANE_CRC32C_H
#define MULTILANE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Chooses the way. Before the others, once, and before there are threads. */
void crc32c_begin(void);

/* The sum of what `crc` is the sum of (0: nothing) and `length` more bytes behind it. */
extern uint32_t (*crc32c)(uint32_t crc, const void *bytes, size_t length);

/* As crc32c, of what it copies. The two places do not overlap. */
extern uint32_t (*crc32c_copy)(uint32_t crc, void *to, const void *from, size_t length);

/* The same as crc32c by tables, which crc32c_begin fills; slow. */
uint32_t crc32c_by_table(uint32_t crc, const void *bytes, size_t length);

#endif
