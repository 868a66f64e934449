/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection that this process sends by: it takes an entry in the segment of the peer and
 * writes there where its ring is. */
#include "btl/shm/shm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "opal/util/proc.h"

/* So long a peer may take to make its file, and a shortage of descriptors may last. */
#define FILE_WAIT_S 60

static bool peer_segment_open(shm_peer_t *peer)
{
    bool file = peer->kind == SEGMENT_FILE;

    if (peer->segment)
        return true;
    peer->segment_fd = shm_segment_open(peer->record.pid, file ? -1 : peer->record.fd,
                                        file ? &peer->record.file : &peer->record.memfd);
    if (peer->segment_fd < 0)
        return false;
    peer->segment =
        shm_segment_map_header(peer->segment_fd, &peer->segment_bytes, &peer->segment_connections);
    if (peer->segment)
        return true;
    close(peer->segment_fd);
    peer->segment_fd = -1;
    return false;
}

void shm_peer_segment_close(shm_peer_t *peer)
{
    if (peer->segment)
        shm_segment_unmap(peer->segment, peer->segment_bytes);
    if (peer->segment_fd >= 0)
        close(peer->segment_fd);
    peer->segment = NULL;
    peer->segment_fd = -1;
}

static struct connection *connection_claim(shm_peer_t *peer)
{
    uint32_t count = peer->segment_connections;
    struct connection *connections = shm_segment_connections(peer->segment);
    uint32_t first = (uint32_t) opal_process_info.my_local_rank;

    for (uint32_t n = 0; n < count; n++) {
        struct connection *connection = &connections[(first + n) % count];
        uint32_t expected = CONNECTION_FREE;

        /* Acquire: the owner has finished with the sender before (shm_accept_end). */
        if (atomic_compare_exchange_strong_explicit(&connection->state, &expected,
                                                    CONNECTION_CLAIMED, memory_order_acquire,
                                                    memory_order_relaxed)) {
            uint32_t index = (first + n) % count % (SEGMENT_DOORBELLS * 64);

            peer->doorbell = &peer->segment->doorbells[index / 64];
            peer->doorbell_bit = index % 64;
            return connection;
        }
    }
    return NULL;
}

static void connection_write(shm_peer_t *peer, struct connection *connection)
{
    struct segment *segment = peer->out_segment;
    const opal_process_name_t *own = &opal_proc_local_get()->proc_name;

    connection->jobid = own->jobid;
    connection->vpid = own->vpid;
    connection->pid = shm.record.pid;
    connection->fd = segment->kind == SEGMENT_FILE ? -1 : segment->fd;
    connection->lines = segment->channel_lines;
    connection->channel = shm_segment_channel_offset(segment, peer->out_channel);
    connection->nonce = segment->nonce;
    /* Release: pairs with the owner's acquire in connection_look. */
    atomic_store_explicit(&connection->state, CONNECTION_OPEN, memory_order_release);
}

/* Whether the last that the peer did was to close its own connection to us, accepted here or not.
 */
static bool peer_has_left(const shm_peer_t *peer)
{
    const struct connection *connection =
        atomic_load_explicit(&peer->in_connection, memory_order_acquire);

    return (connection &&
            atomic_load_explicit(&connection->state, memory_order_acquire) == CONNECTION_CLOSED) ||
           atomic_load_explicit(&peer->in_left, memory_order_relaxed);
}

bool shm_is_shortage(const shm_peer_t *peer, int error)
{
    static _Atomic bool said; /* relaxed: it orders nothing */

    if (error != EMFILE && error != ENFILE && error != ENOMEM)
        return false;
    if (!atomic_exchange_explicit(&said, true, memory_order_relaxed))
        SHM_SAY("the memory of process %s cannot be opened now: %s. It is tried again; a higher "
                "limit (ulimit -n) helps.",
                OPAL_NAME_PRINT(peer->name), strerror(error));
    return true;
}

static uint64_t now_s(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return (uint64_t) time.tv_sec;
}

/* The peer's segment does not open. A file may appear later; a descriptor does not, except after a
 * shortage here. A peer that has left us before has ended. */
