/* SPDX-License-Identifier: BSD-3-Clause */
/* Making, opening and mapping of shared segments. Nothing here knows Open MPI. */
#include "btl/shm/segment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/lane/host.h"
#include "common/lane/kernel_text.h"

/* From <numaif.h>, which comes with a library that is not needed for one call. */
#define POLICY_PREFERRED       1
#define POLICY_F_NODES_ALLOWED 4

void shm_segment_file_path(char path[64], const struct segment_nonce *nonce)
{
    int length = snprintf(path, 64, "/dev/shm/multilane-");

    for (int i = 0; i < SEGMENT_NONCE; i++)
        length += snprintf(path + length, 64 - (size_t) length, "%02x", nonce->bytes[i]);
}

/* Whether the call itself is refused, as by a filter, and not what it was to do. */
static bool is_refused(int error)
{
    return error == EPERM || error == ENOSYS || error == EOPNOTSUPP;
}

/* Whether peers may map it: it is sealed, or cannot be, as a file in /dev/shm, which is trusted to
 * stay. Where the question is refused it is trusted as well. */
static bool memory_stays(int descriptor)
{
    int seals = fcntl(descriptor, F_GET_SEALS);

    return seals < 0 ? is_refused(errno) : (seals & (F_SEAL_SHRINK | F_SEAL_SEAL)) != 0;
}

/* The descriptor, if its memory could be made so large; closes it otherwise. */
static int memory_sized(int fd, size_t bytes)
{
    if (fd < 0 || (host_allows_file(bytes) && ftruncate(fd, (off_t) bytes) == 0))
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* A descriptor of memory without a name that can neither shrink under a peer nor be inherited by
 * exec. Where a filter refuses memfd_create or seals it is a file that was never in its folder. */
static int memory_open(size_t bytes)
{
    int fd = memory_sized(host_memory("multilane"), bytes);

    if (fd >= 0) {
        (void) fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
        if (memory_stays(fd))
            return fd;
        close(fd);
    }
    return memory_sized(open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), bytes);
}

static int file_open(const char *path, size_t bytes)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return -1;
    fd = memory_sized(fd, bytes);
    int error = errno;
    if (fd < 0)
        unlink(path);
    errno = error;
    return fd;
}

/* The lock that shm_segment_owner_lives looks for. Of the POSIX kind, which a forked child does not
 * get. */
static struct flock lock_of(uint64_t offset)
{
    return (struct flock){
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t) offset, .l_len = 1};
}

/* Where locks are refused there is none, and *locked says so. */
static int life_lock(int fd, uint64_t offset, bool *locked)
{
    struct flock lock = lock_of(offset);

    *locked = fcntl(fd, F_SETLK, &lock) == 0;
    return *locked || is_refused(errno) ? 0 : errno;
}

