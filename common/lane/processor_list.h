/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of processors as the kernel writes them: "0-7,16-23". */
#ifndef COMMON_LANE_PROCESSOR_LIST_H
#define COMMON_LANE_PROCESSOR_LIST_H

#include <stdbool.h>
#include <stdio.h>

/* The next range of the list, which moves behind it. False: there is none. */
static inline bool processor_range(const char **list, unsigned *first, unsigned *last)
{
    int length = 0, more = 0;
    *list += **list == ',';
    if (sscanf(*list, "%u%n", first, &length) != 1)
        return false;
    *last = *first;
    if (sscanf(*list + length, "-%u%n", last, &more) != 1)
        more = 0;
    *list += length + more;
    return true;
}

static inline bool processor_list_has(const char *list, unsigned processor)
{
    unsigned first, last;
    while (processor_range(&list, &first, &last))
        if (first <= processor && processor <= last)
            return true;
    return false;
}

#endif
