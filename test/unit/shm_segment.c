/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared segments: who can open them, what happens when memory is out, that the death of an owner
 * is seen, and that a forked child touches nothing. */
#define _GNU_SOURCE
#include "btl/shm/segment.h"
#include "common/lane/host.h"
#include "test/mpi/refuse.h"
#include "test/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DOORS      16u
#define LANES      4u
#define LANE_LINES 256u

static const char *kind_name(enum segment_kind kind)
{
    return kind == SEGMENT_MEMFD ? "memfd" : "file";
}

static int create(struct segment *segment, enum segment_kind kind, const char **failed)
{
    struct segment_nonce nonce;

    CHECK(host_random(&nonce, sizeof(nonce)), "%s", strerror(errno));
    return shm_segment_create(segment, kind, &nonce, DOORS,
                              LANES * (((channel_bytes(LANE_LINES) - 1) | 0xffff) + 1), -1, failed);
}

static int open_again(const struct segment *segment)
{
    return shm_segment_open((int32_t) getpid(), segment->kind == SEGMENT_FILE ? -1 : segment->fd,
                            &segment->nonce);
}

/* Runs `body` in a child; its exit status, or minus the signal that ended it. */
static int in_child(int (*body)(void *), void *argument)
{
    pid_t child = fork();
    int status;

    if (child == 0)
        _exit(body(argument));
    if (child < 0 || child != waitpid(child, &status, 0))
        return 1000;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* --- as it should go --- */

static size_t memory_held(const struct segment *segment)
{
    struct stat status = {.st_blocks = 0};

    CHECK(fstat(segment->fd, &status) == 0, "%s", strerror(errno));
    return (size_t) status.st_blocks * 512;
}

/* Connections of many processes hold no memory until they are used. */
static void memory_by_need(enum segment_kind kind)
{
    struct segment segment;
    const char *failed;
    int descriptor;

    if (create(&segment, kind, &failed) != 0)
        return;
    size_t page = (size_t) sysconf(_SC_PAGESIZE);
    CHECK(memory_held(&segment) <= page, "%s: %zu bytes for nothing", kind_name(kind),
          memory_held(&segment));
    descriptor = open_again(&segment);
    CHECK(shm_segment_reserve(descriptor, 5, 1) == 0, "%s", strerror(errno));
    CHECK(memory_held(&segment) <= 2 * page, "%s: %zu bytes for one peer", kind_name(kind),
          memory_held(&segment));
    close(descriptor);
    shm_segment_destroy(&segment);
}

static void segment_holds(enum segment_kind kind)
{
    struct segment segment;
    const char *failed;
    int error = create(&segment, kind, &failed);
    struct channel *channels[LANES];

    CHECK(error == 0, "%s: cannot %s: %s", kind_name(kind), failed, strerror(error));
    if (error != 0)
        return;
    for (unsigned i = 0; i < LANES; i++) {
        channels[i] = shm_segment_channel_get(&segment, LANE_LINES, -1, -1);
        CHECK(channels[i] != NULL, "lane %u: %s", i, strerror(errno));
        CHECK(shm_segment_channel_offset(&segment, channels[i]) % (64 << 10) == 0, "lane %u", i);
        memset(channels[i], 0xff, channel_bytes(LANE_LINES));
    }
    CHECK(!shm_segment_channel_get(&segment, LANE_LINES, -1, -1) && errno == ENOSPC, "%s",
          strerror(errno));
    size_t held = memory_held(&segment);
    shm_segment_channel_put(&segment, channels[0], LANE_LINES);
    CHECK(held - memory_held(&segment) >= channel_bytes(LANE_LINES),
          "%s: a lane that was given back holds memory", kind_name(kind));
    shm_segment_channel_put(&segment, channels[1], LANE_LINES);
    /* Peers that have it mapped may write there still. */
    memset(channels[1], 0xff, channel_bytes(LANE_LINES));
    CHECK(channels[0] == shm_segment_channel_get(&segment, LANE_LINES, -1, -1),
          "a lane that was given back");
    CHECK(channels[1] == shm_segment_channel_get(&segment, LANE_LINES, -1, -1),
          "the other lane that was given back");
    for (size_t i = 0; channels[1] && i < channel_bytes(LANE_LINES); i++)
        if (((unsigned char *) channels[1])[i] != 0) {
            CHECK(false, "byte %zu of a lane given out again is not cleared", i);
            break;
        }
    shm_segment_destroy(&segment);
}

static int open_in_child(void *argument)
{
    const struct segment *segment = argument;
    int descriptor = shm_segment_open(
        (int32_t) getppid(), segment->kind == SEGMENT_FILE ? -1 : segment->fd, &segment->nonce);
    struct segment_header *header;
    uint32_t connections;
    size_t bytes;

    if (descriptor < 0)
        return errno;
    header = shm_segment_map_header(descriptor, &bytes, &connections);
    if (!header || connections != DOORS)
        return 200;
    shm_segment_connections(header)[DOORS - 1].jobid = 4711;
    return shm_segment_owner_lives(descriptor) ? 0 : 201;
}

static void peer_opens(enum segment_kind kind)
{
    struct segment segment;
    const char *failed;
    int status;

    if (create(&segment, kind, &failed) != 0)
        return;
    status = in_child(open_in_child, &segment);
    CHECK(status == 0, "%s: the peer ended with %d (%s)", kind_name(kind), status,
          strerror(abs(status)));
    CHECK(segment.connections[DOORS - 1].jobid == 4711, "%s: what the peer wrote", kind_name(kind));
    shm_segment_destroy(&segment);
}

/* What each side polls lies where it was asked for: where there are two nodes, by the policy of the
 * memory, and by where the page is. */
static void placed_on(void *address, int wanted, const char *what)
{
    bool has_others = access("/sys/devices/system/node/node1", F_OK) == 0;
    int mode = wanted < 0 || !has_others ? 0 : 1, found = -1, node = -1;
    unsigned long nodes[16];

    if (syscall(SYS_get_mempolicy, &found, nodes, sizeof(nodes) * 8, address, 2ul) != 0)
        return; /* a kernel without NUMA */
    CHECK(found == mode, "%s: policy %d", what, found);
    if (wanted >= 0 && syscall(SYS_get_mempolicy, &node, NULL, 0ul, address, 3ul) == 0)
        CHECK(node == wanted, "%s: on node %d, not %d", what, node, wanted);
}

static void memory_placed(enum segment_kind kind)
{
    struct segment segment;
    struct segment_nonce nonce;
    const char *failed;
    const int other = access("/sys/devices/system/node/node1", F_OK) == 0 ? 1 : 0;

    CHECK(host_random(&nonce, sizeof(nonce)), "%s", strerror(errno));
    if (shm_segment_create(&segment, kind, &nonce, DOORS, 1 << 20, 0, &failed) != 0)
        return;
    placed_on((void *) segment.header, 0, "doorbells");
    placed_on((void *) segment.connections[DOORS - 1].lines, 0, "a small ring");
    struct channel *channel = shm_segment_channel_get(&segment, LANE_LINES, -1, 0);
    placed_on((void *) &channel->feedback, 0, "the sender's page");
    placed_on((void *) channel->lines, -1, "lines of a receiver that is anywhere");
    shm_segment_channel_put(&segment, channel, LANE_LINES);
    /* Used again, for a receiver elsewhere. */
    channel = shm_segment_channel_get(&segment, LANE_LINES, other, 0);
    placed_on((void *) &channel->feedback, 0, "the sender's page");
    placed_on((void *) channel->lines, other, "lines of a receiver");
    placed_on((void *) &channel->lines[LANE_LINES - 1], other, "the last line");
    shm_segment_channel_put(&segment, channel, LANE_LINES);
    channel = shm_segment_channel_get(&segment, LANE_LINES, 0, other);
    placed_on((void *) &channel->feedback, other, "the page of a sender elsewhere");
    placed_on((void *) channel->lines, 0, "lines used again");
    printf("memory was placed on %s\n", other ? "two nodes" : "one node, there is no other");
    shm_segment_destroy(&segment);
}

/* --- who must not --- */

static int open_as_another_user(void *argument)
{
    const struct segment *segment = argument;
    char path[64];

    if (setgid(65534) != 0 || setuid(65534) != 0)
        return 200;
    shm_segment_file_path(path, &segment->nonce);
    if (segment->kind == SEGMENT_FILE && access(path, R_OK) == 0)
        return 201;
    return shm_segment_open((int32_t) getppid(), segment->kind == SEGMENT_FILE ? -1 : segment->fd,
                            &segment->nonce) < 0 &&
                   errno == EACCES
               ? 0
               : 202;
}

static void others_refused(enum segment_kind kind)
{
    struct segment segment;
    struct segment_nonce wrong;
    const char *failed;
    struct stat status;

    if (create(&segment, kind, &failed) != 0)
        return;
    CHECK(fstat(segment.fd, &status) == 0 && (status.st_mode & 07777) == 0600, "%s: mode %o",
          kind_name(kind), status.st_mode);
    if (geteuid() == 0)
        CHECK(in_child(open_as_another_user, &segment) == 0, "%s: another user", kind_name(kind));
    else
        printf("not root: another user's attempt was not tried\n");
    /* The right descriptor, but not what it should be. */
    wrong = segment.nonce;
    wrong.bytes[3] ^= 1;
    CHECK(shm_segment_open((int32_t) getpid(), segment.fd, &wrong) < 0 && errno == ESTALE, "%s",
          strerror(errno));
    CHECK(shm_segment_open((int32_t) getpid(), 0, &segment.nonce) < 0, "standard input");
    CHECK(shm_segment_open((int32_t) getpid(), 9999, &segment.nonce) < 0 && errno == ENOENT, "%s",
          strerror(errno));
    shm_segment_destroy(&segment);
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

    if (create(&segment, SEGMENT_MEMFD, &failed) != 0)
        return;
    CHECK(in_child(touch_mapping, &segment) == -SIGSEGV, "a forked child sees the rings");
    shm_segment_destroy(&segment);
#else
    (void) touch_mapping;
#endif
}

/* A peer that lies about its size cannot make us touch what is not there. */
static void bounds_checked(void)
{
    struct segment segment;
    const char *failed;
    uint32_t connections;
    size_t bytes;
    int descriptor;

    if (create(&segment, SEGMENT_MEMFD, &failed) != 0)
        return;
    descriptor = open_again(&segment);
    CHECK(descriptor >= 0, "%s", strerror(errno));
    CHECK(!shm_segment_map(descriptor, segment.bytes, SEGMENT_PAGE) && errno == ESTALE,
          "mapped behind the end");
    CHECK(!shm_segment_map(descriptor, UINT64_MAX - SEGMENT_PAGE + 1, 2 * SEGMENT_PAGE),
          "mapped around the end");
    CHECK(ftruncate(descriptor, SEGMENT_PAGE) != 0 && errno == EPERM, "shrunk under its peers");
    segment.header->connection_count = SEGMENT_CONNECTIONS_MAX + 1;
    CHECK(!shm_segment_map_header(descriptor, &bytes, &connections) && errno == ESTALE,
          "too many doors");
    segment.header->connection_count = SEGMENT_CONNECTIONS_MAX;
    CHECK(!shm_segment_map_header(descriptor, &bytes, &connections) && errno == ESTALE,
          "doors not there");
    segment.header->connection_count = 0;
    CHECK(!shm_segment_map_header(descriptor, &bytes, &connections) && errno == ESTALE, "no doors");
    /* Closing it takes the owner's own lock away, which only happens in this test: it is its own
     * peer. */
    close(descriptor);
    shm_segment_destroy(&segment);
}

/* Memory that its owner could shrink would end this process by SIGBUS. */
static void unsealed_refused(void)
{
    struct segment segment;
    const char *failed;
    int fd = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (create(&segment, SEGMENT_MEMFD, &failed) != 0)
        return;
    CHECK(ftruncate(fd, 1 << 20) == 0 &&
              pwrite(fd, (const void *) segment.header, SEGMENT_PAGE, 0) == SEGMENT_PAGE,
          "%s", strerror(errno));
    CHECK(shm_segment_open((int32_t) getpid(), fd, &segment.nonce) < 0 && errno == EPERM,
          "memory without a seal: %s", strerror(errno));
    CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0, "%s", strerror(errno));
    int descriptor = shm_segment_open((int32_t) getpid(), fd, &segment.nonce);
    CHECK(descriptor >= 0, "memory with a seal: %s", strerror(errno));
    close(descriptor);
    close(fd);
    shm_segment_destroy(&segment);
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

    int error = create(&segment, heir->kind, &failed);
    if (error != 0) {
        fprintf(stderr, "the owner: %s: %s\n", failed, strerror(error));
        return 1;
    }
    memcpy(answer, &segment.fd, sizeof(segment.fd));
    memcpy(answer + sizeof(segment.fd), &segment.nonce, sizeof(segment.nonce));
    if (write(heir->to_parent[1], answer, sizeof(answer)) != sizeof(answer))
        return 1;
    for (;;)
        pause();
}

