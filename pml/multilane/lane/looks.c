/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts the rounds of progress. */
#include "lane/looks.h"

#include "common/compat/pml.h"

_Atomic uint32_t looks;

static int looks_progress(void)
{
    looks_add();
    return 0;
}

void looks_begin(void)
{
    opal_progress_register(looks_progress);
}

void looks_end(void)
{
    opal_progress_unregister(looks_progress);
}
