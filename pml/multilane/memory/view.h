/* SPDX-License-Identifier: BSD-3-Clause */
/* The device memory of one message, as copies see it: which bytes of the packed message lie where.
 */
#ifndef MULTILANE_VIEW_H
#define MULTILANE_VIEW_H

#include "common/compat/pml.h"
#include "common/memory/packer.h"

/* A message is a row of equal elements; one that is contiguous is a single element of one block. */
struct view {
    struct copier *copier;
    bool is_contiguous;
    struct layout layout;
    struct pack_block blocks[]; /* the layout's */
};

/* Null: no memory, or *result says what the driver refused. */
struct view *view_new(const void *buffer, size_t count, const ompi_datatype_t *datatype,
                      const struct memory *memory, driver_result *result);
void view_free(struct view *view);

/* The address of its first byte, if it lies in one piece; else null. */
char *view_contiguous(const struct view *view);

/* Starts copies of the packed bytes [offset, offset + bytes) to or from `host`, which has to stay
 * until a mark of the copier behind them is reached. Blocks of equal length at equal distances,
 * which most datatypes consist of, are one copy of the driver's, and so are parts of cubes; what is
 * of no such shape is packed by a kernel, or, where there is none, copied block by block. */
driver_result view_copy(const struct view *view, enum copy_direction way, size_t offset,
                        size_t bytes, void *host);

#endif
