/* SPDX-License-Identifier: BSD-3-Clause */
/* What the buffers of sends and receives have in common where they are device memory. */
#ifndef MULTILANE_DEVICE_BUFFER_H
#define MULTILANE_DEVICE_BUFFER_H

#include "common/compat/pml.h"
#include "common/memory/driver.h"
#include "common/memory/memory.h"

/* The address that tells whose memory a buffer is: its first byte, wherever the datatype has it. */
static inline const char *buffer_first_byte(const void *buffer, const ompi_datatype_t *datatype)
{
    return (const char *) buffer + datatype->super.true_lb;
}

/* Memory that neither the driver nor the processor can use any more: says why. The MPI error class,
 * or MPI_SUCCESS if it is there. */
int buffer_gone(const struct memory *memory, const void *address);

/* Says what the CUDA driver refused, in its own words; after a few times it is known. */
void driver_complain(const char *what, driver_result result);

#endif
