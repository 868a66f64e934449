/* SPDX-License-Identifier: BSD-3-Clause */
/* A preload that breaks the connections of btl/sock while they carry something, as a network does:
 * at any byte, at either end, by an end of the stream or by a reset. It also makes reads and writes
 * shorter than asked for. SOCK_FAULTS=SEED:BREAKS:SHORTS: of 10,000 calls so many break or are cut
 * short. SOCK_FLIPS: of 10,000 reads so many bring a wrong bit, also of long ones by readv, as
 * btl/tcp reads. SOCK_PACE: the most bytes a second that a connection carries. SOCK_SPEED: what the
 * links say that they carry, in Mbit/s. Calls of others go through: it knows those of btl/sock by
 * their flags. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* What others read by readv is shorter. */
#define LONG_BYTES 8192

enum { OF = 10000, PARTS_MOST = 64 };

static struct {
    _Atomic uint64_t random;
    unsigned breaks, shorts, pace, flips;
    _Atomic unsigned broken; /* connections */
    int is_read;
} faults;

static unsigned draw(unsigned below)
{
    /* xorshift; two threads may draw the same number, which does no harm */
    uint64_t word = atomic_load_explicit(&faults.random, memory_order_relaxed);

    word ^= word << 13;
    word ^= word >> 7;
    word ^= word << 17;
    atomic_store_explicit(&faults.random, word, memory_order_relaxed);
    return (unsigned) (word >> 33) % below;
}

static void faults_read(void)
{
    const char *text = getenv("SOCK_FAULTS");
    unsigned long seed = 1;

    if (faults.is_read)
        return;
    faults.is_read = 1;
    if (text && sscanf(text, "%lu:%u:%u", &seed, &faults.breaks, &faults.shorts) != 3)
        abort();
    text = getenv("SOCK_FLIPS");
    if (text && sscanf(text, "%u", &faults.flips) != 1)
        abort();
    text = getenv("SOCK_PACE");
    if (text && sscanf(text, "%u", &faults.pace) != 1)
        abort();
    atomic_store_explicit(&faults.random,
                          (seed + (uint64_t) getpid()) * UINT64_C(0x9e3779b97f4a7c15) | 1,
                          memory_order_relaxed);
}

/* So that a test knows that there were some. */
static __attribute__((destructor)) void broken_say(void)
{
    unsigned broken = atomic_load_explicit(&faults.broken, memory_order_relaxed);

    if (broken)
        fprintf(stderr, "sock_faults: %u connections were broken\n", broken);
}

static int is_of_tcp(int fd)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof(address);

    return getpeername(fd, (struct sockaddr *) &address, &length) == 0 &&
           (address.ss_family == AF_INET || address.ss_family == AF_INET6);
}

/* An end of the stream, or a reset that takes along what is on its way. */
static void connection_break(int fd)
{
    struct sockaddr none = {.sa_family = AF_UNSPEC};

    atomic_fetch_add_explicit(&faults.broken, 1, memory_order_relaxed);
    if (draw(2) == 0)
        (void) shutdown(fd, SHUT_RDWR);
    else
        (void) connect(fd, &none, sizeof(none));
}

/* The first bytes of it, up to a number at random. */
static void shorten(struct msghdr *message, struct iovec parts[PARTS_MOST])
{
    size_t left = 1 + draw(draw(2) == 0 ? 64 : 100000);
    size_t count = 0;

    for (; count < message->msg_iovlen && count < PARTS_MOST && left > 0; count++) {
        parts[count] = message->msg_iov[count];
        if (parts[count].iov_len > left)
            parts[count].iov_len = left;
        left -= parts[count].iov_len;
    }
    message->msg_iov = parts;
    message->msg_iovlen = count;
}

/* Of so many bytes that were read. */
static void flip(const struct msghdr *message, ssize_t count)
{
    size_t at = draw((unsigned) count);

    for (size_t i = 0; i < message->msg_iovlen; i++) {
        const struct iovec *part = &message->msg_iov[i];
        if (at < part->iov_len) {
            ((unsigned char *) part->iov_base)[at] ^= (unsigned char) (1u << draw(8));
            return;
        }
        at -= part->iov_len;
    }
}

static void fault(int fd, struct msghdr *message, struct iovec parts[PARTS_MOST])
{
    faults_read();
    if (!is_of_tcp(fd))
        return;
    if (faults.pace)
        (void) setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &faults.pace, sizeof(faults.pace));
    if (draw(OF) < faults.breaks)
        connection_break(fd);
    if (draw(OF) < faults.shorts)
        shorten(message, parts);
}

__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *message,
                                                       int flags)
{
    ssize_t (*real)(int, const struct msghdr *, int);
    struct iovec parts[PARTS_MOST];
    struct msghdr copy = *message;

    *(void **) &real = dlsym(RTLD_NEXT, "sendmsg");
    if (flags == (MSG_DONTWAIT | MSG_NOSIGNAL))
        fault(fd, &copy, parts);
    return real(fd, &copy, flags);
}

__attribute__((visibility("default"))) ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    ssize_t (*real)(int, struct msghdr *, int);
    struct iovec parts[PARTS_MOST];
    struct msghdr copy = *message;

    *(void **) &real = dlsym(RTLD_NEXT, "recvmsg");
    if (flags == MSG_DONTWAIT)
        fault(fd, &copy, parts);
    ssize_t count = real(fd, &copy, flags);
    if (flags == MSG_DONTWAIT && count > 0 && is_of_tcp(fd) && draw(OF) < faults.flips)
        flip(&copy, count);
    return count;
}

/* A list of one. The system's own would not come by here. */
__attribute__((visibility("default"))) ssize_t send(int fd, const void *bytes, size_t length,
                                                    int flags)
{
    struct iovec part = {.iov_base = (void *) (uintptr_t) bytes, .iov_len = length};
    const struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    return sendmsg(fd, &message, flags);
}

__attribute__((visibility("default"))) ssize_t recv(int fd, void *bytes, size_t length, int flags)
{
    struct iovec part = {.iov_base = bytes, .iov_len = length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    return recvmsg(fd, &message, flags);
}

__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
    int (*real)(const char *, int, ...);
    const char *speed = getenv("SOCK_SPEED"), *end = strrchr(path, '/');
    va_list more;

    if (speed && end && strncmp(path, "/sys/class/net/", 15) == 0 && strcmp(end, "/speed") == 0) {
        int fd = memfd_create("speed", MFD_CLOEXEC);
        if (fd >= 0 && pwrite(fd, speed, strlen(speed), 0) > 0)
            return fd;
    }
    *(void **) &real = dlsym(RTLD_NEXT, "open");
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    return real(path, flags, mode);
}

__attribute__((visibility("default"))) ssize_t readv(int fd, const struct iovec *parts, int count)
{
    ssize_t (*real)(int, const struct iovec *, int);
    struct msghdr message = {.msg_iov = (struct iovec *) parts, .msg_iovlen = (size_t) count};

    *(void **) &real = dlsym(RTLD_NEXT, "readv");
    ssize_t bytes = real(fd, parts, count);
    if (bytes < LONG_BYTES || !is_of_tcp(fd))
        return bytes;
    faults_read();
    if (draw(OF) < faults.flips)
        flip(&message, bytes);
    return bytes;
}
