/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of user buffers in device memory, for sends and receives. */
#ifndef MULTILANE_DEVICE_BUFFER_H
#define MULTILANE_DEVICE_BUFFER_H

#include "common/compat/pml.h"
#include "common/memory/driver.h"
#include "common/memory/memory.h"

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

#endif
