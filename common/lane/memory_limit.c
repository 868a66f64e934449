/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the limits of control groups, of both versions. */
#include "common/lane/memory_limit.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A file that holds a number; any other word, such as "max", is no limit. */
static uint64_t number_of(const char *path)
{
    FILE *file = fopen(path, "re");
    unsigned long long bytes;
    bool good = file && fscanf(file, "%llu", &bytes) == 1;

    if (file)
        fclose(file);
    return good ? bytes : MEMORY_LIMIT_NONE;
}

/* The least limit on the way from the group up to the mount. Inside a container the path may lead
 * from a place that is not there; its own group is then the mount itself. */
static uint64_t least_above(const char *mount, char *group, const char *name)
{
    uint64_t least = MEMORY_LIMIT_NONE;
    char path[4096], *end;

    do {
        if (snprintf(path, sizeof(path), "%s%s/%s", mount, group, name) < (int) sizeof(path)) {
            uint64_t bytes = number_of(path);

            least = bytes < least ? bytes : least;
        }
        end = strrchr(group, '/');
        if (end)
            *end = '\0';
    } while (end);
    return least;
}

/* Whether the comma-separated list holds the word. */
static bool list_holds(const char *list, const char *word)
{
    size_t length = strlen(word);
    const char *at = list;

    while ((at = strstr(at, word))) {
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
            return true;
        at += length;
    }
    return false;
}

uint64_t memory_limit_read(const char *groups, const char *mount)
{
    FILE *file = fopen(groups, "re");
    uint64_t least = MEMORY_LIMIT_NONE;
    char line[4096], first[4096];

    while (file && fgets(line, sizeof(line), file)) {
        /* "NUMBER:CONTROLLERS:/PATH"; version 2 names no controllers. */
        char *list = strchr(line, ':');
        char *group = !list ? NULL : strchr(list + 1, ':');

        if (!group)
            continue;
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        snprintf(first, sizeof(first), "%s/memory", mount);
        uint64_t bytes = list[1] == '\0' ? least_above(mount, group, "memory.max")
                         : list_holds(list + 1, "memory")
                             ? least_above(first, group, "memory.limit_in_bytes")
                             : MEMORY_LIMIT_NONE;
        least = bytes < least ? bytes : least;
    }
    if (file)
        fclose(file);
    return least;
}
