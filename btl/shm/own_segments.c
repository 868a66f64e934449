/* SPDX-License-Identifier: BSD-3-Clause */
/* The segments of this process, made when first needed, and their channels. */
#include "btl/shm/shm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "common/compat/modex.h"

/* Address space for channels, by what they may hold: so much is lost between small ones. */
#define SPACE_FACTOR 4u

static const char *const kind_names[SEGMENT_KINDS] = {"anonymous memory", "a file in /dev/shm"};

const char *shm_segment_kind_name(enum segment_kind kind)
{
    return kind_names[kind];
}

/* A container's /dev/shm is small: half of what is free is for larger rings. */
static void memory_fit_files(void)
{
    struct statvfs space;

    if (statvfs("/dev/shm", &space) != 0)
        return;
    uint64_t most = (uint64_t) space.f_bavail * space.f_frsize / 2 / shm.peers_expected;
    if (most >= shm.memory_max)
        return;
    SHM_VERBOSE(
        "/dev/shm holds larger rings of %llu bytes for this process; large messages to some "
        "processes may go in pieces",
        (unsigned long long) most);
    shm.memory_max = most;
}

bool shm_own_segment_ready(enum segment_kind kind)
{
    struct segment *segment = &shm.segments[kind];
    const char *failed;

    if (segment->fd >= 0)
        return true;
    if (kind == SEGMENT_FILE)
        memory_fit_files();
    int error = shm_segment_create(
        segment, kind, kind == SEGMENT_FILE ? &shm.record.file : &shm.record.memfd,
        shm.connection_count, SPACE_FACTOR * shm.memory_max, shm.record.node, &failed);
    if (error == 0 && kind == SEGMENT_FILE)
        (void) modex_remove_at_exit(segment->path);
    if (error == 0) {
        shm.connection_peers[kind] =
            calloc(shm.connection_count, sizeof(shm.connection_peers[kind][0]));
        if (shm.connection_peers[kind]) {
            /* Release: pairs with shm_own_segment_is_live. */
            atomic_store_explicit(&shm.segment_live[kind], true, memory_order_release);
            return true;
        }
        shm_segment_destroy(segment);
        failed = "note who uses it";
        error = ENOMEM;
    }
    SHM_SAY(
        "the memory to share with other processes (%s): cannot %s: %s. Other lanes are used, if "
        "there are any.",
        kind_names[kind], failed, strerror(error));
    return false;
}

void shm_own_note_leave(const void *note, size_t length)
{
    if (length > MULTILANE_NOTE_BYTES)
        return;
    for (int kind = 0; kind < SEGMENT_KINDS; kind++) {
        struct segment_header *header =
            shm.segments[kind].fd < 0 ? NULL : shm.segments[kind].header;

        if (!header)
            continue;
        memcpy(header->note, note, length);
        /* Release: pairs with shm_outbound_note. */
        atomic_store_explicit(&header->note_bytes, (uint32_t) length, memory_order_release);
    }
}

void shm_own_segments_finalize(void)
{
    for (int kind = 0; kind < SEGMENT_KINDS; kind++)
        if (shm.segments[kind].fd >= 0)
            /* Release: a peer that sees it sees that every connection was closed before, or never
             * will be (shm_peer_finalized). */
            atomic_store_explicit(&shm.segments[kind].header->state, SEGMENT_FINALIZED,
                                  memory_order_release);
}

void shm_own_segments_destroy(void)
{
    for (int kind = 0; kind < SEGMENT_KINDS; kind++) {
        atomic_store_explicit(&shm.segment_live[kind], false, memory_order_relaxed);
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
