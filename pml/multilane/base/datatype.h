/* SPDX-License-Identifier: BSD-3-Clause */
/* Open MPI's datatypes: whether they have gaps, and packing those that do. */
#ifndef MULTILANE_DATATYPE_H
#define MULTILANE_DATATYPE_H

#include "common/compat/pml.h"

static inline bool datatype_is_contiguous(const ompi_datatype_t *datatype, size_t count)
{
    uint32_t flags = datatype->super.flags;
    return (flags & OPAL_DATATYPE_FLAG_CONTIGUOUS) &&
           (count < 2 || (flags & OPAL_DATATYPE_FLAG_NO_GAPS));
}

/* Copies the packed bytes [offset, offset + bytes) of `count` elements at `buffer` to or from
 * `packed`. Any part of a message can be copied at any time, by several threads at once: nothing is
 * kept between calls. */
void datatype_pack(const ompi_datatype_t *datatype, size_t count, const void *buffer, size_t offset,
                   void *packed, size_t bytes);
void datatype_unpack(const ompi_datatype_t *datatype, size_t count, void *buffer, size_t offset,
                     const void *packed, size_t bytes);

#endif
