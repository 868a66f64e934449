/* SPDX-License-Identifier: BSD-3-Clause */
/* Detects freed device memory, and prints the first few errors of the CUDA driver. */
#include "memory/device_buffer.h"

#include <stdatomic.h>

#include "common/memory/other_devices.h"

#define COMPLAINTS 4

void driver_complain(const char *what, driver_result result)
{
    static _Atomic uint32_t said; /* relaxed: it orders nothing */
    char words[160];
    if (atomic_fetch_add_explicit(&said, 1, memory_order_relaxed) < COMPLAINTS)
        opal_output(0, "multilane: %s: the CUDA driver says %s.", what,
                    driver_words(result, words, sizeof(words)));
}

static void other_device_complain(const void *address)
{
    static _Atomic uint32_t said; /* relaxed: it orders nothing */
    const char *library = other_devices_library();
    if (atomic_fetch_add_explicit(&said, 1, memory_order_relaxed) < COMPLAINTS)
        opal_output(0,
                    "multilane: the processor cannot touch the memory at %p, and the program uses "
                    "%s: of devices, Multilane sends and receives CUDA's memory only. Copy it to "
                    "host memory first, or use a PML that was built for such devices.",
                    address, library ? library : "other devices");
}

int buffer_gone(const struct memory *memory, const void *address)
{
    if (memory->kind == MEMORY_LOST) {
        driver_complain("cannot tell what memory the buffer of a message is", memory->error);
        return MPI_ERR_OTHER;
    }
    if (memory->kind == MEMORY_OTHER) {
        other_device_complain(address);
        return MPI_ERR_BUFFER;
    }
    if (memory->kind != MEMORY_FREED)
        return MPI_SUCCESS;
    opal_output(0,
                "multilane: %p was device memory and has been freed: a message cannot be sent from "
                "there or received there.",
                address);
    return MPI_ERR_BUFFER;
}