static void *owner_thread(void *heir)
{
    _exit(owner_body(heir));
}

/* With so many descriptors to look with, which may be too few: of that nothing follows. */
static bool found_with(int spare, pid_t owner, int fd, const struct segment_identity *identity)
{
    struct rlimit before, few;
    int next = dup(STDERR_FILENO);

    if (next < 0 || close(next) != 0 || getrlimit(RLIMIT_NOFILE, &before) != 0)
        return false;
    few = before;
    few.rlim_cur = (rlim_t) (next + spare);
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0, "%s", strerror(errno));
    bool found = shm_segment_owner_found((int32_t) owner, fd, identity);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0, "%s", strerror(errno));
    return found;
}

/* `alone`: the first thread of the owner has ended, another one goes on. */
static void death_seen(enum segment_kind kind, bool alone)
{
    static struct heir heir; /* not on the stack of a thread that ends */
    struct segment_nonce nonce;
    struct segment_identity identity, other;
    char answer[sizeof(int) + sizeof(nonce)], path[64];
    int fd, descriptor;
    pid_t child;

    heir.kind = kind;
    CHECK(pipe(heir.to_parent) == 0, "%s", strerror(errno));
    child = fork();
    if (child == 0 && alone) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, owner_thread, &heir) != 0)
            _exit(1);
        pthread_exit(NULL);
    }
    if (child == 0)
        _exit(owner_body(&heir));
    close(heir.to_parent[1]); /* an owner that ends is not waited for */
    CHECK(read(heir.to_parent[0], answer, sizeof(answer)) == sizeof(answer), "%s", strerror(errno));
    snprintf(path, sizeof(path), "/proc/%d/fd/0", (int) child);
    for (int tries = 0; alone && tries < 5000 && access(path, F_OK) == 0; tries++)
        usleep(1000);
    memcpy(&fd, answer, sizeof(fd));
    memcpy(&nonce, answer + sizeof(fd), sizeof(nonce));
    descriptor = shm_segment_open((int32_t) child, kind == SEGMENT_FILE ? -1 : fd, &nonce);
    CHECK(descriptor >= 0, "%s: %s", kind_name(kind), strerror(errno));
    CHECK(shm_segment_owner_lives(descriptor), "%s: taken for dead", kind_name(kind));
    /* Without the descriptor, and not if that is another file by now or the number is another
     * process. */
    shm_segment_identify(descriptor, &identity);
    CHECK(shm_segment_owner_found((int32_t) child, fd, &identity), "%s: not found",
          kind_name(kind));
    for (int spare = 0; spare < 3; spare++)
        CHECK(found_with(spare, child, fd, &identity), "%s: not found with %d descriptors",
              kind_name(kind), spare);
    other = identity;
    other.inode++;
    CHECK(!shm_segment_owner_found((int32_t) child, fd, &other), "another segment");
    uint64_t started = shm_segment_process_started((int32_t) child);
    CHECK(started != 0 && shm_segment_process_lives((int32_t) child, started), "taken for another");
    CHECK(!shm_segment_process_lives((int32_t) child, started + 1), "taken for its predecessor");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CHECK(!shm_segment_owner_lives(descriptor), "%s: its death is not seen", kind_name(kind));
    CHECK(!shm_segment_owner_found((int32_t) child, fd, &identity), "found after its death");
    CHECK(!shm_segment_process_lives((int32_t) child, started), "it lives after its death");
    close(descriptor);
    close(heir.to_parent[0]);
    if (kind == SEGMENT_FILE) {
        shm_segment_file_path(path, &nonce);
        unlink(path);
    }
}

