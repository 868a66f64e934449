/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the bytes lie that an operation reads or writes. */
#include "coll/multilane/coll.h"

static ptrdiff_t extent_of(ompi_datatype_t *type)
{
    ptrdiff_t low, extent;

    ompi_datatype_get_extent(type, &low, &extent);
    return extent;
}

struct block blocks_get(const struct blocks *blocks, size_t i)
{
    struct block block = {0, blocks->elements, blocks->type};

    if (blocks->kind == BLOCKS_ONE)
        return block;
    block.elements = compat_counts_get(blocks->counts, i);
    if (block.elements == 0) /* then the rest may be anything */
        return block;
    if (blocks->kind == BLOCKS_BY_EXTENT) {
        block.at = compat_displs_get(blocks->displs, i) * extent_of(blocks->type);
        return block;
    }
    block.type = blocks->types[i];
    block.at = compat_displs_get(blocks->displs, i);
    return block;
}

/* The same for one block. */
static bool block_span(const struct block *block, ptrdiff_t *start, ptrdiff_t *end)
{
    ptrdiff_t low, bytes, last;
    size_t size;

    if (block->elements == 0)
        return false;
    ompi_datatype_type_size(block->type, &size);
    if (size == 0)
        return false;
    ompi_datatype_get_true_extent(block->type, &low, &bytes);
    /* Elements may go backwards. */
    last = (ptrdiff_t) (block->elements - 1) * extent_of(block->type);
    *start = block->at + low + (last < 0 ? last : 0);
    *end = block->at + low + bytes + (last > 0 ? last : 0);
    return true;
}

bool blocks_span(const struct blocks *blocks, ptrdiff_t *start, ptrdiff_t *end)
{
    ptrdiff_t first, behind;
    bool any = false;

    for (size_t i = 0; i < blocks->count; i++) {
        struct block block = blocks_get(blocks, i);

        if (!block_span(&block, &first, &behind))
            continue;
        *start = any && *start < first ? *start : first;
        *end = any && *end > behind ? *end : behind;
        any = true;
    }
    return any;
}
