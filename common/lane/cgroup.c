/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the limits of cgroups. */
#include "common/lane/cgroup.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lane/kernel_text.h"
#include "common/model/number.h"

#define PATH_BYTES 1024

/* What a controller limits, and how one group says it in version 1 or 2. */
struct limit {
    const char *controller;
    double (*of_group)(const char *folder, int version);
};

/* Any word but a number is no limit. */
static double memory_of_group(const char *folder, int version)
{
    char text[64];
    unsigned long long bytes;

    (void) kernel_text(text, sizeof(text), "%s/%s", folder,
                       version == 2 ? "memory.max" : "memory.limit_in_bytes");
    return sscanf(text, "%llu", &bytes) == 1 ? (double) bytes : INFINITY;
}

/* Processors of "quota period" in microseconds; infinite for "max", -1 and nonsense. */
static double quota_parse(const char *quota, const char *period)
{
    double most = strtod(quota, NULL), each = strtod(period, NULL);

    return most > 0 && each > 0 ? most / each : INFINITY;
}

/* Version 2 has one file, version 1 two. */
static double quota_of_group(const char *folder, int version)
{
    char text[64], period[64];

    if (version == 2) {
        (void) kernel_text(text, sizeof(text), "%s/cpu.max", folder);
        return quota_parse(text, text + strcspn(text, " "));
    }
    (void) kernel_text(text, sizeof(text), "%s/cpu.cfs_quota_us", folder);
    (void) kernel_text(period, sizeof(period), "%s/cpu.cfs_period_us", folder);
    return quota_parse(text, period);
}

/* Of the group `mount``group` and all above it, to the mount itself: a container often has only
 * that one, and sees a name that leads nowhere here. */
static double least_of_levels(const struct limit *limit, int version, const char *mount,
                              const char *group)
{
    char folder[PATH_BYTES];
    size_t top = strlen(mount);
    double least = INFINITY;

    if (snprintf(folder, sizeof(folder), "%s%s", mount, group) >= (int) sizeof(folder))
        folder[top] = '\0';
    for (;;) {
        least = fmin(least, limit->of_group(folder, version));
        char *slash = strrchr(folder, '/');
        if (strlen(folder) <= top || !slash || slash < folder + top)
            return least;
        *slash = '\0';
    }
}

/* Of a line "number:controllers:group"; version 2 names no controllers. */
static double least_of_line(const struct limit *limit, char *line, const char *mount)
{
    char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
    char place[PATH_BYTES];

    if (!group)
        return INFINITY;
    *group++ = '\0';
    list++;
    if (*list == '\0')
        return least_of_levels(limit, 2, mount, group);
    if (!text_list_has(list, limit->controller))
        return INFINITY;
    snprintf(place, sizeof(place), "%s/%s", mount, list);
    double named = least_of_levels(limit, 1, place, group);
    if (strcmp(list, limit->controller) == 0)
        return named;
    snprintf(place, sizeof(place), "%s/%s", mount, limit->controller);
    return fmin(named, least_of_levels(limit, 1, place, group));
}

static double least_of(const struct limit *limit, const char *groups, const char *mount)
{
    char own[4096], *rest = own, *line;
    double least = INFINITY;

    if (groups)
        snprintf(own, sizeof(own), "%s", groups);
    else
        (void) kernel_text(own, sizeof(own), "/proc/self/cgroup");
    while ((line = strsep(&rest, "\n")))
        least = fmin(least, least_of_line(limit, line, mount ? mount : "/sys/fs/cgroup"));
    return least;
}

double cgroup_memory(const char *groups, const char *mount)
{
    return least_of(&(struct limit){"memory", memory_of_group}, groups, mount);
}

double cgroup_processors(const char *groups, const char *mount)
{
    return least_of(&(struct limit){"cpu", quota_of_group}, groups, mount);
}
