/* SPDX-License-Identifier: BSD-3-Clause */
/* The limit of a control group is the least on the way up, in both versions of control groups. */
#include "common/lane/memory_limit.h"
#include "test/unit/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char top[64] = "/tmp/memory_limit.XXXXXX";

static const char *in_top(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", top, name);
    return path;
}

static void folder_make(const char *name)
{
    CHECK(mkdir(in_top(name), 0700) == 0, "%s: %s", name, strerror(errno));
}

static void file_write(const char *name, const char *text)
{
    FILE *file = fopen(in_top(name), "we");

    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0, "%s: %s", name, strerror(errno));
}

static void expect(const char *groups, uint64_t limit)
{
    char path[256];

    file_write("groups", groups);
    strcpy(path, in_top("groups"));
    uint64_t found = memory_limit_read(path, top);
    CHECK(found == limit, "%s gives %" PRIu64 ", not %" PRIu64, groups, found, limit);
}

int main(void)
{
    if (!mkdtemp(top))
        return 1;
    folder_make("job");
    folder_make("job/step");
    folder_make("memory");
    folder_make("memory/old");
    expect("0::/job/step\n", MEMORY_LIMIT_NONE);
    file_write("job/step/memory.max", "max\n");
    expect("0::/job/step\n", MEMORY_LIMIT_NONE);
    file_write("job/memory.max", "1073741824\n");
    expect("0::/job/step\n", UINT64_C(1) << 30);
    file_write("job/step/memory.max", "4096\n");
    expect("0::/job/step\n", 4096);
    expect("0::/job\n", UINT64_C(1) << 30);
    /* A container whose own group is the mount, by a path that is not there. */
    file_write("memory.max", "8192\n");
    expect("0::/../elsewhere/container", 8192);
    /* Version 1, beside an empty hierarchy of version 2; other controllers say nothing. */
    file_write("memory.max", "max\n");
    file_write("memory/old/memory.limit_in_bytes", "65536\n");
    expect("5:cpuset:/old\n4:hugetlb,memory:/old\n0::/\n", 65536);
    expect("5:memoryless:/old\n0::/\n", MEMORY_LIMIT_NONE);
    /* Nothing, and nonsense. */
    expect("", MEMORY_LIMIT_NONE);
    expect("no colons\n0:one\n", MEMORY_LIMIT_NONE);
    CHECK(memory_limit_read("/nowhere", top) == MEMORY_LIMIT_NONE, "no file");
    return check_end();
}
