/* SPDX-License-Identifier: BSD-3-Clause */
/* Processors that this job may use here. */
#include "common/lane/crowd.h"

#include <dirent.h>
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/lane/cgroup.h"
#include "common/lane/kernel_text.h"
#include "common/model/number.h"

#define CPUS_MAX          8192
#define CHILDREN_BYTES    65536
#define ENVIRONMENT_BYTES (256u << 10)
#define WRAPPERS_MOST     8

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
    char *text = malloc(CHILDREN_BYTES), *rest = text, *word;
    bool good = text && kernel_text(text, CHILDREN_BYTES, "/proc/%d/task/%s/children",
                                    (int) launcher, thread) > 0;

    while (good && (word = strsep(&rest, " ")))
        if (*word)
            affinity_add(atoi(word), found);
    free(text);
}

/* Does this environment have the variable, with the value that it has in ours? */
static bool has_variable(const char *environment, size_t bytes, const char *name)
{
    const char *value = getenv(name);
    char wanted[256];

    if (!value)
        return false;
    /* With the zero at its end. */
    int length = snprintf(wanted, sizeof(wanted), "%s=%s", name, value) + 1;
    return length <= (int) sizeof(wanted) && memmem(environment, bytes, wanted, (size_t) length);
}

/* Is the process started as this rank, as we are? It may be another user's, and keep that to
 * itself. */
static bool is_wrapper(pid_t pid)
{
    char *environment = malloc(ENVIRONMENT_BYTES);
    ssize_t bytes = environment
                        ? kernel_text(environment, ENVIRONMENT_BYTES, "/proc/%d/environ", (int) pid)
                        : -1;
    bool is_one = bytes > 0 && has_variable(environment, (size_t) bytes, "PMIX_NAMESPACE") &&
                  has_variable(environment, (size_t) bytes, "PMIX_RANK");

    free(environment);
    return is_one;
}

/* Between us and the launcher may be scripts and programs such as time or gdb. It has started them
 * as this rank, and is none itself. */
static pid_t launcher_find(void)
{
    pid_t pid = getppid();

    for (int i = 0; i < WRAPPERS_MOST && is_wrapper(pid); i++)
        pid = kernel_parent((int) pid);
    return pid;
}

/* What does not change while a process starts. To read it takes forty system calls: the component
 * that asks first reads it for all, since the dynamic linker binds this name to the first one's. It
 * is kept as long as the components are loaded. By the thread that starts MPI. */
struct crowd_start {
    bool is_found;
    pid_t parent; /* of the process then: of a child of fork() it is another one */
    pid_t launcher;
    double quota; /* of processors */
};
extern struct crowd_start multilane_crowd_start_v1;
__attribute__((visibility("default"), weak)) struct crowd_start multilane_crowd_start_v1;

static struct crowd_start start_find(void)
{
    const pid_t parent = getppid();

    if (!multilane_crowd_start_v1.is_found || multilane_crowd_start_v1.parent != parent)
        multilane_crowd_start_v1 =
            (struct crowd_start){true, parent, launcher_find(), cgroup_processors(NULL, NULL)};
    return multilane_crowd_start_v1;
}

/* All processes of the launcher: where they are bound, each has processors of its own. Where some
 * are not found, or not started yet, what the launcher may run on stands for them. */
static void neighbours_add(struct processors *found, pid_t launcher, uint32_t processes)
{
    struct dirent *thread;
    DIR *threads = opendir(words_of("/proc/%d/task", (int) launcher).text);

    while (threads && (thread = readdir(threads)))
        if (thread->d_name[0] != '.')
            children_add(launcher, thread->d_name, found);
    if (threads)
        closedir(threads);
    if (found->processes < processes && launcher > 0)
        affinity_add(launcher, found);
}

/* Of the launcher's processes together, at this moment; with none of them, of the launcher. */
static double processors_now(pid_t launcher, uint32_t processes)
{
    struct processors found = {CPU_ALLOC_SIZE(CPUS_MAX), CPU_ALLOC(CPUS_MAX), CPU_ALLOC(CPUS_MAX),
                               0};
    int count = 0;

    if (found.all && found.one) {
        CPU_ZERO_S(found.bytes, found.all);
        affinity_add(processes == 0 ? launcher : 0, &found);
        found.processes = 0; /* it is one of the launcher's */
        if (processes > 0)
            neighbours_add(&found, launcher, processes);
        count = CPU_COUNT_S(found.bytes, found.all);
    }
    CPU_FREE(found.all);
    CPU_FREE(found.one);
    return count > 0 ? count : (double) sysconf(_SC_NPROCESSORS_ONLN);
}

/* A process that begins may for a moment be bound elsewhere than it will be: Open MPI's hwloc goes
 * from processor to processor to look at each. Where the launcher has processors enough, they are a
 * crowd only if they are one each time. */
#define LOOKS    4
#define PAUSE_NS 1000000

double crowd_processors(uint32_t processes)
{
    const struct timespec pause = {0, PAUSE_NS};
    const struct crowd_start start = start_find();
    double enough = fmin(fmin(start.quota, processors_now(start.launcher, 0)), processes);
    double most = processors_now(start.launcher, processes);

    for (int look = 1; look < LOOKS && most < enough; look++) {
        nanosleep(&pause, NULL);
        most = fmax(most, processors_now(start.launcher, processes));
    }
    return fmin(most, start.quota);
}
