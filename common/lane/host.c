/* SPDX-License-Identifier: BSD-3-Clause */
/* Which kernel and namespaces, and calls that some kernels refuse. */
#include "common/lane/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/lane/kernel_text.h"
#include "common/model/number.h"

uint64_t host_namespace(const char *kind)
{
    struct stat status;
    const struct words path = words_of("/proc/self/ns/%s", kind);

    return stat(path.text, &status) == 0 ? (uint64_t) status.st_ino : 0;
}

void host_boot(char text[HOST_BOOT_BYTES])
{
    (void) kernel_line(text, HOST_BOOT_BYTES, "/proc/sys/kernel/random/boot_id");
}

/* From the kernel, or where a filter refuses that call from the device. */
static ssize_t random_read(void *memory, size_t bytes)
{
    ssize_t got = getrandom(memory, bytes, 0);

    if (got >= 0 || errno == EINTR)
        return got;
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    got = read(fd, memory, bytes);
    close(fd);
    return got;
}

bool host_random(void *memory, size_t bytes)
{
    unsigned char *at = memory;

    while (bytes > 0) {
        errno = EIO; /* of a device that is at its end */
        ssize_t got = random_read(at, bytes);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        bytes -= (size_t) got;
    }
    return true;
}

/* Some systems refuse executable memory; older ones do not know the flag. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

int host_memory(const char *name)
{
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);

    if (fd < 0 && errno == EINVAL)
        fd = memfd_create(name, flags);
    /* The kernel makes it for all, and /proc alone keeps others away. A filter may refuse this. */
    if (fd >= 0)
        (void) fchmod(fd, S_IRUSR | S_IWUSR);
    return fd;
}

bool host_allows_file(size_t bytes)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        bytes <= limit.rlim_cur)
        return true;
    errno = EFBIG;
    return false;
}
