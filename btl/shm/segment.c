/* SPDX-License-Identifier: BSD-3-Clause */
/* Making, opening and mapping of shared segments. Nothing here knows Open MPI. */
#define _GNU_SOURCE
#include "btl/shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From <numaif.h>, which comes with a library that is not needed for one call. */
#define POLICY_PREFERRED 1

int shm_segment_random(void *memory, size_t bytes)
{
    unsigned char *at = memory;

    while (bytes > 0) {
        ssize_t got = getrandom(at, bytes, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return errno;
        at += got;
        bytes -= (size_t) got;
    }
    return 0;
}

void shm_segment_file_path(char path[64], const struct segment_nonce *nonce)
{
    int length = snprintf(path, 64, "/dev/shm/multilane-");

    for (int i = 0; i < SEGMENT_NONCE; i++)
        length += snprintf(path + length, 64 - (size_t) length, "%02x", nonce->bytes[i]);
}

/* Making a file above this limit ends the process by a signal. */
static bool size_allowed(size_t bytes)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        bytes <= limit.rlim_cur)
        return true;
    errno = EFBIG;
    return false;
}

/* Some systems refuse executable memory; older ones do not know the flag. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

static int memfd_open(void)
{
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = memfd_create("multilane", flags | MFD_NOEXEC_SEAL);

    return fd < 0 && errno == EINVAL ? memfd_create("multilane", flags) : fd;
}

/* A descriptor of memory that can neither shrink under a peer nor be inherited by exec. */
static int memory_open(enum segment_kind kind, const char *path, size_t bytes)
{
    int fd = kind == SEGMENT_MEMFD
                 ? memfd_open()
                 : open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return -1;
    if (size_allowed(bytes) && ftruncate(fd, (off_t) bytes) == 0) {
        if (kind == SEGMENT_MEMFD)
            (void) fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
        return fd;
    }
    int error = errno;
    close(fd);
    if (kind == SEGMENT_FILE)
        unlink(path);
    errno = error;
    return -1;
}

/* The lock that shm_segment_owner_lives looks for. Of the POSIX kind, which a forked child does not
 * get. */
static int life_lock(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};

    return fcntl(fd, F_SETLK, &lock);
}

