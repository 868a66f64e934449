/* SPDX-License-Identifier: BSD-3-Clause */
/* The segments of this process, made when first needed, and their channels. */
#include "btl/shm/shm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/compat/modex.h"

static const char *const kind_names[SEGMENT_KINDS] = {"anonymous memory", "a file in /dev/shm"};

const char *shm_segment_kind_name(enum segment_kind kind)
{
    return kind_names[kind];
}

bool shm_own_segment_ready(enum segment_kind kind)
{
    struct segment *segment = &shm.segments[kind];
    const char *failed;

    if (segment->fd >= 0)
        return true;
    int error = shm_segment_create(
        segment, kind, kind == SEGMENT_FILE ? &shm.record.file : &shm.record.memfd,
        shm.connection_count, shm.channel_count, shm.channel_lines, &failed);
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

bool shm_own_channel_get(shm_peer_t *peer)
{
    opal_mutex_lock(&shm.channel_lock);
    if (shm_own_segment_ready(peer->kind)) {
        peer->out_segment = &shm.segments[peer->kind];
        peer->out_channel = shm_segment_channel_get(peer->out_segment, peer->record.node);
    }
    opal_mutex_unlock(&shm.channel_lock);
    return peer->out_channel != NULL;
}

void shm_own_channel_put(struct segment *segment, struct channel *channel)
{
    opal_mutex_lock(&shm.channel_lock);
    shm_segment_channel_put(segment, channel);
    opal_mutex_unlock(&shm.channel_lock);
}

bool shm_ring_reserve(enum segment_kind kind, const opal_process_name_t *name)
{
    static bool said;

    if (atomic_load_explicit(&shm.reserved[kind], memory_order_relaxed) >= shm.channel_count) {
        if (!said)
            SHM_SAY("messages to process %s, and maybe to others, take another lane: the %u "
                    "rings of this process are all that btl_shm_memory_max (%s) holds. A larger "
                    "one, or a smaller btl_shm_ring_bytes, may help.",
                    OPAL_NAME_PRINT(*name), shm.channel_count, shm.memory_max_text);
        said = true;
        return false;
    }
    atomic_fetch_add_explicit(&shm.reserved[kind], 1, memory_order_relaxed);
    return true;
}

void shm_ring_unreserve(shm_peer_t *peer)
{
    if (atomic_exchange_explicit(&peer->reserved, false, memory_order_relaxed))
        atomic_fetch_sub_explicit(&shm.reserved[peer->kind], 1, memory_order_relaxed);
}
