// SPDX-License-Identifier: BSD-3-Clause
// Message memory of every shape, with the place of each byte worked out here and not by MPI.
#include "layout.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD = 0xA5, MARGIN = 64 };

const char *const layout_names[LAYOUT_KINDS] = {
    "contiguous", "gaps",     "vector",   "long-vector", "indexed",
    "struct",     "negative", "subarray", "bottom",
};

size_t layout_element_count(void)
{
    return 7;
}

struct layout_element layout_element_get(size_t index)
{
    const struct layout_element elements[] = {
        {"byte", MPI_BYTE, 1},
        {"char", MPI_CHAR, 1},
        {"short", MPI_SHORT, sizeof(short)},
        {"int", MPI_INT, sizeof(int)},
        {"double", MPI_DOUBLE, sizeof(double)},
        {"int64", MPI_INT64_T, 8},
        {"complex", MPI_C_DOUBLE_COMPLEX, 16},
    };
    return elements[index % COUNT_OF(elements)];
}

// The item's shape, in elements: where its elements lie and how far the next item is.
static const struct shape {
    size_t elements;
    ptrdiff_t extent, offsets[LAYOUT_UNIT];
} shapes[LAYOUT_KINDS] = {
    [LAYOUT_CONTIGUOUS] = {1, 1, {0}},
    [LAYOUT_GAPS] = {1, 2, {0}},
    [LAYOUT_VECTOR] = {6, 14, {0, 1, 5, 6, 10, 11}},
    [LAYOUT_LONG_VECTOR] = {4, 6, {0, 1, 2, 3}},
    [LAYOUT_INDEXED] = {6, 12, {9, 3, 4, 5, 0, 1}},
    [LAYOUT_STRUCT] = {3, 8, {0, 1, 6}},
    [LAYOUT_NEGATIVE] = {4, 9, {-7, -6, -2, 0}},
    [LAYOUT_SUBARRAY] = {12, 35, {8, 9, 10, 11, 15, 16, 17, 18, 22, 23, 24, 25}},
    [LAYOUT_BOTTOM] = {6, 9, {0, 1, 2, 3, 4, 5}},
};

static MPI_Datatype resized(MPI_Datatype inner, ptrdiff_t lower, ptrdiff_t extent)
{
    MPI_Datatype outer;
    OK(MPI_Type_create_resized(inner, lower, extent, &outer));
    OK(MPI_Type_free(&inner));
    return outer;
}

static MPI_Datatype struct_type(MPI_Datatype element, ptrdiff_t bytes)
{
    MPI_Datatype made, types[] = {element, element};
    int lengths[] = {2, 1};
    MPI_Aint places[] = {0, 6 * bytes};
    OK(MPI_Type_create_struct(2, lengths, places, types, &made));
    return resized(made, 0, 8 * bytes);
}

static MPI_Datatype negative_type(MPI_Datatype element, ptrdiff_t bytes)
{
    MPI_Datatype made;
    int lengths[] = {2, 1, 1};
    MPI_Aint places[] = {-7 * bytes, -2 * bytes, 0};
    OK(MPI_Type_create_hindexed(3, lengths, places, element, &made));
    return resized(made, -7 * bytes, 9 * bytes);
}

static MPI_Datatype bottom_type(const struct layout *layout, MPI_Datatype element)
{
    MPI_Datatype made, item;
    MPI_Aint base;
    int length = 6;
    OK(MPI_Get_address(layout->origin, &base));
    OK(MPI_Type_create_hindexed(1, &length, &(MPI_Aint){0}, element, &item));
    item = resized(item, 0, layout->item_extent);
    int items = (int) (layout->elements / 6);
    OK(MPI_Type_create_hindexed(1, &items, &base, item, &made));
    OK(MPI_Type_free(&item));
    return made;
}

static MPI_Datatype type_make(const struct layout *layout, MPI_Datatype element)
{
    MPI_Datatype made = element;
    ptrdiff_t bytes = (ptrdiff_t) layout->element_bytes;
    switch (layout->kind) {
    case LAYOUT_GAPS:
        OK(MPI_Type_create_resized(element, 0, 2 * bytes, &made));
        break;
    case LAYOUT_VECTOR:
        OK(MPI_Type_vector(3, 2, 5, element, &made));
        made = resized(made, 0, 14 * bytes);
        break;
    case LAYOUT_LONG_VECTOR:
        OK(MPI_Type_vector((int) (layout->elements / 4), 4, 6, element, &made));
        break;
    case LAYOUT_INDEXED:
        OK(MPI_Type_indexed(3, (int[]){1, 3, 2}, (int[]){9, 3, 0}, element, &made));
        made = resized(made, 0, 12 * bytes);
        break;
    case LAYOUT_STRUCT:
        made = struct_type(element, bytes);
        break;
    case LAYOUT_NEGATIVE:
        made = negative_type(element, bytes);
        break;
    case LAYOUT_SUBARRAY:
        OK(MPI_Type_create_subarray(2, (int[]){5, 7}, (int[]){3, 4}, (int[]){1, 1}, MPI_ORDER_C,
                                    element, &made));
        break;
    case LAYOUT_BOTTOM:
        made = bottom_type(layout, element);
        break;
    case LAYOUT_CONTIGUOUS:
    case LAYOUT_KINDS:
        break;
    }
    return made;
}

