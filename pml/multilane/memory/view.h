/* SPDX-License-Identifier: BSD-3-Clause */
/* The device memory of one message: which bytes of the packed message lie where; and
 * checks of such buffers. */
#ifndef MULTILANE_VIEW_H
#define MULTILANE_VIEW_H

#include "common/compat/pml.h"
#include "common/memory/packer.h"

/* Checks of user buffers in device memory, for sends and receives. */

/* The first byte of the data. It determines the memory kind of the buffer. */
static inline const char *buffer_first_byte(const void *buffer, const ompi_datatype_t *datatype)
{
    return (const char *) buffer + datatype->super.true_lb;
}

/* MPI_SUCCESS, or an MPI error class after a message, where neither the driver nor the CPU can
 * use the memory any more. */
int buffer_gone(const struct memory *memory, const void *address);

/* Prints what the CUDA driver refused, in its own words; only the first few times. */
void driver_complain(const char *what, driver_result result);

/* A message is a sequence of equal elements; a contiguous one is one element of one block. */
struct view {
    struct copier *copier;
    bool is_contiguous;
    struct layout layout;
    struct pack_block blocks[]; /* of `layout` */
};

/* Null: no memory, or the driver's error in *result. The caller frees it. */
struct view *view_new(const void *buffer, size_t count, const ompi_datatype_t *datatype,
                      const struct memory *memory, driver_result *result);

/* Its first byte, if it lies in one piece; else null. */
char *view_contiguous(const struct view *view);

/* Starts copies of the packed bytes [offset, offset + bytes) to or from `host`; `host` must stay
 * until the copier has passed them. Blocks of equal length at equal distances, as in most
 * datatypes, and parts of cubes, are one copy of the driver each. A kernel packs everything
 * else; without kernels each block is one copy. */
driver_result view_copy(const struct view *view, enum copy_direction direction, size_t offset,
                        size_t bytes, void *host);

#endif
