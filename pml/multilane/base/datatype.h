/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions about Open MPI's datatypes. */
#ifndef MULTILANE_DATATYPE_H
#define MULTILANE_DATATYPE_H

#include "common/compat/pml.h"

static inline bool datatype_is_contiguous(const ompi_datatype_t *datatype, size_t count)
{
    uint32_t flags = datatype->super.flags;
    return (flags & OPAL_DATATYPE_FLAG_CONTIGUOUS) &&
           (count < 2 || (flags & OPAL_DATATYPE_FLAG_NO_GAPS));
}

#endif
