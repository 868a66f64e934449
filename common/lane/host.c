/* SPDX-License-Identifier: BSD-3-Clause */
/* Which kernel and namespaces. */
#include "common/lane/host.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t host_namespace(const char *kind)
{
    char path[64];
    struct stat status;

    snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
    return stat(path, &status) == 0 ? (uint64_t) status.st_ino : 0;
}

void host_boot(char text[HOST_BOOT_BYTES])
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, HOST_BOOT_BYTES - 1);

    if (fd >= 0)
        close(fd);
    text[got < 0 ? 0 : got] = '\0';
    text[strcspn(text, "\n")] = '\0';
}
