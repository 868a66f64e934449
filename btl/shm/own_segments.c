/* SPDX-License-Identifier: BSD-3-Clause */
/* The segments of this process, made when first needed, and their channels. */
#include "btl/shm/shm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "common/compat/modex.h"

/* Address space for channels, by what they may hold: so much is lost between small ones. */
#define SPACE_FACTOR 4u

/* A job of more processes on a node has no memory of its own, as most of its pairs may never speak.
 */
#define PARTS_MAX 256u

static const char *const kind_names[SEGMENT_KINDS] = {"anonymous memory", "a file in /dev/shm",
                                                      "a part of the job's memory"};

const char *shm_segment_kind_name(enum segment_kind kind)
{
    return kind_names[kind];
}

static void memory_fit(uint64_t most, const char *what)
{
    if (most >= shm.memory_max)
        return;
    SHM_VERBOSE("%s holds larger rings of %llu bytes for this process, not btl_shm_memory_max; "
                "large messages to some processes may go in pieces",
                what, (unsigned long long) most);
    shm.memory_max = most;
}

/* A container's /dev/shm is small: half of what is free is for larger rings. */
static void memory_fit_files(void)
{
    struct statvfs space;

    if (statvfs("/dev/shm", &space) == 0)
        memory_fit((uint64_t) space.f_bavail * space.f_frsize / 2 / shm.peers_expected, "/dev/shm");
}

/* Of a limited address space our rings take this part at most: peers' rings and all else come
 * beside. */
#define SPACE_PART 4u

static void memory_fit_space(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        memory_fit(limit.rlim_cur / SPACE_PART / SPACE_FACTOR, "the address space (ulimit -v)");
}

/* Release: pairs with shm_own_segment_is_live. */
static void segment_live_set(enum segment_kind kind, bool live)
{
    const struct segment *segment = &shm.segments[kind];

    atomic_store_explicit(&shm.doorbell_words[kind], live ? segment->doorbell_words : 0,
                          memory_order_release);
}

/* Remembers who uses which entry of the segment; false: there is no memory for that. */
static bool connection_peers_make(const struct segment *segment)
{
    shm.connection_peers[segment->kind] =
        calloc(segment->connection_count, sizeof(shm.connection_peers[segment->kind][0]));
    return shm.connection_peers[segment->kind] != NULL;
}

bool shm_own_segment_ready(enum segment_kind kind)
{
    struct segment *segment = &shm.segments[kind];
    const char *failed;

    if (segment->fd >= 0)
        return true;
    if (kind == SEGMENT_FILE)
        memory_fit_files();
    memory_fit_space();
    int error = shm_segment_create(
        segment, kind, kind == SEGMENT_FILE ? &shm.record.file : &shm.record.memfd,
        shm.connection_count, SPACE_FACTOR * shm.memory_max, shm.record.node, &failed);
    if (error == 0 && kind == SEGMENT_FILE)
        (void) modex_remove_at_exit(segment->path);
    if (error == 0) {
        if (connection_peers_make(segment)) {
            segment_live_set(kind, true);
            return true;
        }
        shm_segment_destroy(segment);
        failed = "remember who uses it";
        error = ENOMEM;
    }
    SHM_SAY(
        "the memory to share with other processes (%s): cannot %s: %s. Other lanes are used, if "
        "there are any.",
        kind_names[kind], failed, strerror(error));
    return false;
}

static void published_write(struct segment_header *header, const void *record, uint32_t length)
{
    memcpy(header->published, record, length);
    /* Release: pairs with shm_outbound_published. */
    atomic_store_explicit(&header->published_bytes, length, memory_order_release);
}

void shm_own_publish(mca_btl_base_module_t *btl, const void *record, size_t length)
{
    if (length > MULTILANE_PUBLISHED_BYTES)
        return;
    for (int kind = 0; kind < SEGMENT_KINDS; kind++)
        if (shm.segments[kind].fd >= 0)
            published_write(shm.segments[kind].header, record, (uint32_t) length);
}

static void part_begin(int error, const char *failed)
{
    struct segment *own = &shm.segments[SEGMENT_JOB];
    struct segment_header *before = shm.segments[SEGMENT_MEMFD].header;
    /* Relaxed: written by this thread. */
    uint32_t published_bytes = atomic_load_explicit(&before->published_bytes, memory_order_relaxed);

    if (error == 0 && !connection_peers_make(own)) {
        shm_segment_destroy(own);
        failed = "remember who uses it";
        error = ENOMEM;
    }
    if (error != 0) {
        SHM_VERBOSE("the job's memory on this node: cannot %s: %s. Each process that sends to this "
                    "one opens its memory instead.",
                    failed, strerror(error));
        return;
    }
    published_write(own->header, before->published, published_bytes);
    shm_segment_open_up(own);
    segment_live_set(SEGMENT_JOB, true);
    segment_live_set(SEGMENT_MEMFD, false);
}

void shm_own_part_make(void)
{
    const char *failed;
    int error;

    shm.record.job_part = (uint32_t) opal_process_info.my_local_rank;
    shm.record.job_fd = -1;
    if (shm.record.job_part != 0 || shm.record.fd < 0 || shm.peers_expected < 2 ||
        shm.peers_expected > PARTS_MAX || shm.memory_is_short)
        return;
    error = shm_segment_create_parts(&shm.segments[SEGMENT_JOB], &shm.record.memfd,
                                     shm.peers_expected, shm.record.node, &failed);
    part_begin(error, failed);
    shm.record.job_fd = shm.segments[SEGMENT_JOB].fd;
}

