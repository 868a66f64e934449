/* SPDX-License-Identifier: BSD-3-Clause */
/* Goes through what the dynamic linker has loaded. */
#include "common/memory/loaded.h"

#include <link.h>
#include <stddef.h>
#include <string.h>

struct search {
    const char *wanted, *found;
};

static int object_check(struct dl_phdr_info *object, size_t size, void *context)
{
    struct search *search = context;
    const char *file = strrchr(object->dlpi_name, '/');
    file = file ? file + 1 : object->dlpi_name;
    if (strncmp(file, search->wanted, strlen(search->wanted)) == 0)
        search->found = object->dlpi_name;
    return search->found != NULL;
}

const char *library_loaded(const char *file)
{
    struct search search = {.wanted = file};
    dl_iterate_phdr(object_check, &search);
    return search.found;
}
