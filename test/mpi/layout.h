// SPDX-License-Identifier: BSD-3-Clause
// Message memory of every shape: builds an MPI datatype over a buffer and knows, without asking
// MPI, where each byte of the message lies, so that what MPI did can be checked to the byte.
#ifndef MULTILANE_TEST_MPI_LAYOUT_H
#define MULTILANE_TEST_MPI_LAYOUT_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum layout_kind {
    LAYOUT_CONTIGUOUS,
    LAYOUT_GAPS,        // one element, resized to twice its size
    LAYOUT_VECTOR,      // small items, many of them
    LAYOUT_LONG_VECTOR, // one item with many blocks
    LAYOUT_INDEXED,     // blocks in an order that goes back in memory
    LAYOUT_STRUCT,
    LAYOUT_NEGATIVE, // negative lower bound and displacements
    LAYOUT_SUBARRAY,
    LAYOUT_BOTTOM, // absolute addresses, MPI_BOTTOM
    LAYOUT_KINDS
};

// Elements in one item of any layout divide this; a message of other than contiguous layout has a
// multiple of it.
enum { LAYOUT_UNIT = 12 };

struct layout {
    enum layout_kind kind;
    MPI_Datatype type; // to be passed with address and count
    void *address;
    int count;
    size_t elements, element_bytes, bytes; // of the message
    // where element i lies: (i / item_elements) * item_extent + item_offsets[i % item_elements]
    size_t item_elements;
    ptrdiff_t item_extent, item_offsets[LAYOUT_UNIT];
    unsigned char *storage, *origin;
    size_t storage_bytes;
    bool type_is_ours;
};

extern const char *const layout_names[LAYOUT_KINDS];
struct layout_element {
    const char *name;
    MPI_Datatype type;
    size_t bytes;
};
size_t layout_element_count(void);
struct layout_element layout_element_get(size_t index);

void layout_build(struct layout *layout, enum layout_kind kind, MPI_Datatype element,
                  size_t element_bytes, size_t elements);
void layout_free(struct layout *layout);
// Every byte of the storage, gaps included, becomes the guard value.
void layout_clear(struct layout *layout);
void layout_fill(struct layout *layout, uint64_t key);
// The index within the message of the first wrong byte among the first bytes, or -1.
ptrdiff_t layout_check(const struct layout *layout, uint64_t key, size_t bytes);
// Whether nothing but the first bytes of the message was written.
bool layout_rest_untouched(const struct layout *layout, size_t bytes);
// Whether nothing outside of the message's own elements was written.
static inline bool layout_gaps_untouched(const struct layout *layout)
{
    return layout_rest_untouched(layout, layout->bytes);
}

#endif
