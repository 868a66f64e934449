/* SPDX-License-Identifier: BSD-3-Clause */
/* shm_confine HOW PROGRAM [ARGUMENTS]: starts a program as an administrator might. HOW is
 * little-memory: no file, and no memory that counts as one, may be larger than 24 KiB; or what
 * refuse.h takes. */
#define _GNU_SOURCE
#include "test/mpi/refuse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int memory_limit(void)
{
    struct rlimit limit = {.rlim_cur = 24 << 10, .rlim_max = 24 << 10};

    return setrlimit(RLIMIT_FSIZE, &limit);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const char *how = argv[1];
    if ((strcmp(how, "little-memory") == 0 ? memory_limit() : refuse(how)) != 0) {
        fprintf(stderr, "shm_confine: %s: %s\n", how, strerror(errno));
        return 77;
    }
    execvp(argv[2], argv + 2);
    fprintf(stderr, "shm_confine: %s: %s\n", argv[2], strerror(errno));
    return 1;
}
