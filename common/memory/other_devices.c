/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks for the libraries of devices other than CUDA's, and for their files. */
#include "common/memory/other_devices.h"

#include <link.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

bool other_devices_possible;

static const struct library {
    const char *file, *name; /* the file's name begins so */
} hip = {"libamdhip64.so", "HIP (libamdhip64)"},
  level_zero = {"libze_loader.so", "Level Zero (libze_loader)"};

struct search {
    const struct library *wanted;
    bool is_found;
};

static int object_check(struct dl_phdr_info *object, size_t size, void *context)
{
    struct search *search = context;
    const char *file = strrchr(object->dlpi_name, '/');

    file = file ? file + 1 : object->dlpi_name;
    search->is_found = strncmp(file, search->wanted->file, strlen(search->wanted->file)) == 0;
    return search->is_found;
}

static bool is_loaded(const struct library *library)
{
    struct search search = {.wanted = library};

    dl_iterate_phdr(object_check, &search);
    return search.is_found;
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