static void storage_make(struct layout *layout)
{
    // one item more on each side than the message has, and a margin, all guarded
    ptrdiff_t items = (ptrdiff_t) (layout->elements / layout->item_elements);
    ptrdiff_t before = layout->item_extent + MARGIN;
    layout->storage_bytes = (size_t) (before + (items + 1) * layout->item_extent + MARGIN);
    layout->storage = suite_alloc(layout->storage_bytes);
    layout->origin = layout->storage + before;
}

void layout_build(struct layout *layout, enum layout_kind kind, MPI_Datatype element,
                  size_t element_bytes, size_t elements)
{
    const struct shape *shape = &shapes[kind];
    layout->kind = kind;
    layout->elements = elements;
    layout->element_bytes = element_bytes;
    layout->bytes = elements * element_bytes;
    layout->item_elements = shape->elements;
    layout->item_extent = shape->extent * (ptrdiff_t) element_bytes;
    for (size_t i = 0; i < shape->elements; i++)
        layout->item_offsets[i] = shape->offsets[i] * (ptrdiff_t) element_bytes;
    storage_make(layout);
    layout_clear(layout);
    layout->type = type_make(layout, element);
    layout->type_is_ours = kind != LAYOUT_CONTIGUOUS;
    if (layout->type_is_ours)
        OK(MPI_Type_commit(&layout->type));
    bool whole = kind == LAYOUT_LONG_VECTOR || kind == LAYOUT_BOTTOM;
    layout->address = kind == LAYOUT_BOTTOM ? MPI_BOTTOM : layout->origin;
    layout->count = whole ? elements > 0 : (int) (elements / shape->elements);
}

void layout_free(struct layout *layout)
{
    if (layout->type_is_ours)
        OK(MPI_Type_free(&layout->type));
    free(layout->storage);
    layout->storage = NULL;
}

void layout_clear(struct layout *layout)
{
    memset(layout->storage, GUARD, layout->storage_bytes);
}

static unsigned char *element_at(const struct layout *layout, size_t index)
{
    size_t item = index / layout->item_elements;
    return layout->origin + (ptrdiff_t) item * layout->item_extent +
           layout->item_offsets[index % layout->item_elements];
}

// The message's bytes in their order.
static void pack(const struct layout *layout, unsigned char *packed)
{
    size_t bytes = layout->element_bytes;
    for (size_t i = 0; i < layout->elements; i++)
        memcpy(packed + i * bytes, element_at(layout, i), bytes);
}

void layout_fill(struct layout *layout, uint64_t key)
{
    if (layout->kind == LAYOUT_CONTIGUOUS) {
        pattern_fill(layout->origin, layout->bytes, key);
        return;
    }
    size_t bytes = layout->element_bytes;
    unsigned char *packed = suite_alloc(layout->bytes);
    pattern_fill(packed, layout->bytes, key);
    for (size_t i = 0; i < layout->elements; i++)
        memcpy(element_at(layout, i), packed + i * bytes, bytes);
    free(packed);
}

ptrdiff_t layout_check(const struct layout *layout, uint64_t key, size_t bytes)
{
    if (layout->kind == LAYOUT_CONTIGUOUS)
        return pattern_check(layout->origin, bytes, key);
    unsigned char *packed = suite_alloc(layout->bytes);
    pack(layout, packed);
    ptrdiff_t at = pattern_check(packed, bytes, key);
    free(packed);
    return at;
}

bool layout_rest_untouched(const struct layout *layout, size_t bytes)
{
    size_t written = bytes / layout->element_bytes;
    if (layout->kind == LAYOUT_CONTIGUOUS) {
        size_t before = (size_t) (layout->origin - layout->storage);
        return all_bytes_are(layout->storage, before, GUARD) &&
               all_bytes_are(layout->origin + bytes, layout->storage_bytes - before - bytes, GUARD);
    }
    unsigned char *copy = suite_alloc(layout->storage_bytes);
    memcpy(copy, layout->storage, layout->storage_bytes);
    for (size_t i = 0; i < written; i++)
        memset(copy + (element_at(layout, i) - layout->storage), GUARD, layout->element_bytes);
    bool untouched = all_bytes_are(copy, layout->storage_bytes, GUARD);
    free(copy);
    return untouched;
}