void shm_own_part_take(const struct shm_record *first)
{
    const char *failed;
    int error;

    if (first->job_fd < 0 || first->host != shm.record.host || shm.part_tried)
        return;
    shm.part_tried = true;
    if (shm.segments[SEGMENT_JOB].fd >= 0 || shm.record.job_part >= shm.peers_expected)
        return;
    error = shm_segment_join_parts(&shm.segments[SEGMENT_JOB], first->pid, first->job_fd,
                                   &first->memfd, &shm.record.memfd, shm.peers_expected,
                                   shm.record.job_part, shm.record.node, &failed);
    part_begin(error, failed);
}

/* --- commons --- */

static bool commons_reserve(void *memory, size_t bytes)
{
    struct multilane_commons commons;
    const struct segment *own = &shm.segments[SEGMENT_JOB];

    if (!shm_segment_commons(own, &commons))
        return false;
    size_t offset =
        (size_t) ((unsigned char *) memory - commons.memory) - commons.part * commons.stride;
    return shm_segment_commons_reserve(own, offset, bytes) == 0;
}

static bool commons_lives(uint32_t part)
{
    const struct segment *own = &shm.segments[SEGMENT_JOB];
    bool known;
    bool lives = shm_segment_part_owner_lives(own, part, &known);

    return lives || !known || !shm_segment_part_header(own, part)->is_locked;
}

static void commons_wake(uint32_t part)
{
    shm_doorbell_wake(shm_segment_part_header(&shm.segments[SEGMENT_JOB], part));
}

bool shm_own_commons(struct multilane_commons *out)
{
    if (!shm_own_segment_is_live(SEGMENT_JOB) ||
        !shm_segment_commons(&shm.segments[SEGMENT_JOB], out))
        return false;
    out->reserve = commons_reserve;
    out->lives = commons_lives;
    out->wake = commons_wake;
    return true;
}

void shm_own_others_look(bool will_come)
{
    const struct segment *segment = &shm.segments[SEGMENT_MEMFD];

    /* Relaxed: the doorbell is looked at from now on. */
    if (!shm_own_segment_is_live(SEGMENT_MEMFD) && segment->fd >= 0 &&
        (will_come ||
         atomic_load_explicit(&segment->header->connection_end, memory_order_relaxed) != 0))
        segment_live_set(SEGMENT_MEMFD, true);
}

void shm_own_segments_are(enum segment_state state)
{
    for (int kind = 0; kind < SEGMENT_KINDS; kind++)
        if (shm.segments[kind].fd >= 0)
            /* Release: a peer that sees SEGMENT_FINALIZED sees that every connection was closed
             * before, or never will be (shm_peer_finalized). */
            atomic_store_explicit(&shm.segments[kind].header->state, state, memory_order_release);
}

void shm_own_segments_destroy(void)
{
    for (int kind = 0; kind < SEGMENT_KINDS; kind++) {
        segment_live_set(kind, false);
        shm_segment_destroy(&shm.segments[kind]);
        free(shm.connection_peers[kind]);
        shm.connection_peers[kind] = NULL;
    }
}

/* Whether there is memory for one more channel of so many bytes: a small one always, within
 * memory_max; a larger one only if a small one is left for each peer that has none yet. */
static bool memory_suffices(size_t bytes)
{
    uint32_t others =
        shm.channel_count + 1 < shm.peers_expected ? shm.peers_expected - shm.channel_count - 1 : 0;
    uint64_t kept = bytes > shm.fair_bytes ? (uint64_t) others * shm.fair_bytes : 0;

    return shm.memory_used + bytes + kept <= shm.memory_max;
}

/* Not all that was reckoned with is there. Said once; what there is serves on. */
static void memory_short(enum segment_kind kind, size_t bytes, int error)
{
    SHM_SAY("no memory for a ring of %zu bytes (%s): %s. The rings of this process stay at %llu "
            "bytes, so large messages to some processes go in many pieces.%s",
            bytes, shm_segment_kind_name(kind), strerror(error),
            (unsigned long long) shm.memory_used,
            kind == SEGMENT_FILE ? " A larger /dev/shm helps." : "");
    shm.memory_max = shm.memory_used;
}

struct channel *shm_own_channel_get(enum segment_kind kind, int node, uint32_t lines_min,
                                    uint32_t *lines)
{
    struct channel *channel = NULL;

    opal_mutex_lock(&shm.channel_lock);
    while (*lines > lines_min && !memory_suffices(channel_bytes(*lines)))
        *lines /= 2;
    if (*lines <= lines_min)
        atomic_store_explicit(&shm.memory_wanted, true, memory_order_relaxed);
    if (*lines > lines_min && shm_own_segment_ready(kind)) {
        channel = shm_segment_channel_get(&shm.segments[kind], *lines, node, shm.record.node);
        if (channel) {
            shm.memory_used += channel_bytes(*lines);
            shm.channel_count++;
        } else {
            memory_short(kind, channel_bytes(*lines), errno);
        }
    }
    opal_mutex_unlock(&shm.channel_lock);
    return channel;
}

void shm_own_channel_put(enum segment_kind kind, struct channel *channel, uint32_t lines)
{
    opal_mutex_lock(&shm.channel_lock);
    shm_segment_channel_put(&shm.segments[kind], channel, lines);
    shm.memory_used -= channel_bytes(lines);
    shm.channel_count--;
    opal_mutex_unlock(&shm.channel_lock);
}
