/* SPDX-License-Identifier: BSD-3-Clause */
/* Which kernel and namespaces. */
#include "common/lane/host.h"

#include <stdio.h>
#include <sys/stat.h>

#include "common/lane/kernel_text.h"

uint64_t host_namespace(const char *kind)
{
    char path[64];
    struct stat status;

    snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
    return stat(path, &status) == 0 ? (uint64_t) status.st_ino : 0;
}

void host_boot(char text[HOST_BOOT_BYTES])
{
    (void) kernel_line(text, HOST_BOOT_BYTES, "/proc/sys/kernel/random/boot_id");
}
