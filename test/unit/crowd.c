/* SPDX-License-Identifier: BSD-3-Clause */
/* When the processes of a node are a crowd: by what they may run on, and by what made-up cgroups
 * allow. */
#define _GNU_SOURCE
#include "check.h"
#include "common/lane/cgroup.h"
#include "common/lane/crowd.h"

#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char mount[64] = "crowd.XXXXXX";

static void file_write(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", mount, name);
    for (char *slash = strchr(path + strlen(mount) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void) mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    CHECK(file != NULL, "%s", path);
    if (file) {
        fputs(text, file);
        fclose(file);
    }
}

static void quota_is(const char *groups, double expected)
{
    double found = cgroup_processors(groups, mount);
    CHECK(found == expected, "%s has %g processors, not %g", groups, found, expected);
}

static void quotas(void)
{
    quota_is("0::/\n", INFINITY);
    quota_is("", INFINITY);
    quota_is("nonsense", INFINITY);
    quota_is("0::", INFINITY);
    file_write("a/b/c/cpu.max", "max 100000\n");
    quota_is("0::/a/b/c\n", INFINITY);
    file_write("a/cpu.max", "350000 100000\n");
    quota_is("0::/a/b/c\n", 3.5);
    quota_is("0::/a\n", 3.5);
    quota_is("0::/other\n", INFINITY);
    file_write("a/b/cpu.max", "50000 100000\n");
    quota_is("3:memory:/a\n0::/a/b/c\n", 0.5);
    quota_is("0::/a\n", 3.5);
    file_write("a/b/cpu.max", "50000");
    quota_is("0::/a/b\n", 3.5);
    file_write("a/b/cpu.max", "");
    quota_is("0::/a/b\n", 3.5);
    /* Version 1. */
    file_write("cpu,cpuacct/x/cpu.cfs_quota_us", "200000\n");
    file_write("cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
    quota_is("5:memory:/x\n4:cpu,cpuacct:/x/y\n", 2);
    quota_is("4:cpuset:/x\n", INFINITY);
    file_write("cpu/z/cpu.cfs_quota_us", "-1\n");
    file_write("cpu/z/cpu.cfs_period_us", "100000\n");
    quota_is("4:cpuacct,cpu:/z\n", INFINITY);
    /* A container's own group is where the cgroups are mounted, whatever it is called. */
    file_write("cpu.max", "100000 100000\n");
    quota_is("0::/docker/0123\n", 1);
    quota_is("0::/../..\n", 1);
}

static void memory_is(const char *groups, double expected)
{
    double found = cgroup_memory(groups, mount);
    CHECK(found == expected, "%s has %g bytes, not %g", groups, found, expected);
}

/* The limit is the least on the way up. */
static void memory(void)
{
    memory_is("0::/job/step\n", INFINITY);
    file_write("job/step/memory.max", "max\n");
    memory_is("0::/job/step\n", INFINITY);
    file_write("job/memory.max", "1073741824\n");
    memory_is("0::/job/step\n", 1073741824);
    file_write("job/step/memory.max", "4096\n");
    memory_is("0::/job/step\n", 4096);
    memory_is("0::/job\n", 1073741824);
    /* A container whose own group is the mount, by a path that is not there. */
    file_write("memory.max", "8192\n");
    memory_is("0::/../elsewhere/container", 8192);
    /* Version 1, beside an empty hierarchy of version 2; other controllers say nothing. */
    file_write("memory.max", "max\n");
    file_write("memory/old/memory.limit_in_bytes", "65536\n");
    memory_is("5:cpuset:/old\n4:hugetlb,memory:/old\n0::/\n", 65536);
    memory_is("5:memoryless:/old\n0::/\n", INFINITY);
    /* Nothing, and nonsense. */
    memory_is("", INFINITY);
    memory_is("no colons\n0:one\n", INFINITY);
}

static void name_too_long(void)
{
    static char groups[4096];
    memset(groups, 'x', sizeof(groups) - 1);
    memcpy(groups, "0::/", 4);
    quota_is(groups, 1);
}

#define LOOKS     500
#define WRONG_MAX 5
#define THERE_US  5000
#define AROUND_US 200

/* Two processes that have a processor each; one of them is at the other's now and then, as hwloc is
 * when it looks at each processor. It stops there when it is preempted, so a few may be wrong. */
static void neighbour_looks_around(const cpu_set_t *here, const cpu_set_t *there)
{
    int status = -1;
    pid_t around = fork();
    while (around == 0) {
        sched_setaffinity(0, sizeof(*there), there);
        usleep(THERE_US);
        sched_setaffinity(0, sizeof(*here), here);
        usleep(AROUND_US);
    }
    pid_t child = fork();
    if (child == 0) {
        int wrong = sched_setaffinity(0, sizeof(*here), here) == 0 ? 0 : LOOKS;
        for (int look = 0; look < LOOKS; look++, usleep(100))
            wrong += crowd_processors(2) < 2;
        if (wrong > WRONG_MAX)
            fprintf(stderr, "%d of %d times a crowd\n", wrong, LOOKS);
        _exit(wrong > WRONG_MAX);
    }
    (void) waitpid(child, &status, 0);
    CHECK(status == 0, "two processes are a crowd while one looks at the processor of the other");
    (void) kill(around, SIGKILL);
    (void) waitpid(around, NULL, 0);
}

/* The other of two processes, until it is ended. */
static pid_t bound_beside(const cpu_set_t *there)
{
    pid_t beside = fork();
    if (beside == 0) {
        (void) sched_setaffinity(0, sizeof(*there), there);
        pause();
        _exit(1);
    }
    return beside;
}

/* A script is between a process and the launcher; each process has a processor. */
static void script_between(const char *self, const cpu_set_t *here, const cpu_set_t *there)
{
    char command[512];
    int status = -1;
    pid_t beside = bound_beside(there), child = fork();
    if (child == 0) {
        setenv("PMIX_NAMESPACE", "job", 1);
        setenv("PMIX_RANK", "0", 1);
        snprintf(command, sizeof(command), "%s of-two; exit $?", self);
        if (sched_setaffinity(0, sizeof(*here), here) == 0)
            execl("/bin/sh", "sh", "-c", command, (char *) NULL);
        _exit(2);
    }
    (void) waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) >= 126)
        fprintf(stderr, "crowd: no shell can start this program here, as under qemu-user\n");
    else
        CHECK(status == 0, "a process that a script starts takes two for a crowd");
    (void) kill(beside, SIGKILL);
    (void) waitpid(beside, NULL, 0);
}