bool shm_segment_owner_lives(int descriptor)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};

    /* Without such locks every owner counts as living. */
    return fcntl(descriptor, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/* Whether a process has ended and its parent has not noticed. */
static bool process_is_zombie(int32_t pid)
{
    char path[32], text[512], *name_end;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[got > 0 ? got : 0] = 0;
    /* "PID (NAME) STATE ...", and the name may hold anything. */
    name_end = strrchr(text, ')');
    return name_end && (strncmp(name_end, ") Z", 3) == 0 || strncmp(name_end, ") X", 3) == 0);
}

bool shm_segment_process_lives(int32_t pid)
{
    struct pollfd end = {.fd = (int) syscall(SYS_pidfd_open, (pid_t) pid, 0), .events = POLLIN};

    /* An older kernel has no such descriptors, a container may refuse them. */
    if (end.fd < 0)
        return kill((pid_t) pid, 0) != 0 ? errno != ESRCH : !process_is_zombie(pid);
    /* Readable as soon as the process has ended, whether or not its parent has noticed. */
    bool lives = poll(&end, 1, 0) != 1;
    close(end.fd);
    return lives;
}

/* Memory is reserved now, or the caller gets an error; touching it later never raises SIGBUS. */
static int memory_reserve(int fd, uint64_t offset, size_t bytes)
{
    while (fallocate(fd, 0, (off_t) offset, (off_t) bytes) != 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

static size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

static size_t connections_end(uint32_t connection_count)
{
    return SEGMENT_PAGE + round_up(connection_count * sizeof(struct connection), SEGMENT_PAGE);
}

/* From one channel to the next. Only address space: memory is reserved for the used part. */
static size_t channel_stride(uint32_t lines)
{
    return round_up(channel_bytes(lines), SEGMENT_ALIGN);
}

void *shm_segment_map(int descriptor, uint64_t offset, size_t bytes)
{
    struct stat status;

    if (fstat(descriptor, &status) != 0)
        return NULL;
    if (offset > (uint64_t) status.st_size || bytes > (uint64_t) status.st_size - offset) {
        errno = ESTALE;
        return NULL;
    }
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, (off_t) offset);
    if (memory == MAP_FAILED)
        return NULL;
    /* A child of fork must not move rings that its parent uses. */
    (void) madvise(memory, bytes, MADV_DONTFORK);
    return memory;
}

void shm_segment_unmap(void *memory, size_t bytes)
{
    if (memory)
        munmap(memory, bytes);
}

int shm_segment_create(struct segment *segment, enum segment_kind kind,
                       const struct segment_nonce *nonce, uint32_t connection_count,
                       uint32_t channel_count, uint32_t channel_lines, const char **failed)
{
    int error;

    memset(segment, 0, sizeof(*segment));
    segment->kind = kind;
    segment->nonce = *nonce;
    segment->connection_count = connection_count;
    segment->doorbell_words = connection_count < SEGMENT_DOORBELLS * 64
                                  ? (connection_count + 63) / 64
                                  : SEGMENT_DOORBELLS;
    segment->channel_lines = channel_lines;
    segment->fd = -1;
    segment->used = round_up(connections_end(connection_count), SEGMENT_ALIGN);
    segment->bytes = segment->used + channel_count * channel_stride(channel_lines);
    *failed = "note its rings";
    segment->free_channels = calloc(channel_count, sizeof(struct channel *));
    if (!segment->free_channels)
        return ENOMEM;
    if (kind == SEGMENT_FILE)
        shm_segment_file_path(segment->path, nonce);
    *failed = kind == SEGMENT_FILE ? "create its file" : "create it";
    segment->fd = memory_open(kind, segment->path, segment->bytes);
    if (segment->fd < 0) {
        error = errno;
        free(segment->free_channels);
        segment->free_channels = NULL;
        return error;
    }
    *failed = "reserve memory for it";
    error = memory_reserve(segment->fd, 0, connections_end(connection_count));
    if (error == 0) {
        *failed = "map it";
        segment->header = shm_segment_map(segment->fd, 0, segment->bytes);
        error = !segment->header ? errno : 0;
    }
    if (error == 0) {
        *failed = "lock it";
        error = life_lock(segment->fd) != 0 ? errno : 0;
    }
    if (error != 0) {
        shm_segment_destroy(segment);
        return error;
    }
    segment->connections = shm_segment_connections(segment->header);
    segment->header->layout = SEGMENT_LAYOUT;
    segment->header->connection_count = connection_count;
    /* Release: a process that opens it and sees the state sees the rest (segment_is). */
    memcpy(&segment->header->nonce, nonce, sizeof(*nonce));
    atomic_store_explicit(&segment->header->state, SEGMENT_OPEN, memory_order_release);
    return 0;
}

void shm_segment_destroy(struct segment *segment)
{
    if (segment->fd < 0)
        return;
    if (segment->kind == SEGMENT_FILE)
        unlink(segment->path);
    shm_segment_unmap(segment->header, segment->bytes);
    close(segment->fd);
    free(segment->free_channels);
    segment->free_channels = NULL;
    segment->header = NULL;
    segment->fd = -1;
}

static void lines_place(struct channel *channel, uint32_t lines, int node)
{
    unsigned long nodes[16] = {0};
    unsigned bits = sizeof(nodes[0]) * CHAR_BIT;

    if (node < 0 || (unsigned) node >= sizeof(nodes) * CHAR_BIT)
        return;
    nodes[(unsigned) node / bits] = 1ul << (unsigned) node % bits;
    /* A hint: with one node, or without the right, the memory stays where it is. */
    (void) syscall(SYS_mbind, channel, channel_bytes(lines), POLICY_PREFERRED, nodes,
                   sizeof(nodes) * CHAR_BIT, 0);
}

struct channel *shm_segment_channel_get(struct segment *segment, int node)
{
    size_t bytes = channel_bytes(segment->channel_lines);
    struct channel *channel;

    if (segment->free_channel_count > 0) {
        channel = segment->free_channels[--segment->free_channel_count];
        memset(channel, 0, bytes);
        return channel;
    }
    if (segment->bytes - segment->used < bytes) {
        errno = ENOSPC;
        return NULL;
    }
    channel = (struct channel *) ((unsigned char *) segment->header + segment->used);
    lines_place(channel, segment->channel_lines, node);
    errno = memory_reserve(segment->fd, segment->used, bytes);
    if (errno != 0)
        return NULL;
    segment->used += channel_stride(segment->channel_lines);
    return channel;
}

void shm_segment_channel_put(struct segment *segment, struct channel *channel)
{
    segment->free_channels[segment->free_channel_count++] = channel;
}

/* Whether the opened file is the right segment: the process number may belong to another process in
 * another namespace, and a descriptor number may be used again. */
static bool segment_is(int descriptor, const struct segment_nonce *nonce)
{
    struct segment_header *header = shm_segment_map(descriptor, 0, SEGMENT_PAGE);

    if (!header)
        return false;
    bool same = atomic_load_explicit(&header->state, memory_order_acquire) != 0 &&
                header->layout == SEGMENT_LAYOUT &&
                memcmp(&header->nonce, nonce, sizeof(*nonce)) == 0;
    shm_segment_unmap(header, SEGMENT_PAGE);
    return same;
}

int shm_segment_open(int32_t pid, int32_t fd, const struct segment_nonce *nonce)
{
    struct stat status;
    char path[64];

    if (fd < 0)
        shm_segment_file_path(path, nonce);
    else
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int) pid, (int) fd);
    /* No O_NOFOLLOW for /proc, where every entry is a link; in /dev/shm no link is followed. And
     * O_NONBLOCK: the descriptor of an unrelated process may be a pipe. */
    int descriptor =
        open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (fd < 0 ? O_NOFOLLOW : 0));
    if (descriptor < 0)
        return -1;
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && segment_is(descriptor, nonce))
        return descriptor;
    close(descriptor);
    errno = ESTALE;
    return -1;
}

struct segment_header *shm_segment_map_header(int descriptor, size_t *bytes,
                                              uint32_t *connection_count)
{
    struct segment_header *header = shm_segment_map(descriptor, 0, SEGMENT_PAGE);

    if (!header)
        return NULL;
    *connection_count = *(volatile uint32_t *) &header->connection_count;
    shm_segment_unmap(header, SEGMENT_PAGE);
    if (*connection_count == 0 || *connection_count > SEGMENT_CONNECTIONS_MAX) {
        errno = ESTALE;
        return NULL;
    }
    *bytes = connections_end(*connection_count);
    return shm_segment_map(descriptor, 0, *bytes);
}
