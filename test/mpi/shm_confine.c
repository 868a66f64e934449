/* SPDX-License-Identifier: BSD-3-Clause */
/* shm_confine HOW PROGRAM [ARGUMENTS]: starts a program as an administrator might. HOW is no-copy:
 * the kernel refuses process_vm_readv and process_vm_writev; no-memfd: it refuses memfd_create;
 * no-futex: it lets no process sleep on shared memory; or little-memory: no file, and no memory
 * that counts as one, may be larger than 24 KiB. */
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
    int status = -1;

    if (argc < 3)
        return 2;
    if (strcmp(argv[1], "no-copy") == 0)
        status = copy_refuse();
    else if (strcmp(argv[1], "no-futex") == 0)
        status = futex_refuse();
    else if (strcmp(argv[1], "little-memory") == 0)
        status = memory_limit();
    else if (strcmp(argv[1], "no-memfd") == 0)
        status = calls_refuse(SYS_memfd_create, SYS_memfd_create, EPERM);
    if (status != 0) {
        fprintf(stderr, "shm_confine: %s: %s\n", argv[1], strerror(errno));
        return 77;
    }
    execvp(argv[2], argv + 2);
    fprintf(stderr, "shm_confine: %s: %s\n", argv[2], strerror(errno));
    return 1;
}