static void processors(const char *self)
{
    cpu_set_t mine, other;
    CHECK(crowd_processors(1) >= 1, "one process is a crowd");
    CHECK(crowd_processors(100000) < 100000, "any number of processes is no crowd");
    /* A process that is bound alone, beside others that are not, is no crowd of two: the test's
     * launcher has all. */
    CPU_ZERO(&mine);
    CPU_ZERO(&other);
    if (sched_getaffinity(0, sizeof(mine), &mine) != 0 || CPU_COUNT(&mine) < 2)
        return;
    for (int cpu = 0; CPU_COUNT(&mine) > 1; cpu++)
        if (CPU_ISSET(cpu, &mine)) {
            CPU_CLR(cpu, &mine);
            CPU_ZERO(&other);
            CPU_SET(cpu, &other);
        }
    neighbour_looks_around(&mine, &other);
    script_between(self, &mine, &other);
    int status = -1;
    pid_t child = fork();
    if (child == 0) /* bound, while the launcher has not started the other one */
        _exit(sched_setaffinity(0, sizeof(mine), &mine) == 0 && crowd_processors(2) >= 2 ? 0 : 1);
    (void) waitpid(child, &status, 0);
    CHECK(status == 0, "the first of two processes that each have a processor is a crowd");
    if (sched_setaffinity(0, sizeof(mine), &mine) != 0)
        return;
    child = fork();
    if (child == 0) /* beside which there is no other: the launcher is bound, as `taskset` does */
        _exit(crowd_processors(2) < 2 ? 0 : 1);
    (void) waitpid(child, &status, 0);
    CHECK(status == 0, "two processes that a cpuset gives one processor are no crowd");
}

int main(int count, char **arguments)
{
    if (count > 1) /* script_between */
        return crowd_processors(2) >= 2 ? 0 : 1;
    CHECK(mkdtemp(mount) != NULL, "no folder");
    quotas();
    memory();
    name_too_long();
    processors(arguments[0]);
    check_folder_remove(mount);
    return check_end();
}
