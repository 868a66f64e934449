/* SPDX-License-Identifier: BSD-3-Clause */
/* Open MPI's own question whether an address is a device's. */
#ifndef MULTILANE_COMPAT_ACCELERATOR_H
#define MULTILANE_COMPAT_ACCELERATOR_H

#include "common/compat/compat.h"
#include "common/compat/library_calls.h"

#if COMPAT_SERIES >= 60000
#include <stdint.h>
#include <string.h>

#include "opal/mca/accelerator/accelerator.h"
#include "opal/mca/accelerator/base/base.h"

/* From 6.0 on MPI_Pack and MPI_Unpack ask that first, and copy memory that is none at once. The
 * libraries whose file name begins with `file` get another answer where Open MPI itself knows no
 * devices; all others keep theirs. */
static inline void compat_accelerator_answer(const char *file,
                                             int (*answer)(const void *, int *, uint64_t *))
{
    static opal_accelerator_base_module_t ours;
    const char *selected = opal_accelerator_base_selected_component.base_version.mca_component_name;

    if (strcmp(selected, "null") != 0)
        return;
    ours = opal_accelerator;
    ours.check_addr = answer;
    (void) library_entry_set(file, "opal_accelerator", (uintptr_t) &ours);
}

static inline void compat_accelerator_restore(const char *file)
{
    (void) library_entry_set(file, "opal_accelerator", (uintptr_t) &opal_accelerator);
}
#else
static inline void compat_accelerator_answer(const char *file,
                                             int (*answer)(const void *, int *, uint64_t *))
{
}

static inline void compat_accelerator_restore(const char *file)
{
}
#endif

#endif
