/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory that is gone. */
#include "memory/device_buffer.h"

#include "memory/complaint.h"
#include "memory/staging.h"

int buffer_gone(const struct memory *memory, const void *address)
{
    if (memory->kind == MEMORY_LOST) {
        driver_complain("nobody knows what memory the buffer of a message is", memory->error);
        return MPI_ERR_OTHER;
    }
    if (memory->kind != MEMORY_FREED)
        return MPI_SUCCESS;
    opal_output(0,
                "multilane: %p was device memory and has been freed: a message cannot be sent from "
                "there or received there.",
                address);
    return MPI_ERR_BUFFER;
}
