/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments and rings where a page of memory has 4, 16 or 64 KiB, as on arm64: a kernel of that kind
 * is played by mmap and madvise, which refuse what is no multiple of the page. */
#define _GNU_SOURCE
#include "btl/shm/segment.h"
#include "common/lane/host.h"
#include "test/unit/check.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CONNECTIONS 100u
#define CHANNELS    3u
#define LINES       256u
#define ROOM        ((size_t) 1 << 20)

static size_t page;
static unsigned refused, mapped;

/* In place of the C library's, by the linker's --wrap. */
void *__real_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_madvise(void *address, size_t bytes, int advice);
int __wrap_madvise(void *address, size_t bytes, int advice);

/* At a multiple of the page, like the kernel that is played. */
void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (!page || address)
        return __real_mmap(address, bytes, protection, flags, fd, offset);
    if ((size_t) offset % page != 0) {
        refused++;
        errno = EINVAL;
        return MAP_FAILED;
    }
    unsigned char *room =
        __real_mmap(NULL, bytes + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return room;
    unsigned char *at = room + (page - (uintptr_t) room % page) % page;
    mapped++;
    return __real_mmap(at, bytes, protection, flags | MAP_FIXED, fd, offset);
}

int __wrap_madvise(void *address, size_t bytes, int advice)
{
    if (page && (uintptr_t) address % page != 0) {
        refused++;
        errno = EINVAL;
        return -1;
    }
    return __real_madvise(address, bytes, advice);
}

/* What the two ends of a ring do: one makes it, the other maps it and sees what is written. */
static void rings_are_shared(enum segment_kind kind)
{
    struct segment segment;
    struct segment_nonce nonce;
    const char *failed;
    CHECK(host_random(&nonce, sizeof(nonce)), "%s", strerror(errno));
    int error = shm_segment_create(&segment, kind, &nonce, CONNECTIONS, ROOM, -1, &failed);
    CHECK(error == 0, "%zu: cannot %s: %s", page, failed, strerror(error));
    if (error != 0)
        return;
    for (unsigned i = 0; i < CHANNELS; i++) {
        struct channel *mine = shm_segment_channel_get(&segment, LINES, -1, -1), *theirs;
        CHECK(mine, "%zu, ring %u: %s", page, i, strerror(errno));
        if (!mine)
            break;
        memset(mine->lines, (int) i + 1, ring_bytes(LINES));
        theirs = shm_segment_map(segment.fd, shm_segment_channel_offset(&segment, mine),
                                 channel_bytes(LINES));
        CHECK(theirs, "%zu, ring %u cannot be mapped: %s", page, i, strerror(errno));
        if (!theirs)
            continue;
        CHECK(memcmp(mine, theirs, channel_bytes(LINES)) == 0, "%zu, ring %u differs", page, i);
        munmap(theirs, channel_bytes(LINES));
    }
    size_t bytes;
    uint32_t connections;
    struct segment_header *header = shm_segment_map_header(segment.fd, &bytes, &connections);
    CHECK(header && connections == CONNECTIONS, "%zu: the header", page);
    munmap(header, bytes);
    CHECK(refused == 0, "%zu: %u calls were refused", page, refused);
    shm_segment_destroy(&segment);
}

/* That the kernel that is played is one: it does not take what would be right for smaller pages. */
static void a_wrong_place_is_refused(void)
{
    int fd = memfd_create("pages", MFD_CLOEXEC);
    CHECK(ftruncate(fd, 1 << 20) == 0, "%s", strerror(errno));
    CHECK(!shm_segment_map(fd, page / 2, 4096), "%zu: mapped at half a page", page);
    CHECK(refused == 1, "%zu: %u", page, refused);
    refused = 0;
    close(fd);
}

int main(void)
{
    static const size_t sizes[] = {4096, 16384, 65536};
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        page = sizes[i];
        rings_are_shared(SEGMENT_MEMFD);
        rings_are_shared(SEGMENT_FILE);
        a_wrong_place_is_refused();
    }
    CHECK(mapped >= 3 * 2 * (2 + CHANNELS), "%u mappings", mapped);
    return check_end();
}
