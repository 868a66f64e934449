/* SPDX-License-Identifier: BSD-3-Clause */
/* Goes through the libraries that this process has loaded. */
#include "common/memory/loaded.h"

#include <link.h>
#include <stddef.h>
#include <string.h>

struct search {
    const char *file;
    bool is_found;
};

static int object_check(struct dl_phdr_info *object, size_t size, void *context)
{
    struct search *search = context;
    const char *file = strrchr(object->dlpi_name, '/');

    file = file ? file + 1 : object->dlpi_name;
    search->is_found = strncmp(file, search->file, strlen(search->file)) == 0;
    return search->is_found;
}

bool loaded_library(const char *file)
{
    struct search search = {.file = file};

    dl_iterate_phdr(object_check, &search);
    return search.is_found;
}