static bool is_locked(int descriptor, uint64_t offset)
{
    struct flock lock = lock_of(offset);

    /* Without such locks every owner counts as living. */
    return fcntl(descriptor, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

bool shm_segment_owner_lives(int descriptor)
{
    return is_locked(descriptor, 0);
}

/* The state of a process, a letter, and when it began; 0: /proc does not say. A process whose first
 * thread has ended and others have not is a zombie by its letter, with more than one thread: it
 * gets 'S'. */
static char process_state(int32_t pid, uint64_t *started)
{
    char text[1024], state;
    unsigned long long ticks = 0;
    long threads = 0;
    const char *stat = kernel_process(pid, text, sizeof(text));

    *started = 0;
    /* The threads are the 20th field, the beginning is the 22nd. */
    if (!stat || sscanf(stat,
                        "%c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                        "%ld %*s %llu",
                        &state, &threads, &ticks) < 1)
        return 0;
    *started = ticks;
    return state == 'Z' && threads > 1 ? 'S' : state;
}

/* Whether /proc shows that the process has ended, noticed by its parent or not, or that it is
 * another one by now. */
static bool process_is_over(int32_t pid, uint64_t started)
{
    uint64_t found;
    char state = process_state(pid, &found);

    return state == 'Z' || state == 'X' || (started != 0 && found != 0 && found != started);
}

bool shm_segment_process_lives(int32_t pid, uint64_t started)
{
    struct pollfd end = {.fd = (int) syscall(SYS_pidfd_open, (pid_t) pid, 0), .events = POLLIN};

    /* An older kernel has no such descriptors, a container may refuse them. */
    if (end.fd < 0)
        return errno != ESRCH &&
               (kill((pid_t) pid, 0) != 0 ? errno != ESRCH : !process_is_over(pid, started));
    /* Readable as soon as the process has ended, whether or not its parent has noticed. Asked after
     * /proc: if it lives still, /proc spoke of the same process. */
    bool over = process_is_over(pid, started);
    bool lives = poll(&end, 1, 0) != 1 && !over;
    close(end.fd);
    return lives;
}

uint64_t shm_segment_process_started(int32_t pid)
{
    uint64_t started;

    (void) process_state(pid, &started);
    return started;
}

void shm_segment_identify(int descriptor, struct segment_identity *identity)
{
    struct stat status = {.st_dev = 0};

    (void) fstat(descriptor, &status);
    identity->device = (uint64_t) status.st_dev;
    identity->inode = (uint64_t) status.st_ino;
}

/* Only if it is a file: the descriptor of an unrelated process may be a pipe or a device, which
 * would notice. */
static int regular_open(const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0)
        return -1;
    if (!S_ISREG(status.st_mode)) {
        errno = ESTALE;
        return -1;
    }
    /* No O_NOFOLLOW: every entry of /proc/PID/fd is a link. */
    return open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

bool shm_segment_error_passes(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

static int memory_of(int32_t pid, int32_t fd)
{
    char path[64], threads[32];
    int descriptor, error = ENOENT;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int) pid, (int) fd);
    descriptor = regular_open(path);
    if (descriptor >= 0 || errno != ENOENT)
        return descriptor;
    /* Where its first thread has ended, the others still show it. */
    snprintf(threads, sizeof(threads), "/proc/%d/task", (int) pid);
    DIR *folder = opendir(threads);
    if (!folder && shm_segment_error_passes(errno))
        return -1;
    for (struct dirent *entry; folder && descriptor < 0 && (entry = readdir(folder));)
        if (entry->d_name[0] != '.') {
            snprintf(path, sizeof(path), "%s/%.10s/fd/%d", threads, entry->d_name, (int) fd);
            descriptor = regular_open(path);
            if (descriptor < 0 && shm_segment_error_passes(errno))
                error = errno;
        }
    if (folder)
        closedir(folder);
    if (descriptor < 0)
        errno = error;
    return descriptor;
}

bool shm_segment_owner_found(int32_t pid, int32_t fd, const struct segment_identity *identity)
{
    struct stat status;
    int descriptor = memory_of(pid, fd);

    if (descriptor < 0)
        /* Of other errors, such as a lack of descriptors, nothing follows. */
        return errno != ENOENT && errno != ESRCH && errno != ESTALE;
    bool found = fstat(descriptor, &status) == 0 && (uint64_t) status.st_dev == identity->device &&
                 (uint64_t) status.st_ino == identity->inode && shm_segment_owner_lives(descriptor);
    close(descriptor);
    return found;
}

/* Linux 5.14 and newer. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* As if each page were written, but for the signal where there is no memory. */
static int memory_populate(int fd, uint64_t offset, size_t bytes)
{
    uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE), before = offset % page;
    void *memory = mmap(NULL, before + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                        (off_t) (offset - before));

    if (memory == MAP_FAILED)
        return errno;
    int error = madvise(memory, before + bytes, MADV_POPULATE_WRITE) == 0 ? 0 : errno;
    munmap(memory, before + bytes);
    return error == EFAULT ? ENOSPC : error;
}

