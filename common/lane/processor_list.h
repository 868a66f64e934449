/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of processors as the kernel writes them: "0-7,16-23". */
#ifndef COMMON_LANE_PROCESSOR_LIST_H
#define COMMON_LANE_PROCESSOR_LIST_H

#include <sched.h>
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

/* Is one of the list's in the set? True too of a list that names none. */
static inline bool processor_list_overlaps(const char *list, const cpu_set_t *set)
{
    bool is_empty = true;
    for (unsigned first, last; processor_range(&list, &first, &last); is_empty = false)
        for (; first <= last && first < CPU_SETSIZE; first++)
            if (CPU_ISSET(first, set))
                return true;
    return is_empty;
}

#endif