/* An older kernel, or a container, that knows nothing of descriptors of processes. */
static int death_seen_without_descriptors(void *argument)
{
    pid_t child = fork();
    bool lived, zombie_lives, gone_lives;

    (void) argument;
    if (child == 0) {
        pause();
        _exit(0);
    }
    if (calls_refuse(SYS_pidfd_open, SYS_pidfd_open, ENOSYS) != 0)
        return 77;
    lived = shm_segment_process_lives(child, 0);
    kill(child, SIGKILL);
    while (waitid(P_PID, (id_t) child, NULL, WEXITED | WNOWAIT) != 0)
        if (errno != EINTR)
            return 1;
    zombie_lives = shm_segment_process_lives(child, 0);
    waitpid(child, NULL, 0);
    gone_lives = shm_segment_process_lives(child, 0);
    return !lived ? 2 : zombie_lives ? 3 : gone_lives ? 4 : 0;
}

/* --- parts of a job's memory --- */

#define PARTS 3u

struct joiner {
    const struct segment *first;
    struct segment_nonce nonce;
    struct segment_nonce first_nonce;
    int ready;
};

static int part_join(void *argument)
{
    const struct joiner *joiner = argument;
    struct segment own;
    const char *failed;
    int error = shm_segment_join_parts(&own, (int32_t) getppid(), joiner->first->fd,
                                       &joiner->first_nonce, &joiner->nonce, PARTS, 1, -1, &failed);

    if (error != 0)
        return error;
    shm_segment_open_up(&own);
    struct segment_header *first = shm_segment_part(&own, 0, &joiner->first->nonce);
    if (!first || own.header == first || own.connection_count != PARTS)
        return 200;
    shm_segment_connections(first)[1].jobid = 4711;
    own.connections[PARTS - 1].jobid = 4712;
    if (joiner->ready < 0)
        return 0;
    if (write(joiner->ready, "", 1) != 1)
        return 201;
    for (;;)
        pause();
}

