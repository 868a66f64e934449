/* SPDX-License-Identifier: BSD-3-Clause */
/* A library to preload: makes the running Open MPI look like one that was built with other options.
 * The class or the object that MULTILANE_GROWN names is larger, which does it no harm. */
#include "opal_config.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "opal/class/opal_object.h"

#ifdef MULTILANE_GROWN
__attribute__((visibility("default"))) char MULTILANE_GROWN[4096];
#else
__attribute__((constructor)) static void grow(void)
{
    const char *name = getenv("MULTILANE_GROWN");
    char symbol[128];

    snprintf(symbol, sizeof(symbol), "%s_class", name ? name : "");
    opal_class_t *class = dlsym(RTLD_DEFAULT, symbol);
    if (class)
        class->cls_sizeof += 8;
}
#endif
