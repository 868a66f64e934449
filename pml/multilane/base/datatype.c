/* SPDX-License-Identifier: BSD-3-Clause */
/* Packs datatypes by the description that Open MPI's commit has made of them, which is the same in
 * all versions: blocks of equal size at equal distances, one after the other or in loops. Open
 * MPI's own convertor calls memcpy for each block, and keeps a position that every piece of a
 * message has to set; here a position is found by divisions, and short blocks are copied by a few
 * moves. */
#include "base/datatype.h"

#include <string.h>

#include "opal/datatype/opal_datatype_internal.h"

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

/* The packed bytes that are still to be copied. */
struct window {
    char *packed;
    size_t skip; /* bytes of the message before them */
    size_t bytes;
    bool is_pack;
};

/* Equal blocks at equal distances. */
struct blocks {
    char *first;
    size_t bytes;
    size_t count;
    ptrdiff_t stride;
};

static inline void window_copy(struct window *window, char *at, ptrdiff_t stride, size_t bytes,
                               size_t count)
{
    if (window->is_pack)
        blocks_copy(window->packed, (ptrdiff_t) bytes, at, stride, bytes, count);
    else
        blocks_copy(at, stride, window->packed, (ptrdiff_t) bytes, bytes, count);
    window->packed += bytes * count;
    window->bytes -= bytes * count;
}

static inline size_t smaller(size_t one, size_t other)
{
    return one < other ? one : other;
}

/* Copies those of the blocks that lie in the window. */
static void blocks_move(const struct blocks *blocks, struct window *window)
{
    size_t i = window->skip / blocks->bytes, within = window->skip % blocks->bytes;
    if (i >= blocks->count) {
        window->skip -= blocks->bytes * blocks->count;
        return;
    }
    window->skip = 0;
    char *at = blocks->first + (ptrdiff_t) i * blocks->stride;
    if (within) {
        window_copy(window, at + within, 0, smaller(blocks->bytes - within, window->bytes), 1);
        at += blocks->stride;
        i++;
    }
    size_t whole = smaller(blocks->count - i, window->bytes / blocks->bytes);
    window_copy(window, at, blocks->stride, blocks->bytes, whole);
    if (window->bytes && i + whole < blocks->count)
        window_copy(window, at + (ptrdiff_t) whole * blocks->stride, 0, window->bytes, 1);
}

static struct blocks blocks_of_element(const ddt_elem_desc_t *element, char *base)
{
    size_t bytes = opal_datatype_basicDatatypes[element->common.type]->size;
    return (struct blocks){.first = base + element->disp,
                           .bytes = element->blocklen * bytes,
                           .count = element->count,
                           .stride = element->extent};
}

/* Does the description hold nothing but one block? */
static bool is_one_block(const dt_elem_desc_t *description, uint32_t items, char *base,
                         struct blocks *block)
{
    if (items != 1 || !(description->elem.common.flags & OPAL_DATATYPE_FLAG_DATA))
        return false;
    *block = blocks_of_element(&description->elem, base);
    return block->count == 1;
}

static void items_move(const dt_elem_desc_t *items, uint32_t count, char *base,
                       struct window *window);

/* Repeats what `items` describe, `size` bytes each time. */
static void loop_move(const dt_elem_desc_t *items, uint32_t count, char *base, size_t size,
                      size_t times, ptrdiff_t extent, struct window *window)
{
    struct blocks blocks;
    if (is_one_block(items, count, base, &blocks)) {
        blocks.count = times;
        blocks.stride = extent;
        blocks_move(&blocks, window);
        return;
    }
    size_t i = window->skip / size;
    if (i >= times) {
        window->skip -= size * times;
        return;
    }
    window->skip -= size * i;
    for (; i < times && window->bytes; i++)
        items_move(items, count, base + (ptrdiff_t) i * extent, window);
}

static void items_move(const dt_elem_desc_t *items, uint32_t count, char *base,
                       struct window *window)
{
    for (uint32_t i = 0; i < count && window->bytes; i++) {
        const dt_elem_desc_t *item = &items[i];
        if (item->elem.common.flags & OPAL_DATATYPE_FLAG_DATA) {
            struct blocks blocks = blocks_of_element(&item->elem, base);
            if (blocks.bytes && blocks.count)
                blocks_move(&blocks, window);
        } else if (item->elem.common.type == OPAL_DATATYPE_LOOP) {
            const ddt_endloop_desc_t *end = &items[i + item->loop.items].end_loop;
            if (end->size)
                loop_move(item + 1, item->loop.items - 1, base, end->size, item->loop.loops,
                          item->loop.extent, window);
            i += item->loop.items;
        }
    }
}

static void message_move(const opal_datatype_t *datatype, size_t count, char *buffer,
                         struct window *window)
{
    const dt_type_desc_t *description =
        datatype->opt_desc.desc ? &datatype->opt_desc : &datatype->desc;
    if (datatype->size)
        loop_move(description->desc, (uint32_t) description->used, buffer, datatype->size, count,
                  datatype->ub - datatype->lb, window);
}

void datatype_pack(const ompi_datatype_t *datatype, size_t count, const void *buffer, size_t offset,
                   void *packed, size_t bytes)
{
    struct window window = {.packed = packed, .skip = offset, .bytes = bytes, .is_pack = true};
    message_move(&datatype->super, count, (char *) (uintptr_t) buffer, &window);
}

void datatype_unpack(const ompi_datatype_t *datatype, size_t count, void *buffer, size_t offset,
                     const void *packed, size_t bytes)
{
    struct window window = {
        .packed = (char *) (uintptr_t) packed, .skip = offset, .bytes = bytes, .is_pack = false};
    message_move(&datatype->super, count, buffer, &window);
}