static void segment_missing(shm_peer_t *peer, int error)
{
    bool is_short = shm_is_shortage(peer, error), in_vain;

    peer->out_state = OUT_WAITING;
    if (peer->waiting_since_s == 0)
        peer->waiting_since_s = now_s();
    in_vain =
        (peer->kind == SEGMENT_MEMFD && !is_short) || now_s() - peer->waiting_since_s > FILE_WAIT_S;
    if (in_vain && peer_has_left(peer)) {
        peer->gone = true;
        peer->out_state = OUT_DEAD;
    } else if (in_vain) {
        SHM_SAY("the memory of process %s (%s) cannot be opened: %s.", OPAL_NAME_PRINT(peer->name),
                shm_segment_kind_name(peer->kind), strerror(error));
        peer->out_unusable = true;
    }
}

static bool channel_create(shm_peer_t *peer)
{
    if (peer->out_channel)
        return true;
    if (!shm_own_channel_get(peer)) {
        SHM_SAY("no memory for a ring of %zu bytes to process %s: %s. A smaller btl_shm_ring_bytes "
                "or a larger btl_shm_memory_max may help.",
                channel_bytes(shm.channel_lines), OPAL_NAME_PRINT(peer->name), strerror(errno));
        peer->out_unusable = true;
        return false;
    }
    return true;
}

void shm_outbound_retire(shm_peer_t *peer)
{
    if (peer->left_connection) {
        bool read = atomic_load_explicit(&peer->left_connection->state, memory_order_acquire) !=
                    CONNECTION_CLOSED;

        if (!read && !shm_peer_finalized(peer) && shm_segment_owner_lives(peer->segment_fd))
            return;
        shm_own_channel_put(peer->out_segment, peer->left_channel);
        peer->left_connection = NULL;
        peer->left_channel = NULL;
    }
    if ((peer->known && !peer->gone) || peer->out_connection)
        return;
    shm_ring_unreserve(peer);
    if (!in_is_open(peer))
        shm_peer_segment_close(peer);
}

void shm_outbound_open(shm_peer_t *peer)
{
    if (peer->out_state >= OUT_OPEN || peer->out_unusable || !peer->known)
        return;
    peer->out_state = OUT_WAITING;
    if (!peer_segment_open(peer)) {
        segment_missing(peer, errno);
        return;
    }
    peer->waiting_since_s = 0;
    if (!peer->stale)
        peer->stale = calloc(ring_stale_words(shm.channel_lines), sizeof(*peer->stale));
    if (peer->left_connection) {
        /* An earlier connection, which the peer may not have read to its end. */
        shm_outbound_retire(peer);
        if (peer->left_connection)
            return;
    }
    if (!peer->stale || !channel_create(peer))
        return;
    peer->out_connection = connection_claim(peer);
    if (!peer->out_connection)
        return;
    memset(peer->stale, 0, ring_stale_words(shm.channel_lines) * sizeof(*peer->stale));
    ring_sender_init(&peer->out, peer->out_channel->lines, shm.channel_lines,
                     &peer->out_channel->feedback, peer->stale);
    peer->length_max = ring_length_max(shm.channel_lines);
    peer->controls_taken = 0;
    connection_write(peer, peer->out_connection);
    peer->out_state = OUT_OPEN;
    peer->out_direct = opal_list_is_empty(&peer->pending);
    shm_doorbell_ring(peer);
}

/* The channel stays as it is until the peer has read the last message. */
void shm_outbound_leave(shm_peer_t *peer)
{
    uint32_t expected = CONNECTION_OPEN;

    peer->out_direct = false;
    if (!peer->out_connection)
        return;
    /* Release: the last message is in the ring. A refused connection stays refused. */
    if (atomic_compare_exchange_strong_explicit(&peer->out_connection->state, &expected,
                                                CONNECTION_CLOSED, memory_order_release,
                                                memory_order_relaxed))
        shm_doorbell_ring(peer);
    peer->left_connection = peer->out_connection;
    peer->left_channel = peer->out_channel;
    peer->out_connection = NULL;
    peer->out_channel = NULL;
}