/* What a signal interrupts the kernel gives back, and it begins anew: a profiler's signals come
 * less often than a piece takes. */
#define RESERVE_PIECE ((size_t) 256 << 10)

/* Memory is reserved now, or the caller gets an error; touching it later never raises SIGBUS. */
static int memory_reserve(int fd, uint64_t offset, size_t bytes)
{
    while (bytes > 0) {
        size_t piece = bytes < RESERVE_PIECE ? bytes : RESERVE_PIECE;

        if (fallocate(fd, 0, (off_t) offset, (off_t) piece) == 0) {
            offset += piece;
            bytes -= piece;
        } else if (errno != EINTR) {
            return is_refused(errno) ? memory_populate(fd, offset, bytes) : errno;
        }
    }
    return 0;
}

/* Gives memory back: what is read there afterwards is 0. */
static bool memory_release(int fd, uint64_t offset, size_t bytes)
{
    return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t) offset,
                     (off_t) bytes) == 0;
}

static size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

static size_t connections_end(uint32_t connection_count)
{
    return SEGMENT_PAGE +
           round_up((size_t) connection_count * sizeof(struct connection), SEGMENT_PAGE);
}

/* Channels begin here, and each at a multiple of the same unit. Only address space: memory is
 * reserved for the used part. */
static size_t channels_begin(uint32_t connection_count)
{
    return round_up(connections_end(connection_count), SEGMENT_ALIGN);
}

static uint32_t channel_units(uint32_t lines)
{
    return (uint32_t) (round_up(channel_bytes(lines), SEGMENT_ALIGN) / SEGMENT_ALIGN);
}

