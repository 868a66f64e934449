/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks for the libraries of devices other than CUDA's. */
#define _GNU_SOURCE
#include "common/memory/other_devices.h"

#include <link.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

bool other_devices_possible;

static const struct {
    const char *file, *name; /* the file's name begins so */
} libraries[] = {{"libamdhip64.so", "HIP (libamdhip64)"},
                 {"libze_loader.so", "Level Zero (libze_loader)"}};

static int library_check(struct dl_phdr_info *object, size_t size, void *found)
{
    const char *file = strrchr(object->dlpi_name, '/');

    (void) size;
    file = file ? file + 1 : object->dlpi_name;
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
        if (strncmp(file, libraries[i].file, strlen(libraries[i].file)) == 0)
            *(const char **) found = libraries[i].name;
    return *(const char **) found != NULL;
}

const char *other_devices_library(void)
{
    const char *found = NULL;

    dl_iterate_phdr(library_check, &found);
    return found;
}

void other_devices_find(void)
{
    other_devices_possible = access("/dev/kfd", F_OK) == 0 || other_devices_library();
}