static void parts_held(void)
{
    struct segment first;
    struct segment_nonce nonce;
    const char *failed = "";
    int ready[2], error;
    bool known;
    char byte;

    CHECK(host_random(&nonce, sizeof(nonce)) && pipe(ready) == 0, "%s", strerror(errno));
    error = shm_segment_create_parts(&first, &nonce, PARTS, -1, &failed);
    CHECK(error == 0, "cannot %s: %s", failed, strerror(error));
    if (error != 0)
        return;
    size_t held = memory_held(&first);
    CHECK(held <= 2 * (size_t) sysconf(_SC_PAGESIZE), "%zu bytes for one process of three", held);
    CHECK(!shm_segment_part(&first, 0, &nonce), "a part before it is opened up");
    shm_segment_open_up(&first);
    struct joiner joiner = {.first = &first, .first_nonce = nonce, .ready = ready[1]};
    joiner.nonce.bytes[0] = 1;
    CHECK(shm_segment_part(&first, 0, &nonce) == first.header, "its own part");
    CHECK(!shm_segment_part(&first, 1, &joiner.nonce), "a part that no process has taken");
    CHECK(!shm_segment_part(&first, PARTS, &nonce), "a part behind the last");

    pid_t child = fork();
    if (child == 0)
        _exit(part_join(&joiner));
    CHECK(read(ready[0], &byte, 1) == 1, "the second process did not join");
    struct segment_header *second = shm_segment_part(&first, 1, &joiner.nonce);
    CHECK(second && second != first.header, "the part of the second process");
    CHECK(!shm_segment_part(&first, 1, &nonce), "the part of another process");
    CHECK(first.connections[1].jobid == 4711 && second &&
              shm_segment_connections(second)[PARTS - 1].jobid == 4712,
          "what the second process wrote");
    CHECK(shm_segment_part_owner_lives(&first, 1, &known) && known, "taken for dead");
    struct joiner late = {.first = &first, .nonce = nonce, .first_nonce = nonce, .ready = -1};
    error = in_child(part_join, &late);
    CHECK(error == EAGAIN || error == EACCES, "a part that another process has: %d", error);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CHECK(!shm_segment_part_owner_lives(&first, 1, &known) && known, "its death is not seen");
    error = in_child(part_join, &late);
    CHECK(error == ESTALE, "a part that was used before: %d", error);
    first.header->connection_count = PARTS + 1;
    error = in_child(part_join, &joiner);
    CHECK(error == ERANGE, "parts for more processes: %d", error);
    late.first_nonce = joiner.nonce;
    error = in_child(part_join, &late);
    CHECK(error == ESTALE, "memory of another job: %d", error);

    int kept = dup(first.fd); /* as a program that closes what it does not know, and goes on */
    close(first.fd);
    CHECK(!shm_segment_part_owner_lives(&first, 1, &known) && !known, "a closed descriptor");
    CHECK(dup2(ready[0], first.fd) == first.fd &&
              !shm_segment_part_owner_lives(&first, 1, &known) && !known,
          "a descriptor of something else");
    dup2(kept, first.fd);
    close(kept);
    close(ready[0]);
    close(ready[1]);
    shm_segment_destroy(&first);
}