int shm_segment_reserve(int descriptor, uint32_t index, uint32_t count)
{
    return memory_reserve(descriptor, SEGMENT_PAGE + (uint64_t) index * sizeof(struct connection),
                          count * sizeof(struct connection));
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

struct nodes {
    unsigned long words[16];
};

#define NODES_MAX (sizeof(struct nodes) * CHAR_BIT)

/* May this process have memory of that node alone? */
static bool node_is_only(const struct nodes *node)
{
    struct nodes allowed = {{0}};

    return syscall(SYS_get_mempolicy, NULL, &allowed, NODES_MAX, NULL, POLICY_F_NODES_ALLOWED) ==
               0 &&
           memcmp(&allowed, node, sizeof(allowed)) == 0;
}

/* A hint: without the right, the memory stays where it is. */
static void memory_place(void *memory, size_t bytes, int node)
{
    struct nodes nodes = {{0}};
    unsigned bits = sizeof(nodes.words[0]) * CHAR_BIT;

    if (node < 0 || (unsigned) node >= NODES_MAX)
        return;
    nodes.words[(unsigned) node / bits] = 1ul << (unsigned) node % bits;
    if (!node_is_only(&nodes)) /* a policy makes a mapping of its own of that part */
        (void) syscall(SYS_mbind, memory, bytes, POLICY_PREFERRED, &nodes, NODES_MAX, 0);
}

/* Makes its memory and maps it; 0 or errno. */
static int segment_make(struct segment *segment, int node, const char **failed)
{
    *failed = segment->kind == SEGMENT_FILE ? "create its file" : "create it";
    segment->fd = segment->kind == SEGMENT_FILE ? file_open(segment->path, segment->bytes)
                                                : memory_open(segment->bytes);
    if (segment->fd < 0)
        return errno;
    *failed = "map it";
    segment->header = shm_segment_map(segment->fd, 0, segment->bytes);
    if (!segment->header)
        return errno;
    *failed = "reserve memory for it";
    memory_place(segment->header, connections_end(segment->connection_count), node);
    int error = memory_reserve(segment->fd, 0, SEGMENT_PAGE);
    if (error != 0)
        return error;
    *failed = "lock it";
    return life_lock(segment->fd, 0, &segment->is_locked);
}

void shm_segment_open_up(struct segment *segment)
{
    segment->header->layout = SEGMENT_LAYOUT;
    segment->header->connection_count = segment->connection_count;
    segment->header->is_locked = segment->is_locked;
    memcpy(&segment->header->nonce, &segment->nonce, sizeof(segment->nonce));
    /* Release: a process that opens it and sees the state sees the rest (segment_is,
     * shm_segment_part). */
    atomic_store_explicit(&segment->header->state, SEGMENT_OPEN, memory_order_release);
}

static void segment_init(struct segment *segment, enum segment_kind kind,
                         const struct segment_nonce *nonce, uint32_t connection_count)
{
    memset(segment, 0, sizeof(*segment));
    segment->kind = kind;
    segment->nonce = *nonce;
    segment->connection_count = connection_count;
    segment->doorbell_words = connection_count < SEGMENT_DOORBELLS * 64
                                  ? (connection_count + 63) / 64
                                  : SEGMENT_DOORBELLS;
    segment->fd = -1;
}

int shm_segment_create(struct segment *segment, enum segment_kind kind,
                       const struct segment_nonce *nonce, uint32_t connection_count,
                       size_t channel_bytes, int node, const char **failed)
{
    segment_init(segment, kind, nonce, connection_count);
    segment->unit_count = (uint32_t) (round_up(channel_bytes, SEGMENT_ALIGN) / SEGMENT_ALIGN);
    segment->bytes =
        channels_begin(connection_count) + (size_t) segment->unit_count * SEGMENT_ALIGN;
    *failed = "remember its rings";
    segment->units = calloc(segment->unit_count + 1, 1);
    if (!segment->units)
        return ENOMEM;
    if (kind == SEGMENT_FILE)
        shm_segment_file_path(segment->path, nonce);
    int error = segment_make(segment, node, failed);
    if (error != 0) {
        shm_segment_destroy(segment);
        return error;
    }
    segment->connections = shm_segment_connections(segment->header);
    shm_segment_open_up(segment);
    return 0;
}

static size_t part_commons(uint32_t part_count)
{
    return round_up(connections_end(part_count), SEGMENT_ALIGN);
}

static size_t part_bytes(uint32_t part_count)
{
    return part_commons(part_count) + SEGMENT_COMMONS_BYTES;
}

/* Takes the part `segment->part` of the memory behind `segment->fd`. */
static int part_take(struct segment *segment, int node, const char **failed)
{
    size_t bytes = part_bytes(segment->part_count), used = connections_end(segment->part_count);
    uint64_t offset = (uint64_t) segment->part * bytes;

    *failed = "map it";
    segment->bytes = segment->part_count * bytes;
    segment->parts = shm_segment_map(segment->fd, 0, segment->bytes);
    if (!segment->parts)
        return errno;
    shm_segment_identify(segment->fd, &segment->identity);
    *failed = "use it, which is for another number of processes";
    if (segment->part != 0 &&
        ((struct segment_header *) segment->parts)->connection_count != segment->part_count)
        return ERANGE;
    *failed = "lock its part of it"; /* another process may count itself as the same part */
    int error = life_lock(segment->fd, offset, &segment->is_locked);
    if (error != 0)
        return error;
    *failed = "reserve its part of it";
    struct segment_header *header = (struct segment_header *) (segment->parts + offset);
    memory_place(header, used, node);
    error = memory_reserve(segment->fd, offset, used);
    if (error != 0)
        return error;
    *failed = "take a part that was used before";
    if (atomic_load_explicit(&header->state, memory_order_relaxed) != 0)
        return ESTALE;
    segment->header = header;
    segment->connections = shm_segment_connections(header);
    return 0;
}

int shm_segment_create_parts(struct segment *segment, const struct segment_nonce *nonce,
                             uint32_t part_count, int node, const char **failed)
{
    segment_init(segment, SEGMENT_JOB, nonce, part_count);
    segment->part_count = part_count;
    *failed = "create it";
    segment->fd = memory_open(part_count * part_bytes(part_count));
    int error = segment->fd < 0 ? errno : part_take(segment, node, failed);
    if (error != 0)
        shm_segment_destroy(segment);
    return error;
}

int shm_segment_join_parts(struct segment *segment, int32_t pid, int32_t fd,
                           const struct segment_nonce *first, const struct segment_nonce *nonce,
                           uint32_t part_count, uint32_t part, int node, const char **failed)
{
    segment_init(segment, SEGMENT_JOB, nonce, part_count);
    segment->part_count = part_count;
    segment->part = part;
    *failed = "open it";
    segment->fd = shm_segment_open(pid, fd, first);
    int error = segment->fd < 0 ? errno : part_take(segment, node, failed);
    if (error != 0)
        shm_segment_destroy(segment);
    return error;
}

struct segment_header *shm_segment_part_header(const struct segment *segment, uint32_t part)
{
    return (struct segment_header *) (segment->parts + part * part_bytes(segment->part_count));
}

struct segment_header *shm_segment_part(const struct segment *segment, uint32_t part,
                                        const struct segment_nonce *nonce)
{
    if (segment->fd < 0 || part >= segment->part_count)
        return NULL;
    struct segment_header *header = shm_segment_part_header(segment, part);
    /* Acquire: pairs with shm_segment_open_up. */
    if (atomic_load_explicit(&header->state, memory_order_acquire) == 0 ||
        memcmp(&header->nonce, nonce, sizeof(*nonce)) != 0)
        return NULL;
    return header;
}

bool shm_segment_commons(const struct segment *segment, struct multilane_commons *out)
{
    if (segment->fd < 0 || !segment->parts)
        return false;
    *out = (struct multilane_commons){.part = segment->part,
                                      .memory = segment->parts + part_commons(segment->part_count),
                                      .stride = part_bytes(segment->part_count),
                                      .bytes = SEGMENT_COMMONS_BYTES};
    return true;
}

int shm_segment_commons_reserve(const struct segment *segment, size_t offset, size_t bytes)
{
    uint64_t begin = (uint64_t) segment->part * part_bytes(segment->part_count) +
                     part_commons(segment->part_count);
    return memory_reserve(segment->fd, begin + offset, bytes);
}

bool shm_segment_part_owner_lives(const struct segment *segment, uint32_t part, bool *known)
{
    struct segment_identity now;

    shm_segment_identify(segment->fd, &now);
    *known = now.device == segment->identity.device && now.inode == segment->identity.inode;
    return *known && is_locked(segment->fd, part * part_bytes(segment->part_count));
}

void shm_segment_destroy(struct segment *segment)
{
    free(segment->units);
    segment->units = NULL;
    if (segment->fd < 0)
        return;
    if (segment->kind == SEGMENT_FILE)
        unlink(segment->path);
    if (segment->parts || segment->header)
        munmap(segment->parts ? (void *) segment->parts : segment->header, segment->bytes);
    close(segment->fd);
    segment->parts = NULL;
    segment->header = NULL;
    segment->fd = -1;
}

/* The first of so many free units that lie together, or unit_count. */
static uint32_t units_find(const struct segment *segment, uint32_t count)
{
    uint32_t together = 0;

    for (uint32_t unit = 0; unit < segment->unit_count; unit++) {
        together = segment->units[unit] == UNIT_USED ? 0 : together + 1;
        if (together == count)
            return unit + 1 - count;
    }
    return segment->unit_count;
}

/* Reserves the channel's memory, cleared, with all its pages in this process's tables by one call:
 * else each would fault when a message first comes to it, here and again at the receiver, whom
 * faults bring pages around them only where these were written before. */
static int channel_fault_in(const struct segment *segment, struct channel *channel, size_t offset,
                            size_t bytes)
{
    if (madvise(channel, bytes, MADV_POPULATE_WRITE) == 0)
        return 0;
    int error = errno;
    if (error == EINVAL || is_refused(error)) /* an older kernel, a filter */
        error = memory_reserve(segment->fd, offset, bytes);
    if (error != 0)
        (void) memory_release(segment->fd, offset, bytes); /* of what did get memory */
    return error == EFAULT ? ENOSPC : error;
}

struct channel *shm_segment_channel_get(struct segment *segment, uint32_t lines, int node,
                                        int own_node)
{
    uint32_t count = channel_units(lines), first = units_find(segment, count);
    size_t offset = channels_begin(segment->connection_count) + (size_t) first * SEGMENT_ALIGN;
    size_t bytes = channel_bytes(lines);

    if (first == segment->unit_count) {
        errno = ENOSPC;
        return NULL;
    }
    struct channel *channel = (struct channel *) ((unsigned char *) segment->header + offset);
    bool is_cleared = !memchr(segment->units + first, UNIT_FREED, count) ||
                      memory_release(segment->fd, offset, bytes);
    memory_place(channel, sizeof(*channel), own_node);
    memory_place(channel->lines, ring_bytes(lines), node);
    errno = channel_fault_in(segment, channel, offset, bytes);
    if (errno != 0)
        return NULL;
    if (!is_cleared)
        memset(channel, 0, bytes);
    memset(segment->units + first, UNIT_USED, count);
    return channel;
}

void shm_segment_channel_put(struct segment *segment, struct channel *channel, uint32_t lines)
{
    uint64_t offset = shm_segment_channel_offset(segment, channel);
    size_t first = (offset - channels_begin(segment->connection_count)) / SEGMENT_ALIGN;

    (void) memory_release(segment->fd, offset, channel_bytes(lines));
    memset(segment->units + first, UNIT_FREED, channel_units(lines));
}

/* The header up to its doorbells, as it is now. Reading costs less than mapping. */
static bool header_read(int descriptor, struct segment_header *seen)
{
    size_t bytes = offsetof(struct segment_header, doorbells);

    return pread(descriptor, (void *) seen, bytes, 0) == (ssize_t) bytes;
}

/* Whether the opened file is the right segment: the process number may belong to another process in
 * another namespace, and a descriptor number may be used again. */
static bool segment_is(int descriptor, const struct segment_nonce *nonce)
{
    struct segment_header seen;

    /* Twice: what was written before the state is there once the state is. */
    return header_read(descriptor, &seen) &&
           atomic_load_explicit(&seen.state, memory_order_relaxed) != 0 &&
           header_read(descriptor, &seen) && seen.layout == SEGMENT_LAYOUT &&
           memcmp(&seen.nonce, nonce, sizeof(*nonce)) == 0;
}

int shm_segment_open(int32_t pid, int32_t fd, const struct segment_nonce *nonce)
{
    struct stat status;
    char path[64];
    int descriptor;

    if (fd < 0) {
        shm_segment_file_path(path, nonce);
        descriptor = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
    } else {
        descriptor = memory_of(pid, fd);
    }
    if (descriptor < 0)
        return -1;
    int error = ESTALE;
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
        segment_is(descriptor, nonce)) {
        if (fd < 0 || memory_stays(descriptor))
            return descriptor;
        error = EPERM;
    }
    close(descriptor);
    errno = error;
    return -1;
}

const char *shm_segment_open_error(int error)
{
    if (error == ENOENT || error == ESTALE)
        return "that process has ended, or has closed its memory";
    if (error == EACCES || error == EPERM)
        return "the system does not let this process open it";
    return strerror(error);
}

struct segment_header *shm_segment_map_header(int descriptor, size_t *bytes,
                                              uint32_t *connection_count)
{
    struct segment_header seen;

    if (!header_read(descriptor, &seen) || seen.connection_count == 0 ||
        seen.connection_count > SEGMENT_CONNECTIONS_MAX) {
        errno = ESTALE;
        return NULL;
    }
    *connection_count = seen.connection_count;
    *bytes = connections_end(seen.connection_count);
    return shm_segment_map(descriptor, 0, *bytes);
}
