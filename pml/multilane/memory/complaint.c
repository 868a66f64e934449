/* SPDX-License-Identifier: BSD-3-Clause */
/* Complaints, until they are known. */
#include "memory/complaint.h"

#include "common/compat/pml.h"

#define COMPLAINTS 4

void driver_complain(const char *what, driver_result result)
{
    static uint32_t said;
    char words[160];
    if (__atomic_fetch_add(&said, 1, __ATOMIC_RELAXED) < COMPLAINTS)
        opal_output(0, "multilane: %s: the CUDA driver says %s.", what,
                    driver_words(result, words, sizeof(words)));
}