/* --- no memory --- */

static int file_in_full_shm(void *argument)
{
    struct segment segment = {.fd = -1};
    const char *failed = "";
    int error;

    (void) argument;
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64k") != 0)
        return 77;
    /* Header and doors fit, two lanes do, a third does not. */
    error = create(&segment, SEGMENT_FILE, &failed);
    if (error != 0) {
        fprintf(stderr, "cannot %s: %s\n", failed, strerror(error));
        return 1;
    }
    for (int channels = 0; channels < 4; channels++) {
        struct channel *channel = shm_segment_channel_get(&segment, LANE_LINES, -1, -1);

        if (!channel) {
            shm_segment_destroy(&segment);
            return errno == ENOSPC && channels > 0 ? 0 : 2;
        }
        memset(channel, 1, channel_bytes(LANE_LINES));
    }
    return 3;
}

static int file_without_shm(void *argument)
{
    struct segment segment = {.fd = -1};
    const char *failed = "";

    (void) argument;
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", "/dev", "tmpfs", 0, "size=64k") != 0)
        return 77;
    return create(&segment, SEGMENT_FILE, &failed) == ENOENT && segment.fd < 0 ? 0 : 1;
}

static int memfd_without_address_space(void *argument)
{
    struct rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    struct segment segment = {.fd = -1};
    const char *failed = "";

    (void) argument;
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        return 77;
    return create(&segment, SEGMENT_MEMFD, &failed) == ENOMEM && segment.fd < 0 ? 0 : 1;
}

static int memfd_without_file_size(void *argument)
{
    struct rlimit limit = {.rlim_cur = 8192, .rlim_max = 8192};
    struct segment segment = {.fd = -1};
    const char *failed = "";

    (void) argument;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        return 77;
    return create(&segment, SEGMENT_MEMFD, &failed) == EFBIG && segment.fd < 0 ? 0 : 1;
}

static void where_it_may(const char *what, int (*body)(void *))
{
    int status = in_child(body, NULL);

    if (status == 77)
        printf("%s: not tried, the system does not let us\n", what);
    else
        CHECK(status == 0, "%s: %d", what, status);
}

int main(void)
{
    for (int kind = SEGMENT_MEMFD; kind <= SEGMENT_FILE; kind++) {
        segment_holds((enum segment_kind) kind);
        memory_by_need((enum segment_kind) kind);
        memory_placed((enum segment_kind) kind);
        peer_opens((enum segment_kind) kind);
        others_refused((enum segment_kind) kind);
        death_seen((enum segment_kind) kind, false);
        death_seen((enum segment_kind) kind, true);
    }
    parts_held();
    fork_has_no_part();
    bounds_checked();
    unsealed_refused();
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
