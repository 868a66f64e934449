/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared segments: who can open them, what happens when memory is out, that the death of an owner
 * is seen, and that a forked child touches nothing. */
#define _GNU_SOURCE
#include "btl/shm/segment.h"
#include "test/mpi/refuse.h"
#include "test/unit/check.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DOORS      16u
#define LANES      4u
#define LANE_LINES 256u

static const char *kind_name(enum segment_kind kind)
{
    return SEGMENT_MEMFD == kind ? "memfd" : "file";
}

static int create(struct segment *segment, enum segment_kind kind, const char **failed)
{
    struct segment_nonce nonce;

    CHECK(0 == segment_random(&nonce, sizeof(nonce)), "%s", strerror(errno));
    return segment_create(segment, kind, &nonce, DOORS, LANES, LANE_LINES, failed);
}

static int open_again(const struct segment *segment)
{
    return segment_open((int32_t) getpid(), SEGMENT_FILE == segment->kind ? -1 : segment->fd,
                        &segment->nonce);
}

/* Runs `body` in a child; its exit status, or minus the signal that ended it. */
static int in_child(int (*body)(void *), void *argument)
{
    pid_t child = fork();
    int status;

    if (0 == child)
        _exit(body(argument));
    if (child < 0 || child != waitpid(child, &status, 0))
        return 1000;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* --- as it should go --- */

static void segment_holds(enum segment_kind kind)
{
    struct segment segment;
    const char *failed;
    int error = create(&segment, kind, &failed);
    struct lane *lanes[LANES];

    CHECK(0 == error, "%s: cannot %s: %s", kind_name(kind), failed, strerror(error));
    if (0 != error)
        return;
    for (unsigned i = 0; i < LANES; i++) {
        lanes[i] = segment_lane_get(&segment, -1);
        CHECK(NULL != lanes[i], "lane %u: %s", i, strerror(errno));
        CHECK(0 == segment_lane_offset(&segment, lanes[i]) % (64 << 10), "lane %u", i);
        memset(lanes[i], 0xff, lane_bytes(LANE_LINES));
    }
    CHECK(NULL == segment_lane_get(&segment, -1) && ENOSPC == errno, "%s", strerror(errno));
    segment_lane_put(&segment, lanes[0]);
    segment_lane_put(&segment, lanes[1]);
    /* Peers that have it mapped may write there still. */
    memset(lanes[1], 0xff, lane_bytes(LANE_LINES));
    lanes[1] = segment_lane_get(&segment, -1);
    CHECK(NULL != lanes[1], "a lane that was given back");
    CHECK(lanes[0] == segment_lane_get(&segment, -1), "the other lane that was given back");
    for (size_t i = 0; NULL != lanes[1] && i < lane_bytes(LANE_LINES); i++)
        if (0 != ((unsigned char *) lanes[1])[i]) {
            CHECK(false, "byte %zu of a lane given out again is not cleared", i);
            break;
        }
    segment_destroy(&segment);
}

static int open_in_child(void *argument)
{
    const struct segment *segment = argument;
    int descriptor = segment_open(
        (int32_t) getppid(), SEGMENT_FILE == segment->kind ? -1 : segment->fd, &segment->nonce);
    struct segment_header *header;
    uint32_t doors;
    size_t bytes;

    if (descriptor < 0)
        return errno;
    header = segment_map_header(descriptor, &bytes, &doors);
    if (NULL == header || DOORS != doors)
        return 200;
    segment_doors(header)[DOORS - 1].jobid = 4711;
    return segment_owner_lives(descriptor) ? 0 : 201;
}

static void peer_opens(enum segment_kind kind)
{
    struct segment segment;
    const char *failed;
    int status;

    if (0 != create(&segment, kind, &failed))
        return;
    status = in_child(open_in_child, &segment);
    CHECK(0 == status, "%s: the peer ended with %d (%s)", kind_name(kind), status,
          strerror(abs(status)));
    CHECK(4711 == segment.doors[DOORS - 1].jobid, "%s: what the peer wrote", kind_name(kind));
    segment_destroy(&segment);
}

/* --- who must not --- */

static int open_as_nobody(void *argument)
{
    const struct segment *segment = argument;
    char path[64];

    if (0 != setgid(65534) || 0 != setuid(65534))
        return 200;
    segment_file_path(path, &segment->nonce);
    if (SEGMENT_FILE == segment->kind && 0 == access(path, R_OK))
        return 201;
    return segment_open((int32_t) getppid(), SEGMENT_FILE == segment->kind ? -1 : segment->fd,
                        &segment->nonce) < 0 &&
                   EACCES == errno
               ? 0
               : 202;
}

static void others_refused(enum segment_kind kind)
{
    struct segment segment;
    struct segment_nonce wrong;
    const char *failed;
    struct stat status;

    if (0 != create(&segment, kind, &failed))
        return;
    CHECK(0 == fstat(segment.fd, &status) &&
              (SEGMENT_MEMFD == kind || 0600 == (status.st_mode & 07777)),
          "%s: mode %o", kind_name(kind), status.st_mode);
    if (0 == geteuid())
        CHECK(0 == in_child(open_as_nobody, &segment), "%s: another user", kind_name(kind));
    else
        printf("not root: another user's attempt was not tried\n");
    /* The right descriptor, but not what it should be. */
    wrong = segment.nonce;
    wrong.bytes[3] ^= 1;
    CHECK(segment_open((int32_t) getpid(), segment.fd, &wrong) < 0 && ESTALE == errno, "%s",
          strerror(errno));
    CHECK(segment_open((int32_t) getpid(), 0, &segment.nonce) < 0, "standard input");
    CHECK(segment_open((int32_t) getpid(), 9999, &segment.nonce) < 0 && ENOENT == errno, "%s",
          strerror(errno));
    segment_destroy(&segment);
}

static int touch_mapping(void *argument)
{
    struct segment *segment = argument;

    signal(SIGSEGV, SIG_DFL);
    return (int) *(volatile uint32_t *) &segment->header->layout;
}

static void fork_has_no_part(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    struct segment segment;
    const char *failed;

    if (0 != create(&segment, SEGMENT_MEMFD, &failed))
        return;
    CHECK(-SIGSEGV == in_child(touch_mapping, &segment), "a forked child sees the rings");
    segment_destroy(&segment);
#else
    (void) touch_mapping;
#endif
}

/* A peer that lies about its size cannot make us touch what is not there. */
static void bounds_checked(void)
{
    struct segment segment;
    const char *failed;
    uint32_t doors;
    size_t bytes;
    int descriptor;

    if (0 != create(&segment, SEGMENT_MEMFD, &failed))
        return;
    descriptor = open_again(&segment);
    CHECK(descriptor >= 0, "%s", strerror(errno));
    CHECK(NULL == segment_map(descriptor, segment.bytes, SEGMENT_PAGE) && ESTALE == errno,
          "mapped behind the end");
    CHECK(NULL == segment_map(descriptor, UINT64_MAX - SEGMENT_PAGE + 1, 2 * SEGMENT_PAGE),
          "mapped around the end");
    CHECK(0 != ftruncate(descriptor, SEGMENT_PAGE) && EPERM == errno, "shrunk under its peers");
    segment.header->door_count = SEGMENT_DOORS_MAX + 1;
    CHECK(NULL == segment_map_header(descriptor, &bytes, &doors) && ESTALE == errno,
          "too many doors");
    segment.header->door_count = SEGMENT_DOORS_MAX;
    CHECK(NULL == segment_map_header(descriptor, &bytes, &doors) && ESTALE == errno,
          "doors not there");
    segment.header->door_count = 0;
    CHECK(NULL == segment_map_header(descriptor, &bytes, &doors) && ESTALE == errno, "no doors");
    /* Closing it takes the owner's own lock away, which only happens in this test: it is its own
     * peer. */
    close(descriptor);
    segment_destroy(&segment);
}

/* --- death --- */

struct heir {
    int to_parent[2];
    enum segment_kind kind;
};

static int owner_body(struct heir *heir)
{
    struct segment segment;
    const char *failed;
    char answer[sizeof(segment.fd) + sizeof(segment.nonce)];

    if (0 != create(&segment, heir->kind, &failed))
        return 1;
    memcpy(answer, &segment.fd, sizeof(segment.fd));
    memcpy(answer + sizeof(segment.fd), &segment.nonce, sizeof(segment.nonce));
    if (sizeof(answer) != write(heir->to_parent[1], answer, sizeof(answer)))
        return 1;
    for (;;)
        pause();
}

static void death_seen(enum segment_kind kind)
{
    struct heir heir = {.kind = kind};
    struct segment_nonce nonce;
    char answer[sizeof(int) + sizeof(nonce)], path[64];
    int fd, descriptor;
    pid_t child;

    CHECK(0 == pipe(heir.to_parent), "%s", strerror(errno));
    child = fork();
    if (0 == child)
        _exit(owner_body(&heir));
    CHECK(sizeof(answer) == read(heir.to_parent[0], answer, sizeof(answer)), "%s", strerror(errno));
    memcpy(&fd, answer, sizeof(fd));
    memcpy(&nonce, answer + sizeof(fd), sizeof(nonce));
    descriptor = segment_open((int32_t) child, SEGMENT_FILE == kind ? -1 : fd, &nonce);
    CHECK(descriptor >= 0, "%s: %s", kind_name(kind), strerror(errno));
    CHECK(segment_owner_lives(descriptor), "%s: taken for dead", kind_name(kind));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CHECK(!segment_owner_lives(descriptor), "%s: its death is not seen", kind_name(kind));
    close(descriptor);
    close(heir.to_parent[0]);
    close(heir.to_parent[1]);
    if (SEGMENT_FILE == kind) {
        segment_file_path(path, &nonce);
        unlink(path);
    }
}

/* An older kernel, or a container, that knows nothing of descriptors of processes. */
static int death_seen_without_descriptors(void *argument)
{
    pid_t child = fork();
    bool lived, zombie_lives, gone_lives;

    (void) argument;
    if (0 == child) {
        pause();
        _exit(0);
    }
    if (0 != calls_refuse(SYS_pidfd_open, SYS_pidfd_open, ENOSYS))
        return 77;
    lived = segment_process_lives(child);
    kill(child, SIGKILL);
    while (0 != waitid(P_PID, (id_t) child, NULL, WEXITED | WNOWAIT))
        if (EINTR != errno)
            return 1;
    zombie_lives = segment_process_lives(child);
    waitpid(child, NULL, 0);
    gone_lives = segment_process_lives(child);
    return !lived ? 2 : zombie_lives ? 3 : gone_lives ? 4 : 0;
}

/* --- no memory --- */

static int file_in_full_shm(void *argument)
{
    struct segment segment = {.fd = -1};
    const char *failed = "";
    int error;

    (void) argument;
    if (0 != unshare(CLONE_NEWNS) || 0 != mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        0 != mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64k"))
        return 77;
    /* Header and doors fit, two lanes do, a third does not. */
    error = create(&segment, SEGMENT_FILE, &failed);
    if (0 != error) {
        fprintf(stderr, "cannot %s: %s\n", failed, strerror(error));
        return 1;
    }
    for (int lanes = 0; lanes < 4; lanes++) {
        struct lane *lane = segment_lane_get(&segment, -1);

        if (NULL == lane) {
            segment_destroy(&segment);
            return ENOSPC == errno && lanes > 0 ? 0 : 2;
        }
        memset(lane, 1, lane_bytes(LANE_LINES));
    }
    return 3;
}

static int file_without_shm(void *argument)
{
    struct segment segment = {.fd = -1};
    const char *failed = "";

    (void) argument;
    if (0 != unshare(CLONE_NEWNS) || 0 != mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        0 != mount("tmpfs", "/dev", "tmpfs", 0, "size=64k"))
        return 77;
    return ENOENT == create(&segment, SEGMENT_FILE, &failed) && segment.fd < 0 ? 0 : 1;
}

static int memfd_without_address_space(void *argument)
{
    struct rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    struct segment segment = {.fd = -1};
    const char *failed = "";

    (void) argument;
    if (0 != setrlimit(RLIMIT_AS, &limit))
        return 77;
    return ENOMEM == create(&segment, SEGMENT_MEMFD, &failed) && segment.fd < 0 ? 0 : 1;
}

static int memfd_without_file_size(void *argument)
{
    struct rlimit limit = {.rlim_cur = 8192, .rlim_max = 8192};
    struct segment segment = {.fd = -1};
    const char *failed = "";

    (void) argument;
    if (0 != setrlimit(RLIMIT_FSIZE, &limit))
        return 77;
    return EFBIG == create(&segment, SEGMENT_MEMFD, &failed) && segment.fd < 0 ? 0 : 1;
}

static void where_it_may(const char *what, int (*body)(void *))
{
    int status = in_child(body, NULL);

    if (77 == status)
        printf("%s: not tried, the system does not let us\n", what);
    else
        CHECK(0 == status, "%s: %d", what, status);
}

int main(void)
{
    for (int kind = 0; kind < SEGMENT_KINDS; kind++) {
        segment_holds((enum segment_kind) kind);
        peer_opens((enum segment_kind) kind);
        others_refused((enum segment_kind) kind);
        death_seen((enum segment_kind) kind);
    }
    fork_has_no_part();
    bounds_checked();
    where_it_may("no descriptors of processes", death_seen_without_descriptors);
    where_it_may("/dev/shm is full", file_in_full_shm);
    where_it_may("/dev/shm is missing", file_without_shm);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    where_it_may("no address space", memfd_without_address_space);
#else
    (void) memfd_without_address_space;
#endif
    where_it_may("no file of that size", memfd_without_file_size);
    return check_end();
}
