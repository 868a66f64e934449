/* SPDX-License-Identifier: BSD-3-Clause */
/* Processors that this job may use here. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "common/lane/crowd.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CPUS_MAX       8192
#define PATH_BYTES     1024
#define CHILDREN_BYTES 65536

/* False: there is no such file. */
static bool file_read(const char *path, char *text, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, bytes - 1);

    if (fd >= 0)
        close(fd);
    text[got < 0 ? 0 : got] = '\0';
    return got >= 0;
}

/* --- quotas ----------------------------------------------------------------------------------- */

/* Processors of "quota period" in microseconds; infinite for "max", -1 and nonsense. */
static double quota_parse(const char *quota, const char *period)
{
    double most = strtod(quota, NULL), each = strtod(period, NULL);

    return most > 0 && each > 0 ? most / each : INFINITY;
}

/* Of one cgroup: version 2 has one file, version 1 two. */
static double quota_of_group(const char *folder)
{
    char path[PATH_BYTES + 32], text[64], period[64];

    snprintf(path, sizeof(path), "%s/cpu.max", folder);
    if (file_read(path, text, sizeof(text))) {
        const char *blank = strchr(text, ' ');

        return quota_parse(text, blank ? blank : "");
    }
    snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", folder);
    if (!file_read(path, text, sizeof(text)))
        return INFINITY;
    snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", folder);
    (void) file_read(path, period, sizeof(period));
    return quota_parse(text, period);
}

/* Of the group `mount``group` and all above it, to the mount itself: a container often has only
 * that one, and sees a name that leads nowhere here. */
static double quota_of_levels(const char *mount, const char *group)
{
    char folder[PATH_BYTES];
    size_t top = strlen(mount);
    double least = INFINITY;

    if (snprintf(folder, sizeof(folder), "%s%s", mount, group) >= (int) sizeof(folder))
        folder[top] = '\0';
    for (;;) {
        least = fmin(least, quota_of_group(folder));
        char *slash = strrchr(folder, '/');
        if (strlen(folder) <= top || !slash || slash < folder + top)
            return least;
        *slash = '\0';
    }
}

/* Whether a list of controllers has "cpu". Version 2 has an empty list. */
static bool controls_cpu(const char *list)
{
    for (; *list; list += strcspn(list, ","), list += *list == ',')
        if (strncmp(list, "cpu", 3) == 0 && (list[3] == ',' || list[3] == '\0'))
            return true;
    return false;
}

/* Of a line "number:controllers:group". */
static double quota_of_line(char *line, const char *mount)
{
    char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
    char place[PATH_BYTES];

    if (!group)
        return INFINITY;
    *group++ = '\0';
    list++;
    if (*list == '\0')
        return quota_of_levels(mount, group);
    if (!controls_cpu(list))
        return INFINITY;
    snprintf(place, sizeof(place), "%s/%s", mount, list);
    double named = quota_of_levels(place, group);
    snprintf(place, sizeof(place), "%s/cpu", mount);
    return fmin(named, quota_of_levels(place, group));
}

double crowd_quota(const char *groups, const char *mount)
{
    double least = INFINITY;
    char *copy = strdup(groups), *rest = copy, *line;

    while (copy && (line = strsep(&rest, "\n")))
        least = fmin(least, quota_of_line(line, mount));
    free(copy);
    return least;
}

/* --- processors ------------------------------------------------------------------------------- */

struct processors {
    size_t bytes;
    cpu_set_t *all, *one; /* of all processes, and of one of them */
    uint32_t processes;   /* how many those are */
};

static void affinity_add(pid_t pid, struct processors *found)
{
    CPU_ZERO_S(found->bytes, found->one);
    if (sched_getaffinity(pid, found->bytes, found->one) != 0)
        return;
    CPU_OR_S(found->bytes, found->all, found->all, found->one);
    found->processes++;
}

/* What the children of a thread of our launcher may run on, if the kernel says who they are. */
static void children_add(pid_t launcher, const char *thread, struct processors *found)
{
    char path[64], *text = malloc(CHILDREN_BYTES), *rest = text, *word;

    snprintf(path, sizeof(path), "/proc/%d/task/%.20s/children", (int) launcher, thread);
    bool good = text && file_read(path, text, CHILDREN_BYTES);
    while (good && (word = strsep(&rest, " ")))
        if (*word)
            affinity_add(atoi(word), found);
    free(text);
}

/* All processes of the launcher: where they are bound, each has processors of its own. Where some
 * are not found, or not started yet, what the launcher may run on stands for them. */
static void neighbours_add(struct processors *found, uint32_t processes)
{
    pid_t launcher = getppid();
    char path[64];
    struct dirent *thread;

    snprintf(path, sizeof(path), "/proc/%d/task", (int) launcher);
    DIR *threads = opendir(path);
    while (threads && (thread = readdir(threads)))
        if (thread->d_name[0] != '.')
            children_add(launcher, thread->d_name, found);
    if (threads)
        closedir(threads);
    if (found->processes < processes && launcher > 0)
        affinity_add(launcher, found);
}

/* Together, of this process and those beside it. */
static double processors_allowed(uint32_t processes)
{
    struct processors found = {CPU_ALLOC_SIZE(CPUS_MAX), CPU_ALLOC(CPUS_MAX), CPU_ALLOC(CPUS_MAX),
                               0};
    int count = 0;

    if (found.all && found.one) {
        CPU_ZERO_S(found.bytes, found.all);
        affinity_add(0, &found);
        found.processes = 0; /* it is one of the launcher's */
        neighbours_add(&found, processes);
        count = CPU_COUNT_S(found.bytes, found.all);
    }
    CPU_FREE(found.all);
    CPU_FREE(found.one);
    return count > 0 ? count : (double) sysconf(_SC_NPROCESSORS_ONLN);
}

double crowd_processors(uint32_t processes)
{
    char groups[4096];
    double quota = INFINITY;

    if (file_read("/proc/self/cgroup", groups, sizeof(groups)))
        quota = crowd_quota(groups, "/sys/fs/cgroup");
    return fmin(processors_allowed(processes), quota);
}
