/* SPDX-License-Identifier: BSD-3-Clause */
/* Complaints, until they are known. */
#include "memory/complaint.h"

#include <stdatomic.h>

#include "common/compat/pml.h"

#define COMPLAINTS 4

void driver_complain(const char *what, driver_result result)
{
    static _Atomic uint32_t said; /* relaxed: it orders nothing */
    char words[160];
    if (atomic_fetch_add_explicit(&said, 1, memory_order_relaxed) < COMPLAINTS)
        opal_output(0, "multilane: %s: the CUDA driver says %s.", what,
                    driver_words(result, words, sizeof(words)));
}
