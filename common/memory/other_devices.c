/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks for the libraries of devices other than CUDA's, and for their files. */
#include "common/memory/other_devices.h"

#include <stddef.h>
#include <unistd.h>

#include "common/memory/loaded.h"

bool other_devices_possible;

static const struct library {
    const char *file, *name; /* the file's name begins so */
} hip = {"libamdhip64.so", "HIP (libamdhip64)"},
  level_zero = {"libze_loader.so", "Level Zero (libze_loader)"};

static bool is_loaded(const struct library *library)
{
    return library_loaded(library->file) != NULL;
}

void other_devices_find(void)
{
    other_devices_possible = access("/dev/kfd", F_OK) == 0 || is_loaded(&hip) ||
                             (access("/dev/dri/renderD128", F_OK) == 0 && is_loaded(&level_zero));
}

const char *other_devices_library(void)
{
    return is_loaded(&hip) ? hip.name : is_loaded(&level_zero) ? level_zero.name : NULL;
}
