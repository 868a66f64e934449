/* SPDX-License-Identifier: BSD-3-Clause */
/* Packing and unpacking on the device: bytes that lie apart there, together elsewhere, by one
 * kernel and one copy however many pieces they are in. */
#ifndef COMMON_MEMORY_PACKER_H
#define COMMON_MEMORY_PACKER_H

#include "common/memory/copier.h"
#include "common/memory/pack.h"

/* Where the bytes of a packed message are in device memory: a row of equal elements, each of blocks
 * in the order of packing. */
struct layout {
    uint64_t serial; /* of this message: no other one of the process has it */
    char *base;
    size_t element_bytes; /* packed */
    ptrdiff_t extent;     /* from one element to the next, in memory */
    uint32_t block_count;
    uint32_t word;             /* see pack.h */
    struct pack_block *blocks; /* and behind them one that says where the last ends */
};

/* Fills in what follows from the rest: serial, word. */
void layout_end(struct layout *layout);

/* The block that holds the byte at `within` an element. */
uint32_t layout_block_at(const struct layout *layout, size_t within);

static inline size_t layout_block_bytes(const struct layout *layout, uint32_t block)
{
    return (size_t) (layout->blocks[block + 1].offset - layout->blocks[block].offset);
}

/* Makes kernel and memory ready, once for each copier and direction. DRIVER_NOT_SUPPORTED: there
 * are no kernels, as was wanted; another error: what the driver said. */
driver_result packer_ready(struct copier *copier, enum copy_direction direction);

/* Starts to move the packed bytes [offset, offset + bytes) from or to the host, where they have to
 * stay until a mark behind them is reached. After packer_ready said DRIVER_SUCCESS. */
driver_result packer_copy(struct copier *copier, enum copy_direction direction,
                          const struct layout *layout, size_t offset, size_t bytes, void *host);

/* Gives everything back, the kernels included. Nothing is under way any more, and the copiers are
 * still there. */
void packers_close(void);

#endif
